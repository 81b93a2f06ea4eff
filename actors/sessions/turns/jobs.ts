/**
 * Jobs of a session: how they are enqueued, and which part of the session waits for each of them.
 */
import { type JobEnvironment, usedEnvironment } from '../../../protocol/environments/commands.ts'
import type { Job, JobHeader } from '../../../protocol/jobs/rows.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { TurnDefinition } from '../../../protocol/sessions/turns/definition.ts'
import { type Draft, now, tellQueue } from '../draft.ts'
import type { SessionState, Turn } from '../state.ts'

export type Settled = SessionCommands['job.settled']['input']
const DEFAULT_QUEUE = 'default'
/** Returns the queue of generations, and of tool calls whose action specifies no queue. */
export const queueOf = (_: TurnDefinition): string => DEFAULT_QUEUE

/**
 * Returns the properties that all jobs for generations share, including the model that generates.
 */
export const generationFields = ({ route }: TurnDefinition, id: string, model: string) => ({
  id,
  kind: 'llm_generation' as const,
  executor_kind:
    route.mode === 'worker' ? ('customer_worker' as const) : ('server_worker' as const),
  provider: route.provider,
  model,
  ...(route.environment_id !== undefined && { environment_id: route.environment_id }),
})

/** The properties in which the jobs of a session differ. */
export type JobVariant = Pick<Job, 'kind'> &
  Pick<JobHeader, 'id' | 'executor_kind' | 'max_attempts' | 'max_losses'> &
  Partial<
    Pick<
      JobHeader,
      'action_name' | 'provider' | 'model' | 'environment_id' | 'agent_turn_id' | 'tool_call_id'
    >
  >
/**
 * Puts a job in a queue of the session's shard.
 * @param turn the turn that needs the job, if any. It determines the job's origin, which
 * distinguishes jobs for turns of runs from all other jobs.
 */
export function enqueueJob(
  draft: Draft,
  queue: string,
  wanted: JobVariant,
  turn: Turn | undefined,
): void {
  const { id: session_id, agent_id } = draft.state.record
  const environment = environmentOf(wanted.environment_id, agent_id, turn)
  const whose = turn?.work.owner === 'run' ? 'agent' : 'conversation'
  const common = extended(wanted, {
    origin: `${whose}_${wanted.kind === 'llm_generation' ? 'llm' : 'tool'}_call` as Job['origin'],
    session_id,
    ...(turn && whoseStep(turn)),
    priority: 0,
  })
  const { max_losses: _, ...shown } = common
  const job: JobHeader = extended(common, {
    ...(environment && { environment }),
    owner: { kind: 'session' as const, id: session_id },
    fairness_key: agent_id,
    enqueued_at: draft.cause.at,
  })
  const record: Job = extended(shown, {
    fairness_key: agent_id,
    queue,
    status: 'queued' as const,
    claim_attempt: 0,
    cancel_requested: false,
    created_at: now(draft),
    updated_at: now(draft),
  })
  tellQueue(draft, queue, 'queue.enqueue', { job, record })
}

/**
 * Returns how a job uses its environment, or undefined if the job has no environment that the
 * service manages.
 */
function environmentOf(
  id: string | undefined,
  agent_id: string,
  turn: Turn | undefined,
): JobEnvironment | undefined {
  if (id === undefined) return undefined
  const own = turn?.work.definition.environment
  return usedEnvironment(
    own?.id === id ? own : { id, use: { holder: { kind: 'agent', id: agent_id } } },
  )
}
const whoseStep = ({
  record: { run_id, step_key },
}: Turn): Partial<Pick<JobHeader, 'run_id' | 'step_id' | 'step_key'>> =>
  run_id === undefined
    ? {}
    : { run_id, ...(step_key !== undefined && { step_id: `${run_id}:${step_key}`, step_key }) }

/**
 * Returns the turn, the call or the compaction that waits for a job, or undefined if nothing waits
 * for it.
 */
export function jobOf(
  state: SessionState,
  job_id: string,
): { readonly turn: Turn; readonly call?: string } | { readonly compaction: true } | undefined {
  if (state.compacting?.job_id === job_id) return { compaction: true }
  for (const turn of Object.values(state.turns)) {
    if (turn.work.generation?.job_id === job_id) return { turn }
    const call = Object.values(turn.work.segment?.calls ?? {}).find(
      (one) => one.job_id === job_id && one.state === 'job',
    )
    if (call) return { turn, call: call.id }
  }
  return undefined
}
