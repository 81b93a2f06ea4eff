/**
 * Amounts of money. A credit is 0.01 USD. Amounts are stored as whole thousandths of a credit, so
 * that sums are exact, and are shown as credits with up to three decimals.
 */
import type { Price } from '../agents/models.ts'
import type { FieldError } from '../errors.ts'
import type { Usage } from '../sessions/schema.ts'

/** A budget as clients send it, in US dollars or in credits. */
export interface Budget {
  readonly budget_usd?: number
  readonly credit_budget?: number
}
/** Number of thousandths of a credit in one US dollar. */
const MILLI_PER_USD = 100_000

/**
 * Converts a budget to thousandths of a credit. Returns undefined when the budget is absent or 0.
 */
export function milliOf({ budget_usd, credit_budget }: Budget): number | undefined {
  const milli =
    budget_usd === undefined ? (credit_budget ?? 0) * 1000 : Math.round(budget_usd * MILLI_PER_USD)
  return milli > 0 ? milli : undefined
}
/** Converts thousandths of a credit to credits. */
export const creditsOf = (milli: number): number => milli / 1000

/** Returns the cost of tokens in thousandths of a credit, rounded up. */
export function costOf(
  {
    input_tokens = 0,
    output_tokens = 0,
    cache_read_input_tokens = 0,
    cache_creation_input_tokens = 0,
  }: Usage,
  { input, output, cache_read = input }: Price,
): number {
  const usd =
    ((input_tokens + cache_creation_input_tokens) * input +
      cache_read_input_tokens * cache_read +
      output_tokens * output) /
    1e6
  // Without the subtraction, a floating-point error could cause an exact amount to be rounded up.
  return Math.ceil(usd * MILLI_PER_USD - 1e-9)
}

/** Returns the faults of a budget in a request. */
export function checkBudget({ budget_usd, credit_budget }: Budget): FieldError[] {
  const finer =
    Math.abs((budget_usd ?? 0) * MILLI_PER_USD - Math.round((budget_usd ?? 0) * MILLI_PER_USD)) >
    1e-6
  return [
    ...(budget_usd !== undefined && credit_budget !== undefined
      ? [{ field: 'credit_budget', message: 'give budget_usd or credit_budget, not both' }]
      : []),
    ...(finer
      ? [{ field: 'budget_usd', message: 'must be a multiple of 0.00001', actual: budget_usd }]
      : []),
  ]
}
