/**
 * The newest of many keys with what belongs to each, in small buckets: one more key copies a bucket, not all of them, and the
 * oldest are forgotten a bucket at a time. Plain JSON, never changed in place.
 */
import { getOwn } from '../../../protocol/lookup.ts'

/** Newest bucket last. */
export type Remembered<T> = readonly Readonly<Record<string, T>>[]
/** Keys of a bucket. */
const BUCKET = 128
/** A key may be any text, and a number as a key would come out of order. */
const spelled = (key: string): string => `:${key}`

/** The key of a turn that the service begins itself, for a run or a channel. Keys of clients are trimmed, so none is like it. */
export const ownKey = (turn_id: string): string => ` turn:${turn_id}`

/** What belongs to a key; undefined when it is unknown or forgotten. */
export function recall<T>(all: Remembered<T>, key: string): T | undefined {
  const name = spelled(key)
  for (const bucket of all) {
    const found = getOwn(bucket, name)
    if (found !== undefined) return found
  }
  return undefined
}
/** One more key, which was not there. @param least keys that are remembered at any time; up to a bucket more may be. */
export function remember<T>(
  all: Remembered<T>,
  key: string,
  value: T,
  least: number,
): Remembered<T> {
  const last = all.at(-1)
  if (last && Object.keys(last).length < BUCKET)
    return [...all.slice(0, -1), { ...last, [spelled(key)]: value }]
  return [...all.slice(-Math.ceil(least / BUCKET)), { [spelled(key)]: value }]
}
