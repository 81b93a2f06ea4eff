/**
 * The keywords of JSON Schema, one function each. A keyword function reports errors and returns
 * whether the value fits. It returns true when the keyword does not apply to the type of the value.
 * Most functions also ignore a malformed keyword. Each function charges the budget for work that
 * depends on the size of the schema or of the value.
 */

import { equal, spend } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'
import { bounds } from './bounds.ts'
import { type Check, type Keyword, REQUIRED } from './check.ts'
import { formats } from './formats.ts'

type Keywords = Readonly<Record<string, Keyword>>

const namesIn = (given: unknown): readonly string[] =>
  Array.isArray(given) ? given.filter((name): name is string => typeof name === 'string') : []
const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
const isOf = (value: unknown, type: unknown): boolean =>
  type === typeOf(value) || (type === 'integer' && Number.isInteger(value))
const withArticle = (type: string): string =>
  type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`

const general: Keywords = {
  type: ({ value, fail }, given) => {
    const types = given === undefined ? [] : Array.isArray(given) ? given : [given]
    return (
      types.length === 0 ||
      types.some((type) => isOf(value, type)) ||
      fail(`must be ${types.map((type) => withArticle(String(type))).join(' or ')}`, {
        expected: given,
        actual: typeOf(value),
      })
    )
  },
  enum: ({ value, budget, fail }, given) =>
    !Array.isArray(given) ||
    given.some((one) => equal(one, value, budget)) ||
    fail('is not one of the allowed values', { expected: given }),
  const: ({ value, budget, fail }, given) =>
    equal(given, value, budget) || fail('is not the allowed value', { expected: given }),
  $ref: ({ same, resolve }, given) => typeof given !== 'string' || same(resolve(given)),
  $dynamicRef: ({ same, resolve }, given) => typeof given !== 'string' || same(resolve(given)),
  $recursiveRef: ({ same, resolve }, given) => typeof given !== 'string' || same(resolve(given)),
  allOf: ({ same }, given) =>
    !Array.isArray(given) || given.map((schema) => same(schema)).every(Boolean),
  anyOf: ({ fitting }, given) =>
    !Array.isArray(given) || fitting(given, 'fits none of the allowed forms') > 0,
  oneOf: ({ fitting, fail }, given) => {
    if (!Array.isArray(given)) return true
    const message = 'must fit exactly one of the allowed forms'
    const count = fitting(given, message)
    return count === 1 || (count > 1 && fail(message))
  },
  not: ({ same, fail }, given) => !same(given, true) || fail('must not match the excluded schema'),
  if: ({ schema, same }, given) =>
    same(given, true) ? same(schema['then'] ?? true) : same(schema['else'] ?? true),
}

const strings: Keywords = {
  pattern: ({ value, matches, fail }, given) =>
    typeof value !== 'string' ||
    typeof given !== 'string' ||
    matches(given, value) ||
    fail(`must match ${given}`, { expected: given }),
  format: ({ value, budget, fail }, given) => {
    const test = typeof given === 'string' ? formats.get(given) : undefined
    if (typeof value !== 'string' || !test) return true
    spend(budget, value.length)
    return test(value) || fail(`must be in the format ${String(given)}`, { expected: given })
  },
}

const objects: Keywords = {
  required: ({ value, budget, fail }, given) => {
    if (!isJsonObject(value)) return true
    const names = namesIn(given)
    spend(budget, names.length)
    const missing = names.filter((name) => !Object.hasOwn(value, name))
    for (const name of missing) fail(REQUIRED, {}, name)
    return missing.length === 0
  },
  properties: ({ value, budget, evaluated, inner }, given) => {
    if (!isJsonObject(value) || !isJsonObject(given)) return true
    const names = Object.keys(given)
    spend(budget, names.length)
    let fits = true
    for (const name of names) {
      if (!Object.hasOwn(value, name)) continue
      evaluated.add(name)
      fits = inner(given[name], name, value[name]) && fits
    }
    return fits
  },
  patternProperties: ({ value, evaluated, inner, matches }, given) => {
    if (!isJsonObject(value) || !isJsonObject(given)) return true
    let fits = true
    for (const [pattern, schema] of Object.entries(given))
      for (const [name, item] of Object.entries(value)) {
        if (!matches(pattern, name)) continue
        evaluated.add(name)
        fits = inner(schema, name, item) && fits
      }
    return fits
  },
  additionalProperties: ({ schema, value, budget, evaluated, inner, fail, matches }, given) => {
    if (!isJsonObject(value)) return true
    const { properties, patternProperties } = schema
    const known = isJsonObject(properties) ? properties : {}
    const patterns = isJsonObject(patternProperties) ? Object.keys(patternProperties) : []
    let fits = true
    for (const [name, item] of Object.entries(value)) {
      spend(budget, 1)
      if (Object.hasOwn(known, name) || patterns.some((pattern) => matches(pattern, name))) continue
      evaluated.add(name)
      if (given === false) fits = fail('is not a known field', {}, name)
      else fits = inner(given, name, item) && fits
    }
    return fits
  },
  propertyNames: ({ value, inner, fail }, given) => {
    if (!isJsonObject(value)) return true
    let fits = true
    for (const name of Object.keys(value))
      if (!inner(given, name, name, true)) fits = fail('has a name that is not allowed', {}, name)
    return fits
  },
  dependentRequired: ({ value, budget, fail }, given) => {
    if (!isJsonObject(value) || !isJsonObject(given)) return true
    let fits = true
    for (const [name, others] of Object.entries(given)) {
      if (!Object.hasOwn(value, name)) continue
      spend(budget, namesIn(others).length)
      for (const other of namesIn(others))
        if (!Object.hasOwn(value, other)) fits = fail(`is required with ${name}`, {}, other)
    }
    return fits
  },
  dependentSchemas: ({ value, same }, given) => {
    if (!isJsonObject(value) || !isJsonObject(given)) return true
    let fits = true
    for (const [name, schema] of Object.entries(given))
      if (Object.hasOwn(value, name)) fits = same(schema) && fits
    return fits
  },
  dependencies: (check, given) => {
    if (!isJsonObject(given)) return true
    const [lists, schemas] = [[], []] as [string, unknown][][]
    for (const entry of Object.entries(given))
      (Array.isArray(entry[1]) ? lists : schemas)?.push(entry)
    const required = objects['dependentRequired']?.(check, Object.fromEntries(lists ?? [])) ?? true
    const dependent =
      objects['dependentSchemas']?.(check, Object.fromEntries(schemas ?? [])) ?? true
    return required && dependent
  },
}

/**
 * Whether all items from the index `from` onward fit one schema. Marks these items as evaluated.
 */
function eachItem({ value, evaluated, inner }: Check, given: unknown, from: number): boolean {
  if (!Array.isArray(value)) return true
  let fits = true
  for (let index = from; index < value.length; index++) {
    evaluated.add(index)
    fits = inner(given, index, value[index]) && fits
  }
  return fits
}
/**
 * Whether each item fits the schema at the same index. Items beyond the last schema are ignored.
 * Marks the other items as evaluated.
 */
function eachInTurn({ value, evaluated, inner }: Check, given: readonly unknown[]): boolean {
  if (!Array.isArray(value)) return true
  let fits = true
  for (let index = 0; index < Math.min(given.length, value.length); index++) {
    evaluated.add(index)
    fits = inner(given[index], index, value[index]) && fits
  }
  return fits
}
const lengthOf = (given: unknown): number => (Array.isArray(given) ? given.length : 0)

const lists: Keywords = {
  prefixItems: (check, given) => !Array.isArray(given) || eachInTurn(check, given),
  items: (check, given) =>
    Array.isArray(given)
      ? eachInTurn(check, given)
      : eachItem(check, given, lengthOf(check.schema['prefixItems'])),
  additionalItems: (check, given) =>
    !Array.isArray(check.schema['items']) ||
    eachItem(check, given, lengthOf(check.schema['items'])),
  contains: ({ schema, value, evaluated, inner, fail }, given) => {
    if (!Array.isArray(value)) return true
    const { minContains, maxContains } = schema
    let count = 0
    value.forEach((item, index) => {
      if (!inner(given, index, item, true)) return
      evaluated.add(index)
      count++
    })
    const least = typeof minContains === 'number' ? minContains : 1
    if (count < least) return fail('has too few matching items', { expected: least })
    return (
      typeof maxContains !== 'number' ||
      count <= maxContains ||
      fail('has too many matching items', { expected: maxContains })
    )
  },
}

/** Keywords that apply only to properties and items that no other keyword has evaluated. */
const last: Keywords = {
  unevaluatedProperties: ({ value, budget, evaluated, inner, fail }, given) => {
    if (!isJsonObject(value)) return true
    let fits = true
    for (const [name, item] of Object.entries(value)) {
      spend(budget, 1)
      if (evaluated.has(name)) continue
      evaluated.add(name)
      if (given === false) fits = fail('is not a known field', {}, name)
      else fits = inner(given, name, item) && fits
    }
    return fits
  },
  unevaluatedItems: ({ value, budget, evaluated, inner }, given) => {
    if (!Array.isArray(value)) return true
    let fits = true
    value.forEach((item, index) => {
      spend(budget, 1)
      if (evaluated.has(index)) return
      evaluated.add(index)
      fits = inner(given, index, item) && fits
    })
    return fits
  },
}

/** All keywords except those that are applied last. */
export const keywords: Keywords = { ...general, ...bounds, ...strings, ...objects, ...lists }
/** Keywords that are applied after all others of their schema. */
export const lastKeywords = { names: Object.keys(last), table: last }
