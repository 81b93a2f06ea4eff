/** Limits of authored documents: their size, and the syntax and range of durations and times. */
import { parseDuration, parseTimestamp } from '../../common.ts'
import type { FieldError } from '../../errors.ts'
import { interpolationsIn } from '../expressions/template.ts'
import { below } from './path.ts'

/** The maximum duration in milliseconds: ten years of 366 days. */
export const MAX_DURATION_MS = 10 * 366 * 86_400_000
/** Maximum nesting depth of a document, in levels. */
const MAX_DEPTH = 48
/** Maximum number of values in a document. */
const MAX_VALUES = 20_000
/**
 * Maximum number of interpolations in a document. All of them are compiled before the request is
 * answered, and the process handles no other request in the meantime.
 */
const MAX_INTERPOLATIONS = 4000

interface Extent {
  values: number
  interpolations: number
}
/**
 * Counts the values and the interpolations of a document, and stops soon after the limit on values
 * is exceeded. A document that is nested too deeply counts as too many values.
 */
function measure(value: unknown, depth: number, extent: Extent): void {
  extent.values++
  if (typeof value === 'string') extent.interpolations += interpolationsIn(value)
  if (typeof value !== 'object' || value === null) return
  if (depth >= MAX_DEPTH) extent.values = MAX_VALUES + 1
  for (const name in value) {
    if (extent.values > MAX_VALUES) return
    if (Object.hasOwn(value, name))
      measure((value as Readonly<Record<string, unknown>>)[name], depth + 1, extent)
  }
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
 * Returns the faults of a document that exceeds the limits. The document is first measured without
 * paths, which is fast. Paths are computed only for faults.
 */
export function checkSize(document: unknown, path: string): FieldError[] {
  const extent = { values: 0, interpolations: 0 }
  measure(document, 0, extent)
  if (extent.values > MAX_VALUES) return placesOf(document, path)
  return extent.interpolations > MAX_INTERPOLATIONS
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
