/**
 * Commands from a loop to its runs. The loop decides whether a run begins immediately or waits
 * (`held`). The commit that ends a run also notifies its loop, so the loop never counts an ended
 * run as active.
 */

import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import type { RunOpening } from '../../../protocol/loops/events.ts'
import type { RunRecord } from '../../../protocol/loops/record.ts'
import { withPreparation } from '../../../protocol/loops/repositories.ts'
import { cut } from '../../../protocol/naming.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { current, type Draft, emit, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { advance, pause } from '../engine/advance.ts'
import { concludeRun } from '../engine/ending.ts'
import { type Engine, hasEnded, type RunState } from '../state.ts'
import { repeatStep } from './control.ts'
import { allowances, beginRun, draftNewRun, initiator, nameOf } from './start.ts'

type Told<N extends keyof RunCommands> = RunCommands[N]['input']

/**
 * Creates the run, and begins it unless it has to wait. An existing run does not change. If it has
 * ended, it reports this to its loop again, with the status `known`, so that the loop no longer
 * counts it as active.
 */
export function open(
  state: RunState | null,
  opening: RunOpening,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (state)
    return hasEnded(state)
      ? {
          ...emptyDecision,
          tells: [
            {
              to: { kind: 'loop', id: opening.loop.id },
              name: 'run.left',
              input: { run_id: cause.self.id, status: 'known' },
            },
          ],
        }
      : emptyDecision
  const record = recordOf(opening, cause)
  const { event, meta, config } = opening
  const spec = withPreparation(opening.spec, opening.repositories ?? [])
  const draft = draftNewRun(
    { ...record, ...nameOf(spec, record, event, { ...meta }, config) },
    spec,
    engineOf(opening),
    cause,
  )
  if (opening.queue_reason === undefined)
    beginRun(draft, startedPayload(draft), opening.later === true)
  return withoutReply(draft)
}

function recordOf(
  {
    loop,
    spec,
    event,
    meta,
    config,
    source,
    budget,
    queue_reason,
    plan_concurrency_limit,
    parent,
    initiated_by,
  }: RunOpening,
  cause: Cause,
): RunRecord {
  const { id } = cause.self
  return {
    id,
    status: 'queued',
    definition_id: '',
    definition_version: 0,
    cancel_requested: false,
    queue: spec.queue ?? 'default',
    initiated_by: initiated_by ?? initiator(cause),
    loop_id: loop.id,
    loop_version_id: loop.version_id,
    loop_version: loop.version,
    loop_name: loop.name,
    name: cut(loop.name, 160),
    attempt: 1,
    input: event,
    // In a run that a trigger started, the `meta` of the event takes precedence, so `run_id` and
    // `loop_id` may be those of another run. Expressions can always read the run's own ids from the
    // root `run`.
    meta:
      source.trigger_id !== undefined
        ? { run_id: id, loop_id: loop.id, ...meta, source }
        : { ...meta, run_id: id, loop_id: loop.id, source },
    config,
    source,
    credit_spent: 0,
    agent_turns_used: 0,
    ...allowances(spec, budget),
    ...(queue_reason && { queue_reason }),
    ...(plan_concurrency_limit !== undefined && { plan_concurrency_limit }),
    ...(parent && {
      parent_run_id: parent.run_id,
      parent_step_key: parent.step,
      ...(parent.loop_id !== undefined && { parent_loop_id: parent.loop_id }),
    }),
    created_at: timestamp(cause.at),
    updated_at: timestamp(cause.at),
  }
}
/**
 * Returns the initial engine of a run of a loop. `meta` and `config` stay empty, because
 * expressions read them from the record.
 */
const engineOf = ({
  source,
  actor,
  definitions,
  depth,
  chain,
  queue_reason,
  agent_id,
  repositories,
}: RunOpening): Engine => ({
  meta: {},
  config: {},
  priority: 0,
  position: 0,
  executed: 0,
  tries: 0,
  attempt: 1,
  ...(depth > 0 && { depth, cause_depth: depth }),
  ...(chain && { chain }),
  ...(source.trigger_id !== undefined && { trigger_id: source.trigger_id }),
  ...(Object.keys(definitions).length > 0 && { definitions }),
  ...(queue_reason && { held: 'start' as const }),
  ...(agent_id !== undefined && { agent_id }),
  ...(repositories?.length && { repositories }),
  ...(actor && { actor }),
})
const startedPayload = ({ state: { record } }: Draft): JsonObject => {
  const meta = record.meta ?? {}
  return {
    run_id: record.id,
    loop_id: record.loop_id,
    loop_version_id: record.loop_version_id,
    source: record.source,
    ...(meta['source_event_id'] !== undefined && { source_event_id: meta['source_event_id'] }),
    ...(record.source?.trigger_id !== undefined && { trigger_id: record.source.trigger_id }),
  }
}

/** Begins a held run, or continues it after a recovery. Other runs do not change. */
export function beginHeldRun(
  state: RunState | null,
  { later }: Told<'run.begin'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const held = state?.engine.held
  if (!state || !held || hasEnded(state) || state.record.cancel_requested) return emptyDecision
  const draft = newDraft(state, cause)
  if (held === 'start') {
    beginRun(draft, startedPayload(draft), later === true)
    return withoutReply(draft)
  }
  emit(draft, 'run.held', {
    run: { ...(state.record.queue_reason && { queue_reason: null }) },
    note: { engine: { held: null } },
  })
  if (current(draft)?.row?.status === 'failed') repeatStep(draft, held)
  if (later) pause(draft, current(draft)?.key ?? '')
  else advance(draft)
  return withoutReply(draft)
}

/** Records the reason why a held run has to wait. */
export function wait(
  state: RunState | null,
  { queue_reason }: Told<'run.hold'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state?.engine.held || hasEnded(state)) return emptyDecision
  const draft = newDraft(state, cause)
  emit(draft, 'run.held', { run: { queue_reason } })
  return withoutReply(draft)
}

/**
 * Requests cancellation, because a newer run replaces this run or its loop was deleted. The run is
 * cancelled in a separate commit.
 */
export function displace(
  state: RunState | null,
  { deleted }: Told<'run.displace'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state) || state.record.cancel_requested) return emptyDecision
  const draft = newDraft(state, cause)
  const reason = deleted ? 'the loop was deleted' : 'replaced by a newer run of the loop'
  emit(draft, 'run.cancel_requested', {
    payload: { reason },
    run: { cancel_requested: true, cancel_requested_at: timestamp(cause.at) },
    note: {
      engine: { cancel_reason: reason, ...(!deleted && { replaced: true }), more_at: cause.at + 1 },
    },
  })
  return withoutReply(draft)
}

/**
 * Ends a failed run after its loop has replied. If the failure paused the loop, the run's timeline
 * first shows the pause.
 */
export function finish(
  state: RunState | null,
  { paused }: Told<'run.end'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const leaving = state?.engine.leaving
  if (!state || !leaving) return emptyDecision
  const draft = newDraft(state, cause)
  if (paused) emit(draft, 'loop.auto_paused', { payload: { ...paused } })
  concludeRun(draft, leaving)
  return withoutReply(draft)
}
