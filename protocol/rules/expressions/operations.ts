/**
 * The operators and functions of expressions. Each throws an ExpressionError for types that it does
 * not support.
 */
import { isJsonObject } from '../json-object.ts'
import { test } from '../regex/automaton.ts'
import { compilePattern, type Pattern } from '../regex/pattern.ts'
import { type Budget, chargeText, equal, fail, spend, textOf, typeName } from './values.ts'

const finite = (result: number, operator: string): number =>
  Number.isFinite(result) ? result + 0 : fail(`the result of ${operator} is not a finite number`)

/**
 * Implements `+`: the sum of two numbers, the concatenation of two lists, or the concatenation of a
 * string with the text of any value.
 */
export function add(a: unknown, b: unknown, budget: Budget): unknown {
  if (typeof a === 'number' && typeof b === 'number') return finite(a + b, '+')
  if (typeof a === 'string' || typeof b === 'string')
    return chargeText(textOf(a, budget) + textOf(b, budget), budget)
  if (!Array.isArray(a) || !Array.isArray(b))
    return fail(`cannot add ${typeName(a)} and ${typeName(b)}`)
  spend(budget, a.length + b.length)
  return [...a, ...b]
}

/**
 * Implements `-`, `*`, `/` and `%` for numbers. Division is real division. The result of `%` has
 * the sign of the left operand.
 */
export function arithmetic(operator: '-' | '*' | '/' | '%', a: unknown, b: unknown): number {
  if (typeof a !== 'number' || typeof b !== 'number')
    return fail(`cannot compute ${typeName(a)} ${operator} ${typeName(b)}`)
  if (b === 0 && (operator === '/' || operator === '%')) return fail('division by zero')
  return finite(
    operator === '-' ? a - b : operator === '*' ? a * b : operator === '/' ? a / b : a % b,
    operator,
  )
}

export const negate = (value: unknown): number =>
  typeof value === 'number' ? 0 - value : fail(`cannot negate ${typeName(value)}`)

/** Returns the truth value of a condition. Null is false. */
export const truthValue = (value: unknown): boolean =>
  typeof value === 'boolean'
    ? value
    : (value ?? null) === null
      ? false
      : fail(`expected true or false, got ${typeName(value)}`)

/**
 * Implements `item in container`: whether `item` is an element of a list, a property name of an
 * object, or part of a string. Null contains nothing.
 */
export function isIn(item: unknown, container: unknown, budget: Budget): boolean {
  if ((container ?? null) === null) return false
  if (Array.isArray(container)) return container.some((element) => equal(element, item, budget))
  if (isJsonObject(container)) return typeof item === 'string' && Object.hasOwn(container, item)
  return typeof container === 'string'
    ? contains(container, item, budget)
    : fail(`cannot access a member of ${typeName(container)}`)
}

/**
 * Implements `a contains b`: whether `b` is part of the string `a`, or an element of the list `a`.
 */
function contains(whole: unknown, part: unknown, budget: Budget): boolean {
  if (Array.isArray(whole)) return isIn(part, whole, budget)
  return texts('contains', whole, part, budget, (a, b) => a.includes(b))
}
function texts(
  name: string,
  a: unknown,
  b: unknown,
  budget: Budget,
  compare: (a: string, b: string) => boolean,
): boolean {
  if ((a ?? null) === null || (b ?? null) === null) return false
  if (typeof a !== 'string' || typeof b !== 'string')
    return fail(`${name} needs two texts, got ${typeName(a)} and ${typeName(b)}`)
  spend(budget, 1 + ((a.length + b.length) >> 4))
  return compare(a, b)
}

/**
 * Implements `a matches b`: whether the pattern `b` matches anywhere in the text `a`.
 * @param compiled the pattern, if it is a literal and was compiled in advance.
 */
export const matchesPattern = (
  text: unknown,
  pattern: unknown,
  budget: Budget,
  compiled?: Pattern,
): boolean =>
  texts('matches', text, pattern, budget, (a, b) => {
    if (compiled) return test(compiled, a, budget)
    spend(budget, 50 * b.length)
    return test(compilePattern(b), a, budget)
  })

function cased(
  name: string,
  value: unknown,
  budget: Budget,
  change: (text: string) => string,
): string | null {
  if ((value ?? null) === null) return null
  if (typeof value !== 'string') return fail(`${name} needs a text, got ${typeName(value)}`)
  spend(budget, value.length >> 4)
  return chargeText(change(value), budget)
}

/**
 * Returns the number of characters (code points) of a string, elements of a list, or properties of
 * an object; 0 for null.
 */
function length(value: unknown, budget: Budget): number {
  if (Array.isArray(value)) return value.length
  if ((value ?? null) === null) return 0
  if (isJsonObject(value)) {
    const count = Object.keys(value).length
    spend(budget, count)
    return count
  }
  if (typeof value !== 'string')
    return fail(`len needs a text, a list or an object, got ${typeName(value)}`)
  spend(budget, value.length >> 2)
  let pairs = 0
  for (let i = 0; i < value.length; i++) if ((value.codePointAt(i) ?? 0) > 0xffff) pairs++
  return value.length - pairs
}

/**
 * Functions by name. Each can be called as `name(a, b)` and as `a.name(b)`. Functions of two
 * operands can also be called as `a name b`.
 */
export const functions: Readonly<
  Record<
    string,
    { readonly operands: 1 | 2; readonly run: (a: unknown, b: unknown, budget: Budget) => unknown }
  >
> = {
  contains: { operands: 2, run: contains },
  startsWith: {
    operands: 2,
    run: (a, b, budget) =>
      texts('startsWith', a, b, budget, (text, start) => text.startsWith(start)),
  },
  endsWith: {
    operands: 2,
    run: (a, b, budget) => texts('endsWith', a, b, budget, (text, end) => text.endsWith(end)),
  },
  matches: { operands: 2, run: matchesPattern },
  len: { operands: 1, run: (a, _, budget) => length(a, budget) },
  size: { operands: 1, run: (a, _, budget) => length(a, budget) },
  lower: {
    operands: 1,
    run: (a, _, budget) => cased('lower', a, budget, (text) => text.toLowerCase()),
  },
  upper: {
    operands: 1,
    run: (a, _, budget) => cased('upper', a, budget, (text) => text.toUpperCase()),
  },
}
