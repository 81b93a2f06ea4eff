/**
 * Fills placeholders in the texts of scripts: `{{text}}`, `{{1}}` (the text that the first star
 * matched), `{{turn}}`, `{{step}}`, `{{result}}`, `{{result.path.to.it}}`, `{{results.0.path}}`. A
 * missing value becomes an empty text. In call arguments (`fillAll`), a text that consists of a
 * single placeholder keeps the type of the value.
 *
 * Invariant: the filled texts of one answer have at most `MAX_FILLED_LENGTH` characters. A short
 * script could otherwise repeat a long text until the process has no memory left.
 */
import { getOwn } from '../../../protocol/lookup.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { ExecutorFault } from '../faults.ts'
import type { Facts } from './conversation.ts'

/**
 * Returns the texts that the stars of a pattern match, or undefined when the pattern does not
 * match. Matching ignores case, and never backtracks.
 */
export function starsIn(pattern: string, text: string): readonly string[] | undefined {
  const [whole, parts] = [text.trim(), pattern.trim().split('*')]
  const low = whole.toLowerCase()
  const first = (parts[0] ?? '').toLowerCase()
  if (parts.length === 1) return low === first ? [] : undefined
  const last = (parts.at(-1) ?? '').toLowerCase()
  if (low.length < first.length + last.length || !low.startsWith(first) || !low.endsWith(last))
    return undefined
  const end = low.length - last.length
  const found: string[] = []
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const at = low.indexOf(part.toLowerCase(), from)
    if (at < 0 || at + part.length > end) return undefined
    found.push(whole.slice(from, at))
    from = at + part.length
  }
  return [...found, whole.slice(from, end)]
}

type Scope = Readonly<Record<string, unknown>>
const json = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
/**
 * Returns the values of the placeholders.
 * @param stars the texts that the stars of the matching rule matched.
 */
export function scopeOf({ text, turn, step, results }: Facts, stars: readonly string[]): Scope {
  const values = results.map((result) => json(result.text))
  return {
    text,
    turn,
    step,
    results: values,
    result: values[0] ?? '',
    ...Object.fromEntries(stars.map((star, index) => [String(index + 1), star])),
  }
}

const hole = /\{\{\s*([A-Za-z0-9_]+(?:\.[^\s{}.]+)*)\s*\}\}/g
const at = (scope: Scope, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null
          ? getOwn(value as Record<string, unknown>, name)
          : undefined,
      scope,
    )
const shown = (value: unknown): string =>
  value === undefined || value === null
    ? ''
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value)

/** Maximum number of characters of the filled texts of one answer. */
const MAX_FILLED_LENGTH = sizes.result
/** The characters that the texts of an answer may still have. */
export interface FillBudget {
  left: number
}
export const newFillBudget = (): FillBudget => ({ left: MAX_FILLED_LENGTH })
/** @throws ExecutorFault `script_invalid` when the budget is exceeded. */
function spend(budget: FillBudget, text: string): string {
  budget.left -= text.length
  if (budget.left < 0)
    throw new ExecutorFault(
      'script_invalid',
      `The script fills its texts with more than ${MAX_FILLED_LENGTH} characters.`,
    )
  return text
}

/**
 * Fills the placeholders of a text.
 * @throws ExecutorFault `script_invalid` when the budget is exceeded.
 */
export const fill = (template: string, scope: Scope, budget = newFillBudget()): string =>
  spend(budget, template).replace(hole, (_, path: string) => spend(budget, shown(at(scope, path))))
/**
 * Fills the placeholders in every string within a value.
 * @throws ExecutorFault `script_invalid` when the budget is exceeded.
 */
export function fillAll(value: unknown, scope: Scope, budget = newFillBudget()): unknown {
  if (typeof value === 'string') {
    const [only] = value.matchAll(hole)
    if (!only || only[0] !== value.trim()) return fill(value, scope, budget)
    const found = at(scope, only[1] ?? '') ?? ''
    spend(budget, shown(found))
    return found
  }
  if (Array.isArray(value)) return value.map((one) => fillAll(one, scope, budget))
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, fillAll(one, scope, budget)]),
      )
    : value
}
