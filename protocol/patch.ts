/**
 * Changes to records as data. An actor computes a patch once, and both its state and every view
 * apply the same patch.
 */

import { extended } from './rules/extended.ts'

/** The fields to set. Null removes a field. */
export type Patch<T> = { readonly [K in keyof T]?: T[K] | null }

/** Returns a new record with the changes, or the record itself when there is no patch. */
export function patch<T extends object>(record: T, change: Patch<T> | undefined): T {
  if (!change) return record
  const values = change as Readonly<Record<string, unknown>>
  const next = extended(record) as Record<string, unknown>
  let removed = false
  for (const key in values) {
    if (values[key] !== null) next[key] = values[key]
    else if (key in next) removed = true
  }
  return removed ? without(next, values) : (next as T)
}
// `delete` is avoided, because V8 copies an object slowly once a property has been deleted from it.
function without<T>(
  fields: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): T {
  const rest: Record<string, unknown> = {}
  for (const key in fields) if (values[key] !== null) rest[key] = fields[key]
  return rest as T
}

/**
 * Applies the changes in place to a record that only the caller uses. Returns this record, or a new
 * one when the patch removes a field.
 */
export function amend<T extends object>(record: T, change: Patch<T> | undefined): T {
  if (!change) return record
  const values = change as Readonly<Record<string, unknown>>
  const fields = record as Record<string, unknown>
  let removed = false
  for (const key in values) {
    const value = values[key]
    if (value !== null) fields[key] = value
    else if (key in fields) removed = true
  }
  return removed ? without(fields, values) : record
}
/**
 * Returns the record that `patch` would return for a record with these fields. It is computed
 * faster if the patch begins with the same fields, because the patch is then copied as a whole.
 */
export function begin<T extends object>(fields: Partial<T>, change: Patch<T> | undefined): T {
  if (!change) return extended(fields) as T
  const first = fields as Readonly<Record<string, unknown>>
  const values = change as Readonly<Record<string, unknown>>
  const names = Object.keys(first)
  let at = 0
  for (const key in values) {
    if (
      values[key] === null ||
      (at < names.length && (key !== names[at] || values[key] !== first[key]))
    )
      return patch(fields as T, change)
    at++
  }
  return at < names.length ? patch(fields as T, change) : (extended(change) as T)
}
