/**
 * Reports from runs to their loop: a run has ended, was recovered, or has spent credits. When a run
 * has ended, waiting runs start, and a loop whose runs fail repeatedly is paused. This file also
 * handles the loop's timer.
 */

import { timestamp } from '../../protocol/common.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopCommands, LoopEvent } from '../../protocol/loops/events.ts'
import type { Cause, Decision } from '../actor.ts'
import { admitWaiting, continueDisplacing, dismiss, judgeReturning } from './admit.ts'
import { haltIfSpent, updateHalts } from './budget.ts'
import { emit, emptyDecision, type LoopOptions, newDraft, tellRun, withReply } from './draft.ts'
import { requestSlot, returnSlot } from './slots.ts'
import { standingEvents } from './standing.ts'
import { fireSchedules } from './start.ts'
import { isExisting, type LoopState, WINDOW_MS } from './state.ts'
import { derivedEvents } from './triggers.ts'

type Told<N extends keyof LoopCommands> = LoopCommands[N]['input']

/**
 * Handles a run that has ended, or that has failed and will end when it receives `run.end`. A
 * completed run resets the count of consecutive failures. A cancelled run does not change it.
 */
export function left(
  options: LoopOptions,
  state: LoopState,
  { run_id, status, depth, chain, record }: Told<'run.left'>,
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  if (
    getOwn(state.active, run_id) === undefined &&
    !state.line.some((waiting) => waiting.run_id === run_id)
  ) {
    if (status === 'failed') tellRun(draft, run_id, 'run.end', {})
    return withReply(draft, undefined)
  }
  returnSlot(draft, run_id)
  const failures =
    status === 'failed' ? state.failures + 1 : status === 'completed' ? 0 : state.failures
  emit(draft, { type: 'run.left', run_id, failures })
  const threshold = state.record?.limits?.pause_after_consecutive_failures ?? 0
  const paused =
    status === 'failed' &&
    threshold > 0 &&
    failures >= threshold &&
    state.record?.status === 'active'
      ? { consecutive_failures: failures, threshold }
      : undefined
  if (paused) {
    emit(draft, {
      type: 'loop.auto_paused',
      id: cause.self.id,
      run_id,
      ...paused,
      ...(depth !== undefined && { depth }),
      ...(chain && { chain }),
      ...(record && { record }),
      updated_at: timestamp(cause.at),
    })
    for (const event of derivedEvents(state, draft.state, '', cause)) emit(draft, event)
  }
  if (status === 'failed') tellRun(draft, run_id, 'run.end', { ...(paused && { paused }) })
  admitWaiting(draft)
  return withReply(draft, undefined)
}

/**
 * Handles the recovery of a failed run. The run may have to wait, but is never rejected and
 * displaces no run. The run itself refuses a recovery while the daily budget is spent. If the budget
 * was spent in the meantime, the run ends before its next step.
 */
export function returns(
  options: LoopOptions,
  state: LoopState,
  { run_id, trigger_id }: Told<'run.returns'>,
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  const verdict = judgeReturning(draft, trigger_id)
  const of = {
    run_id,
    ...(trigger_id !== undefined && { trigger_id }),
    last_run_at: timestamp(cause.at),
  }
  if ('waits' in verdict) {
    emit(draft, { type: 'run.lined_up', ...of, reason: verdict.waits })
    tellRun(draft, run_id, 'run.hold', { queue_reason: verdict.waits })
  } else {
    emit(draft, { type: 'run.admitted', ...of })
    haltIfSpent(draft, run_id)
    if (requestSlot(draft, run_id))
      tellRun(draft, run_id, 'run.hold', { queue_reason: 'plan_concurrency' })
    else tellRun(draft, run_id, 'run.begin', {})
  }
  return withReply(draft, undefined)
}

/**
 * Records the spending of a run. If the daily budget is spent then, the active runs of the loop do
 * not start any more steps.
 */
export function spend(
  options: LoopOptions,
  state: LoopState,
  { run_id, milli, continues }: Told<'run.spent'>,
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  emit(draft, { type: 'credits.spent', at: Math.floor(cause.at / WINDOW_MS) * WINDOW_MS, milli })
  updateHalts(draft, { run_id, ...(continues && { continues }) })
  return withReply(draft, undefined)
}

/** Continues work that was left to a later commit, and fires schedules that are due. */
export function wake(
  options: LoopOptions,
  state: LoopState,
  _: unknown,
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  if (state.more_at !== undefined && state.more_at <= cause.at) {
    emit(draft, { type: 'loop.busy', more_at: null })
    if (state.deleted) dismiss(draft)
    else {
      updateHalts(draft)
      continueDisplacing(draft)
    }
    admitWaiting(draft)
  }
  // A loop that an older release saved may not have reported its summary to its project yet.
  if (isExisting(state) && state.standing.version === 0)
    for (const event of standingEvents(state, draft.state, cause.self.id, '')) emit(draft, event)
  fireSchedules(draft)
  return draft.events.length > 0 ? withReply(draft, undefined) : emptyDecision
}
