/**
 * A step that sends a prompt to an agent. It requests one turn in a session of the agent, and the
 * answer is the step's output. The session and the agent's settings belong to other actors, so the
 * definition of the turn must be looked up first. The run waits through all three stages of the
 * turn:
 *
 *     asked (an executor looks up the definition)
 *         → opened (the session runs the turn and reports its end)
 *         → settled (../inbound/turns.ts)
 */

import { sessionKeyOf } from '../../../protocol/channels/exchange.ts'
import { type JsonObject, parseDuration } from '../../../protocol/common.ts'
import { serviceJob } from '../../../protocol/jobs/service-job.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { RunSource } from '../../../protocol/loops/run.ts'
import type { TriggerKind } from '../../../protocol/resolver/callout.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { renderText } from '../../../protocol/rules/expressions/template.ts'
import type { TurnWanted } from '../../../protocol/runs/turns.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import {
  type AgentWait,
  current,
  type Draft,
  emit,
  OPENINGS,
  progressOf,
  tellOpenings,
} from '../draft.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { failStep } from '../engine/outcome.ts'
import { stepsAt, waitingAt } from '../engine/places.ts'
import { suspend } from '../engine/suspend.ts'
import { type RunState, rowOf } from '../state.ts'
import { ownUse, turnEnvironment } from './environment.ts'
import { dueOf } from './timeout.ts'

/** An agent step of a spec. */
export type AgentStep = Extract<Step, { kind: 'agent' }>
/** The request for a turn, as stored in the inputs of its step. */
interface Asked extends Pick<TurnWanted, 'agent' | 'session'> {
  readonly instructions: string
}
/**
 * Maximum number of attempts, and of lost leases, of a job that looks up the definition of a turn.
 * It is high, because a part of the definition may be temporarily unavailable.
 */
const MAX_ATTEMPTS = 10

/** Requests a turn of the agent, and waits for its answer. */
export function executeAgent(draft: Draft, step: AgentStep): void {
  const agent = step.config.agent_id ?? draft.state.engine.agent_id
  const instructions = String(renderText(step.config.instructions, expressionScope(draft)))
  if (agent === undefined)
    return void failStep(
      draft,
      { error_type: 'agent_not_found', error: 'No agent is specified' },
      true,
    )
  if (instructions.trim() === '')
    return void failStep(
      draft,
      { error_type: 'instructions_empty', error: 'The instructions are empty' },
      true,
    )
  const session = sessionFor(draft, step, agent)
  if (session.name.length > limits.session_key)
    return void failStep(
      draft,
      {
        error_type: 'session_invalid',
        error: `The name of a session has at most ${limits.session_key} characters`,
      },
      true,
    )
  askAgent(draft, step, { agent, instructions, session })
}

/**
 * Requests a turn and suspends the step until the turn ends.
 * @param judges index of the assertion that the turn judges.
 * @param detail the results of a check so far.
 */
export function askAgent(
  draft: Draft,
  step: Step,
  asked: Asked,
  judges?: number,
  detail?: JsonObject,
): void {
  const { key = '' } = current(draft) ?? {}
  const [turn_id, job_id] = [draft.cause.mint('turn'), draft.cause.mint('job')]
  const due = dueOf(draft, step)
  const wait: AgentWait = {
    kind: 'agent',
    step: key,
    id: draft.cause.mint('wait'),
    turn_id,
    job_id,
    ...(judges !== undefined && { judges }),
    ...(due !== undefined && { due }),
  }
  const note = ownUse(
    draft.state,
    asked.agent === undefined ? undefined : turnEnvironment(draft.state).environment,
  )
  emit(draft, 'turn.asked', {
    run: { agent_turns_used: (draft.state.record.agent_turns_used ?? 0) + 1 },
    ...(note.engine && { note }),
  })
  const whom = asked.agent === undefined ? 'the reviewer' : `the agent ${asked.agent}`
  suspend(
    draft,
    wait,
    { subject: turn_id, ...(asked.agent !== undefined && { agent_id: asked.agent }) },
    {
      inputs: { ...asked },
      agent_turn_id: turn_id,
      session_id: null,
      agent_id: null,
      ...(detail && { verdict_detail: detail }),
      waiting_on: { kind: 'agent', reason: `Waits for ${whom}`, step_key: key },
    },
  )
  tellOpenings(draft, 'queue.enqueue', jobOf(draft, key, job_id))
}
/** Requests another lookup of the turn, because its session ended before the turn began. */
export function askAgain(draft: Draft, { session_id: _, ...wait }: AgentWait): void {
  const job_id = draft.cause.mint('job')
  emit(draft, 'turn.asked', {
    step: wait.step,
    row: { session_id: null },
    place: { wait: { ...wait, job_id } },
  })
  tellOpenings(draft, 'queue.enqueue', jobOf(draft, wait.step, job_id))
}

function jobOf(draft: Draft, key: string, id: string): ReturnType<typeof serviceJob> {
  const {
    record: { id: run_id },
    engine: { priority, fairness_key = '' },
  } = draft.state
  return serviceJob(
    OPENINGS,
    draft.cause.at,
    { id, priority, fairness_key, max_attempts: MAX_ATTEMPTS, max_losses: MAX_ATTEMPTS },
    { kind: 'opening' },
    { run_id, step_id: `${run_id}:${key}`, step_key: key },
  )
}

/**
 * Returns the id that scopes the session names of a run's agents: the id of the run's loop, of its
 * workflow if it has no loop, or of the run itself if it has neither.
 */
