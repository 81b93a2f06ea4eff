/**
 * Timers of a run. They fire at the end of a sleep, a retry delay or a pause, and when a step or
 * the whole run times out. They also fire when work that was left to a later commit is due. An
 * early or repeated wake is harmless.
 */
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  current,
  type Draft,
  emit,
  emptyDecision,
  newDraft,
  progressOf,
  withdraw,
  withoutReply,
} from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { isFull } from '../engine/branches.ts'
import { cancelRun, type RunFault } from '../engine/ending.ts'
import { leaveBranches } from '../engine/leave-branches.ts'
import { completeStep, failStep } from '../engine/outcome.ts'
import { holdsWork } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { stopWork } from '../engine/stop.ts'
import { exceedWallClock, isWallClockPassed } from '../limits.ts'
import { hasEnded, progressesOf, type RunState } from '../state.ts'
import { abandonWork } from '../steps/action.ts'

const timeout = (at: string): RunFault => ({
  error_type: 'timeout',
  error: `The step ${at} did not end in time`,
})

/**
 * Performs the work that is due at `cause.at`. The time limit of the whole run is checked before
 * those of its steps.
 */
export function wake(
  state: RunState | null,
  _: unknown,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state)) return emptyDecision
  const draft = newDraft(state, cause)
  const { more_at, ending } = state.engine
  const more = (more_at ?? Infinity) <= cause.at
  if (more) emit(draft, 'run.paused', { note: { engine: { more_at: null } } })
  if (state.record.cancel_requested && !ending) {
    if (more) stopRun(draft)
    return withoutReply(draft)
  }
  if (isWallClockPassed(draft)) exceedWallClock(draft)
  let moved = more
  for (const [at, { wait }] of progressesOf(draft.state)) {
    if (hasEnded(draft.state) || isFull(draft)) break
    if ((wait?.due ?? Infinity) > cause.at) continue
    draft.at = at
    if (progressOf(draft).wait !== wait) continue
    end(draft)
    moved = true
  }
  draft.at = undefined
  if (moved || draft.events.length > 0) advance(draft)
  return withoutReply(draft)
}

/** Performs a cancellation that the parent or the loop requested in an earlier commit. */
function stopRun(draft: Draft): void {
  stopWork(draft)
  if (holdsWork(draft.state)) return
  cancelRun(draft)
  advance(draft)
}

/** Ends the current wait, which is due. */
function end(draft: Draft): void {
  const { wait } = progressOf(draft)
  if (!wait) return
  const sleeps = wait.kind === 'timer' && !wait.times_out
  if (sleeps || wait.kind === 'retry' || wait.kind === 'pause') {
    draft.why = { reason: wait.kind }
    endWait(draft, 'wait.resumed')
    resumeStep(draft)
    if (sleeps) completeStep(draft, {})
    return
  }
  const { at } = draft
  const fault = timeout(wait.step)
  if (at === undefined) leaveBranches(draft, fault.error)
  draft.at = at
  abandonWork(draft, fault)
  withdraw(draft, fault.error)
  endWait(draft, 'wait.timed_out', { reason: fault.error_type })
  draft.why = { reason: 'timeout' }
  if (current(draft)?.step.timeout?.on_timeout !== 'continue') {
    failStep(draft, fault, wait.kind === 'worker')
    if (draft.events.at(-1)?.type === 'step.retried') draft.why = { reason: 'retry' }
    return
  }
  resumeStep(draft)
  completeStep(draft, { timed_out: true })
}
