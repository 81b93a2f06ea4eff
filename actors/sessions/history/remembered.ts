/**
 * A bounded map of the newest keys, stored in small buckets. Adding a key copies one bucket instead
 * of the whole map, and the oldest keys are dropped a bucket at a time. The map is plain JSON and
 * is never mutated.
 */
import { getOwn } from '../../../protocol/lookup.ts'

/** Buckets of values by key. The newest bucket is last. */
export type Remembered<T> = readonly Readonly<Record<string, T>>[]
/** Maximum number of keys per bucket. */
const MAX_BUCKET_KEYS = 128
/** Prefixes a key, because clients may choose `__proto__`, and objects reorder numeric keys. */
const spelled = (key: string): string => `:${key}`

/**
 * Returns the key of a turn that the service starts itself, for a run or a channel. The key begins
 * with a space, and keys of clients are trimmed, so no client key equals it.
 */
export const ownKey = (turn_id: string): string => ` turn:${turn_id}`

/** Returns the value of a key, or undefined if the key is unknown or was dropped. */
export function recall<T>(all: Remembered<T>, key: string): T | undefined {
  const name = spelled(key)
  for (const bucket of all) {
    const found = getOwn(bucket, name)
    if (found !== undefined) return found
  }
  return undefined
}
/**
 * Adds a key that is not in the map.
 * @param least minimum number of newest keys that are retained. More may be retained, because only
 * whole buckets are dropped.
 */
export function remember<T>(
  all: Remembered<T>,
  key: string,
  value: T,
  least: number,
): Remembered<T> {
  const last = all.at(-1)
  if (last && Object.keys(last).length < MAX_BUCKET_KEYS)
    return [...all.slice(0, -1), { ...last, [spelled(key)]: value }]
  return [...all.slice(-Math.ceil(least / MAX_BUCKET_KEYS)), { [spelled(key)]: value }]
}
