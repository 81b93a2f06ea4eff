/** Limits of authored documents: their size, and the syntax and range of durations and times. */
import { parseDuration, parseTimestamp } from '../../common.ts'
import type { FieldError } from '../../errors.ts'
import { interpolationsIn } from '../expressions/template.ts'
import { below } from './path.ts'

/** The maximum duration in milliseconds: ten years of 366 days. */
const MAX_DURATION_MS = 10 * 366 * 86_400_000
const MAX_DEPTH = 48
const MAX_VALUES = 20_000
/**
 * Maximum number of interpolations in a document. All of them are compiled before the request is
 * answered; meanwhile, the process handles no other request.
 */
const MAX_INTERPOLATIONS = 4000

/**
 * Counts the values of a document, and stops soon after the limit is exceeded. A document that is
 * nested too deeply counts as too many values.
 */
function valuesIn(value: unknown, depth: number, before: number): number {
  let values = before + 1
  if (typeof value !== 'object' || value === null) return values
  if (depth >= MAX_DEPTH) return MAX_VALUES + 1
  for (const name in value) {
    if (values > MAX_VALUES) break
    if (Object.hasOwn(value, name))
      values = valuesIn((value as Readonly<Record<string, unknown>>)[name], depth + 1, values)
  }
  return values
}

/**
 * Returns the fault of a document that exceeds the maximum nesting or number of values. Avoids
 * recursion, because deep documents would overflow the stack.
 */
function placesOf(document: unknown, path: string): FieldError[] {
  const todo: [value: unknown, path: string, depth: number][] = [[document, path, 0]]
  let values = 0
  for (let next = todo.pop(); next; next = todo.pop()) {
    const [value, field, depth] = next
    if (++values > MAX_VALUES)
      return [{ field: path, message: `has more than ${MAX_VALUES} values` }]
    if (typeof value !== 'object' || value === null) continue
    if (depth >= MAX_DEPTH) return [{ field, message: `is nested deeper than ${MAX_DEPTH} levels` }]
    if (Array.isArray(value))
      value.forEach((item: unknown, i) => {
        todo.push([item, below(field, i), depth + 1])
      })
    else
      for (const [name, item] of Object.entries(value))
        todo.push([item, below(field, name), depth + 1])
  }
  return []
}

/**
 * Returns the faults of a document that exceeds the limits. A fast count comes first, because paths
 * are needed only for faults.
 */
export function checkSize(document: unknown, path: string): FieldError[] {
  const faults = valuesIn(document, 0, 0) > MAX_VALUES ? placesOf(document, path) : []
  if (faults.length > 0) return faults
  return interpolationsIn(document) > MAX_INTERPOLATIONS
    ? [{ field: path, message: `has more than ${MAX_INTERPOLATIONS} interpolations` }]
    : []
}

export function checkDuration(text: string | undefined, field: string): FieldError[] {
  if (text === undefined) return []
  const length = parseDuration(text)
  if (length === undefined)
    return [
      { field, message: 'is not a duration; write for example 90s, 15m or 1h30m', actual: text },
    ]
  return length > MAX_DURATION_MS
    ? [{ field, message: 'is longer than ten years', actual: text }]
    : []
}

export const checkTime = (text: string | undefined, field: string): FieldError[] =>
  text === undefined || parseTimestamp(text) !== undefined
    ? []
    : [{ field, message: 'is not an RFC 3339 time such as 2030-01-31T12:00:00.000Z', actual: text }]
