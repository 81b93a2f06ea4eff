/** A time has come: a sleep or a retry delay is over, a step has timed out, or the run as a whole. Waking early or twice is harmless. */
import type { RunEvent } from '../../protocol/api/runs.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import { draft, nothing, silently, withdraw } from './draft.ts'
import { exceedWallClock, wallClockPassed } from './limits.ts'
import { completeStep, endWait, failStep, resumeStep, type Fault } from './outcome.ts'
import { hasEnded, type RunState } from './state.ts'
import { abandonJob } from './steps/action.ts'

const timeout = (at: string): Fault => ({ error_type: 'timeout', error: `The step ${at} did not end in time` })

/** Do what is due at `cause.at`. The limit on the whole run comes first. */
export function wake(state: RunState | null, _: unknown, cause: Cause): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state) || state.record.cancel_requested) return nothing
  const on = draft(state, cause)
  const { wait } = state.engine
  if (wallClockPassed(on)) exceedWallClock(on)
  else if (wait?.due !== undefined && wait.due <= cause.at) {
    if (wait.kind === 'timer' || wait.kind === 'retry' || wait.kind === 'pause') {
      on.why = { reason: wait.kind }
      endWait(on, 'wait.resumed')
      resumeStep(on)
      if (wait.kind === 'timer') completeStep(on, {})
    } else {
      const fault = timeout(wait.step)
      abandonJob(on, fault)
      withdraw(on, fault.error)
      endWait(on, 'wait.timed_out', { reason: fault.error_type })
      on.why = { reason: 'retry' }
      failStep(on, fault, wait.kind === 'worker')
    }
    advance(on)
  }
  return silently(on)
}
