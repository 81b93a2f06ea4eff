/**
 * The JSON Schema keywords that bound numbers and the sizes of strings, lists and objects. All
 * other keywords are in `keywords.ts`.
 */
import { type Budget, spend } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'
import type { Check, Keyword } from './check.ts'

/**
 * Functions that return the size of a value, by unit. They return undefined for values of other
 * types.
 */
const sizes = {
  items: (value: unknown): number | undefined => (Array.isArray(value) ? value.length : undefined),
  members: (value: unknown, budget: Budget): number | undefined => {
    if (!isJsonObject(value)) return undefined
    const count = Object.keys(value).length
    spend(budget, count)
    return count
  },
  characters: (value: unknown, budget: Budget): number | undefined => {
    if (typeof value !== 'string') return undefined
    spend(budget, value.length >> 2)
    let count = 0
    for (const _ of value) count++
    return count
  },
}
function sized(what: keyof typeof sizes, name: string, least: boolean): Keyword {
  return ({ value, budget, fail }, given) => {
    if (typeof given !== 'number') return true
    const size = sizes[what](value, budget)
    if (size === undefined || (least ? size >= given : size <= given)) return true
    return fail(`must have at ${least ? 'least' : 'most'} ${given} ${what}`, {
      expected: { [name]: given },
      actual: size,
    })
  }
}
function compared(words: string, holds: (value: number, given: number) => boolean): Keyword {
  return ({ value, fail }, given) =>
    typeof value !== 'number' ||
    typeof given !== 'number' ||
    holds(value, given) ||
    fail(`must be ${words} ${given}`, { actual: value })
}
/** Whether `exclusiveMinimum` or `exclusiveMaximum` is `true`, as in OpenAPI 3.0. */
const isExclusive = ({ schema }: Check, name: string): boolean => schema[name] === true

const above = compared('more than', (value, given) => value > given)
const underneath = compared('less than', (value, given) => value < given)
const least = compared('at least', (value, given) => value >= given)
const most = compared('at most', (value, given) => value <= given)

export const bounds: Readonly<Record<string, Keyword>> = {
  minimum: (check, given) => (isExclusive(check, 'exclusiveMinimum') ? above : least)(check, given),
  maximum: (check, given) =>
    (isExclusive(check, 'exclusiveMaximum') ? underneath : most)(check, given),
  exclusiveMinimum: above,
  exclusiveMaximum: underneath,
  multipleOf: ({ value, budget, fail }, given) => {
    if (typeof value !== 'number' || typeof given !== 'number' || given <= 0) return true
    spend(budget, 20)
    return isMultiple(value, given) || fail(`must be a multiple of ${given}`, { actual: value })
  },
  minLength: sized('characters', 'minLength', true),
  maxLength: sized('characters', 'maxLength', false),
  minItems: sized('items', 'minItems', true),
  maxItems: sized('items', 'maxItems', false),
  minProperties: sized('members', 'minProperties', true),
  maxProperties: sized('members', 'maxProperties', false),
  uniqueItems: ({ value, budget, fail }, given) => {
    if (given !== true || !Array.isArray(value)) return true
    // A primitive is compared directly, and an array or an object by its canonical text.
    const primitives = new Set<unknown>()
    const texts = new Set<unknown>()
    for (const [index, item] of value.entries()) {
      const composite = typeof item === 'object' && item !== null
      if (!composite)
        spend(budget, COMPARE_STEPS + (typeof item === 'string' ? item.length >> 2 : 0))
      const known = composite ? texts : primitives
      const key = composite ? canonical(item, budget, 0) : item
      if (known.has(key)) return fail('repeats an earlier item', {}, index)
      known.add(key)
    }
    return true
  },
}

/** Whether a number is an exact multiple of another in decimal notation. */
function isMultiple(value: number, of: number): boolean {
  const [a, b] = [decimal(value), decimal(of)]
  const exponent = Math.min(a.exponent, b.exponent)
  const whole = ({ digits, exponent: own }: typeof a) => digits * 10n ** BigInt(own - exponent)
  return whole(a) % whole(b) === 0n
}
function decimal(value: number): { digits: bigint; exponent: number } {
  const [, whole = '0', fraction = '', power = '0'] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(Math.abs(value))) ?? []
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length }
}

/**
 * Serializes a value as JSON with sorted property names, so that equal values have equal texts. The
 * work is charged to the budget.
 */
function canonical(value: unknown, budget: Budget, depth: number): string {
  if (depth > MAX_NESTING) spend(budget, Number.POSITIVE_INFINITY)
  spend(budget, SERIALIZE_STEPS)
  const parts = (texts: string[]): string => {
    const text = texts.join()
    spend(budget, text.length >> 2)
    return text
  }
  if (Array.isArray(value))
    return `[${parts(value.map((item) => canonical(item, budget, depth + 1)))}]`
  if (!isJsonObject(value)) {
    if (typeof value === 'string') spend(budget, value.length >> 2)
    return JSON.stringify(value) ?? 'null'
  }
  const names = Object.keys(value).sort()
  spend(budget, SERIALIZE_STEPS * names.length)
  return `{${parts(names.map((name) => `${JSON.stringify(name)}:${canonical(value[name], budget, depth + 1)}`))}}`
}
/**
 * Maximum nesting, in levels, of the items that `uniqueItems` compares. The check of a deeper item
 * fails as if the budget were exhausted.
 */
const MAX_NESTING = 64
/** Steps of looking up and storing one item in a set. */
const COMPARE_STEPS = 10
/** Steps of serializing one value or one property name, without the length of its text. */
const SERIALIZE_STEPS = 50
