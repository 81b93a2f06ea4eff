/**
 * The values of expressions: JSON values only. Numbers are JSON numbers (IEEE 754 doubles, so
 * `1 / 2` is 0.5). Null represents every unknown value.
 *
 * Invariants:
 * V1. Only own properties exist: `constructor` and `__proto__` are unknown names like any other.
 * V2. Operations whose cost grows with their operands charge the cost to the budget, so the work of
 *     an evaluation is bounded.
 */

/**
 * The error of an expression that cannot be compiled or evaluated, or whose budget is exhausted.
 * The message is for the author of the expression.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
}
/** Throws an ExpressionError with a message. */
export const fail = (message: string): never => {
  throw new ExpressionError(message)
}

/** The remainder of a budget for work or size. A unit of work takes about ten nanoseconds. */
export interface Budget {
  left: number
}
/** Work budget of one evaluation, or of one rendered document. */
export const WORK_BUDGET = 3_000_000
/** Maximum size of one result, or of all results in one document, as counted by `chargeSize`. */
export const MAX_SIZE = 2_000_000
/** Maximum length of a string that an operation may create, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 1_048_576
/** Maximum nesting of values that are compared, rendered or returned. */
export const MAX_DEPTH = 64

/**
 * Charges units to a budget.
 * @throws ExpressionError when the budget is exhausted.
 */
export function spend(
  budget: Budget,
  units: number,
  exhausted = 'the expression exceeds its computation limit',
): void {
  budget.left -= units
  if (budget.left < 0) fail(exhausted)
}

/** Returns the type name of a value for use in messages. */
export function typeName(
  value: unknown,
): 'null' | 'boolean' | 'number' | 'text' | 'list' | 'object' {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'list'
  switch (typeof value) {
    case 'string':
      return 'text'
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    default:
      return 'object'
  }
}

/**
 * Returns the property of an object with this name, or the element of a list with this index; null
 * if the value has no such property or element. An index may also be a numeric string, as in dotted
 * paths.
 */
export function member(value: unknown, key: unknown): unknown {
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) {
    const index = typeof key === 'string' && /^\d{1,10}$/.test(key) ? Number(key) : key
    return typeof index === 'number' ? (value[index] ?? null) : null
  }
  const name = typeof key === 'number' ? String(key) : key
  return typeof name === 'string' && Object.hasOwn(value, name)
    ? ((value as Record<string, unknown>)[name] ?? null)
    : null
}

/**
 * Whether two JSON values are deeply equal. Values of different types are not equal.
 * @throws ExpressionError when the budget is exhausted or the values are nested too deeply.
 */
export function equal(a: unknown, b: unknown, budget: Budget, depth = 0): boolean {
  spend(budget, 1)
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return (a ?? null) === (b ?? null)
  if (depth > MAX_DEPTH) fail(`values nested deeper than ${MAX_DEPTH} levels cannot be compared`)
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item, i) => equal(item, b[i], budget, depth + 1))
    )
  }
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every(
      (name) =>
        Object.hasOwn(b, name) &&
        equal(
          (a as Record<string, unknown>)[name],
          (b as Record<string, unknown>)[name],
          budget,
          depth + 1,
        ),
    )
  )
}

/**
 * Compares two numbers, or two strings by UTF-16 units. Returns -1, 0 or 1. Returns undefined if
 * one of the values is null, because every order comparison with null is false.
 * @throws ExpressionError for other types.
 */
export function order(a: unknown, b: unknown): -1 | 0 | 1 | undefined {
  if ((a ?? null) === null || (b ?? null) === null) return undefined
  if (
    (typeof a === 'number' && typeof b === 'number') ||
    (typeof a === 'string' && typeof b === 'string')
  )
    return a < b ? -1 : a > b ? 1 : 0
  return fail(`cannot order ${typeName(a)} and ${typeName(b)}`)
}

/**
 * Converts a value to text for embedding in other text: null and undefined become an empty text,
 * and lists and objects become compact JSON.
 */
export function textOf(value: unknown, budget: Budget): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object') return String(value)
  let text: string
  try {
    text = JSON.stringify(value)
  } catch {
    return fail('the value cannot be written as JSON: it is nested too deeply')
  }
  spend(budget, text.length >> 3)
  return text
}

/**
 * Charges the size of a result: one unit for each value and for each character of a string. A part
 * that occurs several times is charged each time, as in the serialized result.
 * @returns the value, with null for undefined.
 * @throws ExpressionError when the result is too large or nested too deeply.
 */
export function chargeSize(value: unknown, sizeBudget: Budget, depth = 0): unknown {
  spend(sizeBudget, typeof value === 'string' ? 1 + value.length : 1, 'the result is too large')
  if (typeof value !== 'object' || value === null) return value ?? null
  if (depth >= MAX_DEPTH) fail(`the result is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) for (const item of value) chargeSize(item, sizeBudget, depth + 1)
  else
    for (const name of Object.keys(value))
      chargeSize((value as Record<string, unknown>)[name], sizeBudget, depth + 1)
  return value
}

/**
 * Returns a string unchanged, and charges work in proportion to its length.
 * @throws ExpressionError if the string is longer than MAX_TEXT_LENGTH, or the budget is exhausted.
 */
export function chargeText(text: string, budget: Budget): string {
  spend(budget, 1 + (text.length >> 6))
  return text.length > MAX_TEXT_LENGTH
    ? fail(`the text would be longer than ${MAX_TEXT_LENGTH} characters`)
    : text
}
