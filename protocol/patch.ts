/**
 * Record changes as data. An actor computes a patch once; its state and every view apply the same
 * patch.
 */

/** The fields to set; null removes a field. */
export type Patch<T> = { readonly [K in keyof T]?: T[K] | null }

/** Applies a patch to a record and returns a new record. */
export function patch<T extends object>(record: T, change: Patch<T> | undefined): T {
  if (!change) return record
  const values = change as Readonly<Record<string, unknown>>
  const next = { ...record } as Record<string, unknown>
  let removed = false
  for (const key in values) {
    if (values[key] !== null) next[key] = values[key]
    else if (key in next) removed = true
  }
  // Avoids `delete`, which leaves an object that is slow to copy from then on.
  if (!removed) return next as T
  const rest: Record<string, unknown> = {}
  for (const key in next) if (values[key] !== null) rest[key] = next[key]
  return rest as T
}