export const scopeOf = ({ record: { id, loop_id, definition_id } }: RunState): string =>
  loop_id ?? (definition_id || id)
function sessionFor(
  draft: Draft,
  { name: step_name, kind, config }: AgentStep,
  agent: string,
): TurnWanted['session'] {
  const { record, spec, engine } = draft.state
  const { scope, name, title, visibility, compaction_policy } = {
    ...spec.defaults?.agent_session,
    ...config.session,
  }
  const { key, row } = current(draft) ?? {}
  const roots = {
    ...expressionScope(draft),
    agent: { id: agent },
    loop: { id: record.loop_id ?? null, name: record.loop_name ?? null },
    source: record.source ?? engine.meta['source'] ?? null,
    step: { id: key ?? null, name: step_name ?? null, kind, attempt: row?.attempt ?? 1 },
  }
  const text = (source: string | undefined): string =>
    source === undefined ? '' : String(renderText(source, roots)).trim()
  const called = cutText(text(title), limits.title)
  return {
    scope: scope === 'agent' ? 'agent' : 'loop',
    ref_id: scope === 'agent' ? agent : scopeOf(draft.state),
    name: text(name) || usualName(draft.state),
    ...(called !== '' && { title: called }),
    ...(visibility && { visibility }),
    ...(compaction_policy && {
      compaction_policy: compaction_policy as NonNullable<
        TurnWanted['session']['compaction_policy']
      >,
    }),
  }
}
/**
 * Returns the default name of the sessions of a run's agents. It is derived from the channel in
 * which the run originated. For a run without a channel, it is derived from the trigger of the run.
 * For a run without a channel and a trigger, it is `default`.
 */
function usualName({ record, engine }: RunState): string {
  const { channel_id, thread_id } = record.meta ?? engine.meta
  if (typeof channel_id === 'string')
    return sessionKeyOf(channel_id, typeof thread_id === 'string' ? thread_id : undefined)
  const { trigger_id } = record.source ?? {}
  return trigger_id === undefined ? 'default' : `trigger:${trigger_id}`
}

/**
 * Returns the facts that an executor needs to resolve a turn, or null if the run no longer waits
 * for the lookup.
 */
export function wantedTurn(
  state: RunState | null,
  { job_id }: { readonly job_id: string },
): TurnWanted | null {
  const found = state && waitingAt(state, (wait) => wait.kind === 'agent' && wait.job_id === job_id)
  const wait = found?.progress.wait
  if (!state || wait?.kind !== 'agent') return null
  const step = stepsAt(state, found?.at)[found?.progress.position ?? -1]
  const { agent, session } = (rowOf(state, wait.step, found?.at)?.inputs ?? {}) as unknown as Asked
  const { max_duplicate_tool_calls } = state.spec.limits ?? {}
  const seconds = Math.ceil((parseDuration(step?.timeout?.duration ?? '0') ?? 0) / 1000)
  const thinking_effort =
    (step?.kind === 'agent' ? step.config.session?.thinking_effort : undefined) ??
    state.spec.defaults?.agent_session?.thinking_effort
  return {
    turn_id: wait.turn_id,
    ...(agent !== undefined && { agent }),
    ...(state.engine.actor && { asker: state.engine.actor.principal_id }),
    session,
    trigger: triggerOf(state),
    ...bundleFor(state, agent),
    // If no agent is named, the service's own reviewer judges. The reviewer has no tools and
    // therefore needs no environment.
    ...(agent !== undefined && turnEnvironment(state)),
    step: {
      ...(seconds > 0 && { timeout_seconds: seconds }),
      ...(thinking_effort && { thinking_effort }),
      ...(max_duplicate_tool_calls !== undefined && { max_duplicate_tool_calls }),
      ...(step?.kind === 'agent' && boundsOf(step)),
    },
  }
}
/**
 * Returns the definition from the resolver that the run keeps for the agent with this id or name.
 */
function bundleFor(
  { bundles = {} }: RunState,
  agent: string | undefined,
): Pick<TurnWanted, 'bundle'> {
  const bundle =
    agent === undefined
      ? undefined
      : (getOwn(bundles, agent) ??
        Object.values(bundles).find(({ agent_name }) => agent_name === agent))
  return bundle ? { bundle } : {}
}
/** Returns the trigger of the run in the vocabulary of the resolver protocol. */
function triggerOf({ record, engine }: RunState): TriggerKind {
  if (record.parent_run_id !== undefined) return 'loop'
  const meta = record.meta ?? engine.meta
  const { type = 'api' } = (record.source ?? meta['source'] ?? {}) as RunSource
  if (type !== 'trigger') return type
  const event_type = String(meta['event_type'] ?? '')
  if (event_type === 'schedule.tick') return 'schedule'
  if (event_type === 'http_trigger.received') return 'http'
  return event_type.startsWith('signal.') ? 'signal' : 'event'
}
const boundsOf = ({
  config: { model_route, tool_names, disable_tools, max_turns },
}: AgentStep): Partial<TurnWanted['step']> => ({
  ...(model_route && {
    model_route: model_route as NonNullable<TurnWanted['step']['model_route']>,
  }),
  ...(tool_names && { tool_names }),
  ...(disable_tools && { disable_tools }),
  ...(max_turns !== undefined && { max_turns }),
})
/** Returns the current step's wait for a turn; undefined if the step does not wait for a turn. */
export const turnWait = (draft: Draft): AgentWait | undefined => {
  const { wait } = progressOf(draft)
  return wait?.kind === 'agent' ? wait : undefined
}
