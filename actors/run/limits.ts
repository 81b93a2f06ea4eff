/** Guardrails of a run. A run that one of them stopped goes on only when a recovery raises the limit. */
import { parseTimestamp, type Open } from '../../protocol/common.ts'
import { current, emit, withdraw, type Draft } from './draft.ts'
import { leaveBranches } from './branches.ts'
import { failRun, type Fault } from './ending.ts'
import { endWait, failStep } from './outcome.ts'
import { abandon } from './steps/action.ts'

/** Attempts of steps that one run may begin in its whole life, unless its workflow says otherwise. */
export const MAX_EXECUTED = 1000
const stepsAllowed = ({ state }: Draft): number => state.spec.limits?.max_steps ?? MAX_EXECUTED
export const WALL_CLOCK = 'wall_clock_exceeded'
export const STEP_LIMIT = 'step_limit_reached'

/** Whether the run's time is over. */
export const wallClockPassed = ({ state, cause }: Draft): boolean => !state.engine.ending && (state.engine.wall_deadline ?? Infinity) <= cause.at
/** Whether the attempt that is about to begin, or that `step.retried` has begun, is one too many. */
export const stepLimitReached = (on: Draft): boolean => !on.state.engine.ending && on.state.engine.executed + (current(on)?.row ? 0 : 1) > stepsAllowed(on)

/** End the run because its time is over, also in the middle of a step. */
export function exceedWallClock(on: Draft): void {
  const started = parseTimestamp(on.state.record.started_at ?? '') ?? on.cause.at
  const seconds = (at: number): number => Math.round((at - started) / 1000)
  const limit = seconds(on.state.engine.wall_deadline ?? on.cause.at)
  stop(on, { limit_kind: 'wall_clock', used: seconds(on.cause.at), limit }, { error_type: WALL_CLOCK, error: `The run took longer than ${limit} seconds` })
}

/** End the run because it has begun too many attempts of steps. */
export const exceedStepLimit = (on: Draft): void =>
  stop(on, { limit_kind: 'steps', used: on.state.engine.executed, limit: stepsAllowed(on) }, { error_type: STEP_LIMIT, error: `The run began more than ${stepsAllowed(on)} steps` })

function stop(on: Draft, reached: Open, fault: Fault): void {
  const at = current(on)
  emit(on, 'limit.reached', { ...(at && { step: at.key }), payload: { ...(at && { step: at.key }), ...reached } })
  leaveBranches(on, fault.error)
  abandon(on, fault)
  withdraw(on, fault.error)
  endWait(on, 'wait.closed', { reason: fault.error_type })
  if (at?.row) failStep(on, fault, true)
  else failRun(on, fault)
}
