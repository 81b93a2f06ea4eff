/**
 * Jobs of a session: how they are enqueued, and how their outcomes are handled. A job that the
 * session no longer waits for changes nothing.
 */
import type { Job, JobHeader } from '../../../protocol/jobs/rows.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TurnDefinition } from '../../../protocol/sessions/turns/definition.ts'
import type { Cause, Decision } from '../../actor.ts'
import { type Draft, draft, nothing, now, silently, tellQueue } from '../draft.ts'
import { compactionSettled } from '../history/compaction.ts'
import type { Live, SessionState, Turn } from '../state.ts'
import { answered, restarted } from './generate.ts'
import { callSettled } from './segment.ts'

export type Settled = SessionCommands['job.settled']['input']
/** Queue of jobs that name none. */
const DEFAULT_QUEUE = 'default'
/** The queue of a turn's generations. */
export const queueOf = (_: TurnDefinition): string => DEFAULT_QUEUE

/** The properties of a job that are not common to all jobs of a session. */
export type Wanted = Pick<Job, 'kind'> &
  Pick<JobHeader, 'id' | 'executor_kind' | 'max_attempts' | 'max_losses'> &
  Partial<
    Pick<
      JobHeader,
      'action_name' | 'provider' | 'model' | 'environment_id' | 'agent_turn_id' | 'tool_call_id'
    >
  >
/**
 * Put a job in a queue of the session's shard.
 * @param turn the job's turn, if it has one; the job's origin distinguishes turns of runs from
 * those of conversations.
 */
export function enqueue(on: Draft, queue: string, wanted: Wanted, turn: Turn | undefined): void {
  const { id: session_id, agent_id } = on.state.record
  const whose = turn?.work.owner === 'run' ? 'agent' : 'conversation'
  const common = {
    ...wanted,
    origin: `${whose}_${wanted.kind === 'llm_generation' ? 'llm' : 'tool'}_call` as Job['origin'],
    session_id,
    ...(turn && whoseStep(turn)),
    priority: 0,
  }
  const { max_losses: _, ...shown } = common
  const job: JobHeader = {
    ...common,
    owner: { kind: 'session', id: session_id },
    fairness_key: agent_id,
    enqueued_at: on.cause.at,
  }
  const record: Job = {
    ...shown,
    fairness_key: agent_id,
    queue,
    status: 'queued',
    claim_attempt: 0,
    cancel_requested: false,
    created_at: now(on),
    updated_at: now(on),
  }
  tellQueue(on, queue, 'queue.enqueue', { job, record })
}

const whoseStep = ({
  record: { run_id, step_key },
}: Turn): Partial<Pick<JobHeader, 'run_id' | 'step_id' | 'step_key'>> =>
  run_id === undefined
    ? {}
    : { run_id, ...(step_key !== undefined && { step_id: `${run_id}:${step_key}`, step_key }) }

/** The turn, the call or the compaction that waits for a job. */
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

/** Handle the end of a job. */
export const jobSettled =
  (brand: string) =>
  (state: SessionState, input: Settled, cause: Cause): Decision<SessionEvent, undefined> => {
    const found = jobOf(state, input.job_id)
    if (!found || !state.record || state.gone) return nothing
    const on = draft(state as Live, cause, brand)
    if ('compaction' in found) compactionSettled(on, input)
    else if (found.call !== undefined) callSettled(on, found.turn.record.id, found.call, input)
    else answered(on, found.turn.record.id, input)
    return silently(on)
  }
/** Handle a retry of a job: the output that a generation has streamed so far is discarded. */
export const jobRetried =
  (brand: string) =>
  (
    state: SessionState,
    { job_id }: SessionCommands['job.retried']['input'],
    cause: Cause,
  ): Decision<SessionEvent, undefined> => {
    const found = jobOf(state, job_id)
    if (!found || 'compaction' in found || found.call !== undefined || !state.record) return nothing
    const on = draft(state as Live, cause, brand)
    restarted(on, found.turn.record.id)
    return silently(on)
  }
