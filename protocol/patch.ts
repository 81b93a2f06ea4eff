/** Changes to a record as data: an actor decides the patch once, and its state and every view apply the same one. */

/** The fields to set; null removes a field. */
export type Patch<T> = { readonly [K in keyof T]?: T[K] | null }

/** Apply a patch to a record, giving a new record. */
export function patch<T extends object>(record: T, change: Patch<T> | undefined): T {
  if (!change) return record
  const next = { ...record, ...change } as Record<string, unknown>
  for (const key of Object.keys(change)) if (next[key] === null) delete next[key]
  return next as T
}
