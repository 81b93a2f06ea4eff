/**
 * The values of columns: which JSON values a type accepts, and their order. Actors, views and
 * clients share these rules.
 */
import { parseTimestamp } from '../common.ts'
import { canonicalJson } from '../rules/canonical-json.ts'
import { isJsonObject } from '../rules/json-object.ts'
import type { ColumnType } from './schema.ts'

/**
 * Returns the instant of a date in Unix milliseconds: an RFC 3339 time, or `YYYY-MM-DD` for
 * midnight UTC. Returns undefined if the value is not a date.
 */
export const instantOf = (value: unknown): number | undefined =>
  typeof value === 'string'
    ? parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00:00Z` : value)
    : undefined

const accepts: Readonly<Record<ColumnType, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  boolean: (value) => typeof value === 'boolean',
  date: (value) => instantOf(value) !== undefined,
  object: isJsonObject,
  array: Array.isArray,
  any: () => true,
}
/** Whether a column of this type accepts a value. Null is a missing value and never accepted. */
export const isOfType = (type: ColumnType, value: unknown): boolean =>
  value !== null && value !== undefined && accepts[type](value)

/** A description of the values of each type, as the end of the sentence "must be …". */
export const typeNames: Readonly<Record<ColumnType, string>> = {
  string: 'a string',
  number: 'a finite number',
  boolean: 'true or false',
  date: 'an RFC 3339 time or a date YYYY-MM-DD',
  object: 'a JSON object',
  array: 'a JSON array',
  any: 'a JSON value other than null',
}

/** Compares two texts by code points, as SQLite compares UTF-8. */
export function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    // A surrogate is half of the pair that encodes a code point above U+FFFF. Every other UTF-16
    // code unit is itself a code point, which is smaller.
    const [high, other] = [x >= 0xd800 && x <= 0xdfff, y >= 0xd800 && y <= 0xdfff]
    return high === other ? x - y : high ? 1 : -1
  }
  return a.length - b.length
}
const ranks: Readonly<Record<string, number>> = { number: 0, string: 1, boolean: 2 }
const rankOf = (value: unknown): number => ranks[typeof value] ?? 3

/**
 * Compares two values that are not missing, by the order of a column type: text by code points,
 * numbers by value, false before true, dates by instant. Type `any`: numbers before strings before
 * booleans before other values. Objects and arrays have no order and compare as equal.
 */
export function compareValues(type: ColumnType, a: unknown, b: unknown): number {
  if (type === 'date') return (instantOf(a) ?? 0) - (instantOf(b) ?? 0)
  const rank = rankOf(a)
  if (rank !== rankOf(b)) return rank - rankOf(b)
  if (typeof a === 'string' && typeof b === 'string') return compareTexts(a, b)
  if (rank === 3) return 0
  return Number(a) - Number(b)
}
/**
 * Returns the form of a value by which values of a column are compared for equality: the instant of
 * a date, the canonical JSON of an object or array, and any other value itself.
 */
export const comparable = (
  type: ColumnType,
  value: unknown,
): { readonly scalar: unknown } | { readonly document: string } =>
  type === 'date'
    ? { scalar: instantOf(value) }
    : typeof value === 'object'
      ? { document: canonicalJson(value) }
      : { scalar: value }
