/** Guardrails of a run. A run that one of them stopped goes on only when a recovery raises the limit. */
import { parseTimestamp, type Open } from '../../protocol/common.ts'
import { current, emit, withdraw, type Draft } from './draft.ts'
import { endWait, failRun, failStep, type Fault } from './outcome.ts'
import { abandonJob } from './steps/action.ts'

/** Attempts of steps that one run may begin in its whole life. */
export const MAX_EXECUTED = 1000
export const WALL_CLOCK = 'wall_clock_exceeded'
export const STEP_LIMIT = 'step_limit_reached'

/** Whether the run's time is over. */
export const wallClockPassed = ({ state, cause }: Draft): boolean => (state.engine.wall_deadline ?? Infinity) <= cause.at
/** Whether the attempt that is about to begin, or that `step.retried` has begun, is one too many. */
export const stepLimitReached = (on: Draft): boolean => on.state.engine.executed + (current(on)?.row ? 0 : 1) > MAX_EXECUTED

/** End the run because its time is over, also in the middle of a step. */
export function exceedWallClock(on: Draft): void {
  const started = parseTimestamp(on.state.record.started_at ?? '') ?? on.cause.at
  const seconds = (at: number): number => Math.round((at - started) / 1000)
  const limit = seconds(on.state.engine.wall_deadline ?? on.cause.at)
  stop(on, { limit_kind: 'wall_clock', used: seconds(on.cause.at), limit }, { error_type: WALL_CLOCK, error: `The run took longer than ${limit} seconds` })
}

/** End the run because it has begun too many attempts of steps. */
export const exceedStepLimit = (on: Draft): void =>
  stop(on, { limit_kind: 'steps', used: on.state.engine.executed, limit: MAX_EXECUTED }, { error_type: STEP_LIMIT, error: `The run began more than ${MAX_EXECUTED} steps` })

function stop(on: Draft, reached: Open, fault: Fault): void {
  const at = current(on)
  emit(on, 'limit.reached', { ...(at && { step: at.key }), payload: { ...(at && { step: at.key }), ...reached } })
  abandonJob(on, fault)
  withdraw(on, fault.error)
  endWait(on, 'wait.closed', { reason: fault.error_type })
  if (at?.row) failStep(on, fault, true)
  else failRun(on, fault)
}
