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
  draft,
  emit,
  emptyDecision,
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
  const on = draft(state, cause)
  const { more_at, ending } = state.engine
  const more = (more_at ?? Infinity) <= cause.at
  if (more) emit(on, 'run.paused', { note: { engine: { more_at: null } } })
  if (state.record.cancel_requested && !ending) {
    if (more) stopRun(on)
    return withoutReply(on)
  }
  if (isWallClockPassed(on)) exceedWallClock(on)
  let moved = more
  for (const [at, { wait }] of progressesOf(on.state)) {
    if (hasEnded(on.state) || isFull(on)) break
    if ((wait?.due ?? Infinity) > cause.at) continue
    on.at = at
    if (progressOf(on).wait !== wait) continue
    end(on)
    moved = true
  }
  on.at = undefined
  if (moved || on.events.length > 0) advance(on)
  return withoutReply(on)
}

/** Performs a cancellation that the parent or the loop requested in an earlier commit. */
function stopRun(on: Draft): void {
  stopWork(on)
  if (holdsWork(on.state)) return
  cancelRun(on)
  advance(on)
}

/** Ends the current wait, which is due. */
function end(on: Draft): void {
  const { wait } = progressOf(on)
  if (!wait) return
  const sleeps = wait.kind === 'timer' && !wait.times_out
  if (sleeps || wait.kind === 'retry' || wait.kind === 'pause') {
    on.why = { reason: wait.kind }
    endWait(on, 'wait.resumed')
    resumeStep(on)
    if (sleeps) completeStep(on, {})
    return
  }
  const { at } = on
  const fault = timeout(wait.step)
  if (at === undefined) leaveBranches(on, fault.error)
  on.at = at
  abandonWork(on, fault)
  withdraw(on, fault.error)
  endWait(on, 'wait.timed_out', { reason: fault.error_type })
  on.why = { reason: 'timeout' }
  if (current(on)?.step.timeout?.on_timeout !== 'continue') {
    failStep(on, fault, wait.kind === 'worker')
    if (on.events.at(-1)?.type === 'step.retried') on.why = { reason: 'retry' }
    return
  }
  resumeStep(on)
  completeStep(on, { timed_out: true })
}
