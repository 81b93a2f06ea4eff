/**
 * Limits of a run, checked before every step outside of the cleanup. A run that a limit stopped can
 * be recovered only if the recovery raises the limit (commands/control.ts), with two exceptions.
 * The step limit cannot be raised, so a run that it stopped cannot be recovered. The daily budget
 * belongs to the loop, so a run that it stopped can be recovered when the loop has budget again.
 *
 * When a loop has spent its daily budget, it halts all of its active runs (../loops/budget.ts). The
 * halt states when the budget is available again. A run that reaches its next step at that time or
 * later continues.
 *
 * Spending is the sum of the reported usages, so calls in progress may exceed the budget.
 */
import { type JsonObject, parseDuration, parseTimestamp, timestamp } from '../../protocol/common.ts'
import type { StopReason } from '../../protocol/loops/run.ts'
import { plural } from '../../protocol/naming.ts'
import { current, type Draft, emit, withdraw } from './draft.ts'
import { failRun } from './engine/ending.ts'
import { isActive, leaveBranches } from './engine/leave-branches.ts'
import { failStep } from './engine/outcome.ts'
import { endWait } from './engine/resume.ts'
import { aboutOf } from './outbound/source-events.ts'
import { abandonWork } from './steps/action.ts'

/**
 * Maximum number of step attempts of one run, unless its definition sets another maximum. Without a
 * maximum, recoveries could repeat steps indefinitely. Steps of branches and items count only
 * toward a maximum that the definition sets, because a step may have more items than this default.
 */
export const MAX_EXECUTED = 1000
const stepsAllowed = ({ state }: Draft): number => state.spec.limits?.max_steps ?? MAX_EXECUTED
const stepsUsed = ({ state: { spec, engine } }: Draft): number =>
  engine.executed - (spec.limits?.max_steps === undefined ? (engine.aside ?? 0) : 0)

/** Whether the time limit of the run has passed. It does not apply to the cleanup. */
export const isWallClockPassed = ({ state, cause }: Draft): boolean =>
  !state.engine.ending && (state.engine.wall_deadline ?? Infinity) <= cause.at
/**
 * Whether the current step has begun and has not ended. A step that has ended in an earlier attempt
 * of the run is not active until its next attempt begins.
 */
const isStepActive = (draft: Draft): boolean => {
  const row = current(draft)?.row
  return row !== undefined && isActive(row)
}
/**
 * Whether the next attempt would exceed the step limit. If `step.retried` has already begun an
 * attempt, this attempt is checked instead.
 */
const stepLimitReached = (draft: Draft): boolean =>
  stepsUsed(draft) +
    (isStepActive(draft) ||
    (draft.at !== undefined && draft.state.spec.limits?.max_steps === undefined)
      ? 0
      : 1) >
  stepsAllowed(draft)
const asksAgent = (draft: Draft): boolean => {
  const step = current(draft)?.step
  return (
    step?.kind === 'agent' ||
    (step?.kind === 'check' && step.config.checks.some(({ kind }) => kind === 'agent'))
  )
}

/**
 * Ends the run when a limit does not allow the current step to begin.
 * @returns whether the run was ended.
 */
export function stopAtLimit(draft: Draft): boolean {
  if (draft.state.engine.ending) return false
  const { max_agent_turns = 0, agent_turns_used = 0 } = draft.state.record
  if (isWallClockPassed(draft)) exceedWallClock(draft)
  else if (stepLimitReached(draft))
    stop(
      draft,
      'step_limit_reached',
      { limit_kind: 'steps', used: stepsUsed(draft), limit: stepsAllowed(draft) },
      `The run began more than ${plural(stepsAllowed(draft), 'step')}`,
    )
  else if (stopIfOverspent(draft)) return true
  else if (
    max_agent_turns > 0 &&
    (agent_turns_used > max_agent_turns ||
      (agent_turns_used === max_agent_turns && asksAgent(draft)))
  ) {
    stop(
      draft,
      'turn_limit_reached',
      { limit_kind: 'agent_turns', used: agent_turns_used, limit: max_agent_turns },
      `The run used ${agent_turns_used} of ${max_agent_turns} agent turns`,
    )
  } else return false
  return true
}

/**
 * Ends the run, even while a step is active, when its own budget or the daily budget of its loop is
 * spent.
 * @returns whether a budget is spent.
 */
export function stopIfOverspent(draft: Draft): boolean {
  const { credit_budget = 0, credit_spent = 0 } = draft.state.record
  const halted = haltOf(draft)
  if (credit_budget > 0 && credit_spent >= credit_budget)
    exceedBudget(draft, credit_spent, credit_budget)
  else if (halted)
    stop(
      draft,
      'budget_exceeded',
      { limit_kind: 'daily_budget', ...halted },
      'The loop has spent its daily budget',
    )
  else return false
  return true
}

/**
 * Returns the amounts of the loop's spent daily budget, or undefined if it is not spent. The amounts
 * are absent in runs of older releases.
 */
function haltOf({ state, cause }: Draft): { used?: number; limit?: number } | undefined {
  const { spent_out } = state.engine
  if (spent_out === undefined || spent_out === true) return spent_out && {}
  const { used, limit, until = Infinity } = spent_out
  return until > cause.at ? { used, limit } : undefined
}

/** Ends the run, even while a step is active, because its time limit has passed. */
export function exceedWallClock(draft: Draft): void {
  const started = parseTimestamp(draft.state.record.started_at ?? '') ?? draft.cause.at
  const seconds = (at: number): number => Math.round((at - started) * 1000) / 1_000_000
  const { wall_deadline = draft.cause.at } = draft.state.engine
  const limit = seconds(wall_deadline)
  // Whether the deadline results from the time limit in the run's spec. A recovery sets a new
  // deadline, which is measured from the recovery instead of the start of the run.
  const own =
    Math.abs(
      wall_deadline -
        started -
        (parseDuration(draft.state.spec.limits?.wall_clock_timeout ?? '0') ?? 0),
    ) <= 1
  stop(
    draft,
    'wall_clock_exceeded',
    { limit_kind: 'wall_clock', used: seconds(draft.cause.at), limit },
    own
      ? `The run took longer than ${plural(limit, 'second')}`
      : `The run did not end by ${timestamp(Math.ceil(wall_deadline))}, the deadline set by its recovery`,
  )
}

function exceedBudget(draft: Draft, credit_spent: number, credit_budget: number): void {
  const step = current(draft)?.key
  const percent_used = Math.floor((credit_spent / credit_budget) * 100)
  emit(draft, 'run.budget_exceeded', {
    ...(step !== undefined && { step }),
    payload: { ...(step !== undefined && { step }), credit_spent, credit_budget, percent_used },
    note: { about: aboutOf(draft.state) },
  })
  stop(
    draft,
    'budget_exceeded',
    { limit_kind: 'budget', used: credit_spent, limit: credit_budget },
    `The run spent ${credit_spent} of ${credit_budget} credits`,
  )
}

function stop(draft: Draft, reason: StopReason, reached: JsonObject, error: string): void {
  draft.at = undefined
  const fault = { error_type: reason, error }
  const at = current(draft)
  emit(draft, 'limit.reached', {
    ...(at && { step: at.key }),
    payload: { ...(at && { step: at.key }), ...reached },
  })
  leaveBranches(draft, fault.error)
  abandonWork(draft, fault)
  withdraw(draft, fault.error)
  endWait(draft, 'wait.closed', { reason: fault.error_type })
  if (isStepActive(draft)) failStep(draft, fault, true, {}, reason)
  else failRun(draft, fault, at?.key, reason)
}
