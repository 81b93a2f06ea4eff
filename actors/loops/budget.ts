/**
 * The daily budget of a loop. While it is spent, no run of the loop starts or leaves the queue, and
 * the active runs are halted: each of them ends before its next step.
 *
 * Invariants:
 * B1. A halt carries the time at which the budget is available again. From then on, the run
 *     continues as if it had not been halted. If more spending or a change of the limits moves this
 *     time, the loop sends the new time to all active runs. A time that is not in the future
 *     releases the run.
 * B2. A run that becomes active while the budget is spent is halted in the same commit.
 */

import type { SpentBudget } from '../../protocol/access/directory.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { creditsOf, milliOf } from '../../protocol/loops/credits.ts'
import { continueAt, type Draft, emit, tellRun } from './draft.ts'
import { DAY_MS, type LoopState, spentToday } from './state.ts'

/** Maximum number of runs that one commit halts or releases. */
const MAX_HALTED = 50

/** A spent daily budget. Amounts are in credits. */
interface Exhaustion {
  readonly used: number
  readonly limit: number
  /** The time in Unix milliseconds at which the budget is available again without new spending. */
  readonly until: number
}

/** A run that has spent credits. `continues`: its agent continues the turn with tool calls. */
interface Spender {
  readonly run_id: string
  readonly continues?: true
}

const dailyBudget = ({ record }: LoopState): number | undefined => {
  const { daily_budget_usd, daily_credit_budget } = record?.limits ?? {}
  return milliOf({
    ...(daily_budget_usd !== undefined && { budget_usd: daily_budget_usd }),
    ...(daily_credit_budget !== undefined && { credit_budget: daily_credit_budget }),
  })
}

/** Returns the spent daily budget, or undefined if the loop may spend more at this time. */
export function exhaustion(state: LoopState, now: number): Exhaustion | undefined {
  const limit = dailyBudget(state)
  if (limit === undefined) return undefined
  const used = spentToday(state, now)
  let left = used
  let until = now
  for (const [at, milli] of state.spent) {
    if (left < limit) break
    if (at + DAY_MS <= now) continue
    left -= milli
    until = at + DAY_MS
  }
  return until > now ? { used: creditsOf(used), limit: creditsOf(limit), until } : undefined
}

/**
 * Returns the details of the refusal `budget_exhausted`, or undefined if the loop may spend more at
 * this time.
 */
export function spentBudget(state: LoopState, now: number): SpentBudget | undefined {
  const spent = exhaustion(state, now)
  return spent && { daily_credit_budget: spent.limit, credit_spent: spent.used }
}

/**
 * Halts active runs while the budget is spent, and releases halted runs when it is available
 * earlier than they were told. Runs beyond the limit of one commit follow in the next commit.
 * @param spender the run whose spending the loop has just recorded. It is halted before the others.
 */
export function updateHalts(draft: Draft, spender?: Spender): void {
  const { at } = draft.cause
  const { active, halted } = draft.state
  const spent = exhaustion(draft.state, at)
  if (!spent && !halted) return
  const until = spent?.until ?? at
  const isOutdated = (run_id: string): boolean =>
    Math.max(getOwn(halted ?? {}, run_id) ?? 0, at) !== until
  const first = Object.keys(active).filter((run_id) => run_id === spender?.run_id && spent)
  const others = Object.keys(active).filter((run_id) => !first.includes(run_id))
  const outdated = [...first, ...others.filter(isOutdated)]
  halt(draft, outdated.slice(0, MAX_HALTED), spent, spender)
  if (outdated.length > MAX_HALTED) continueAt(draft, at + 1)
}

/** Halts a run that becomes active while the budget is spent. */
export function haltIfSpent(draft: Draft, run_id: string): void {
  const spent = exhaustion(draft.state, draft.cause.at)
  if (spent) halt(draft, [run_id], spent)
}

function halt(
  draft: Draft,
  run_ids: readonly string[],
  spent: Exhaustion | undefined,
  spender?: Spender,
): void {
  if (run_ids.length === 0) return
  const { used, limit, until }: Exhaustion = spent ?? {
    used: creditsOf(spentToday(draft.state, draft.cause.at)),
    limit: creditsOf(dailyBudget(draft.state) ?? 0),
    until: draft.cause.at,
  }
  emit(draft, { type: 'runs.halted', run_ids, until })
  for (const run_id of run_ids)
    tellRun(draft, run_id, 'run.halt', {
      used,
      limit,
      until,
      ...(run_id === spender?.run_id && spender.continues && { continues: true }),
    })
}
