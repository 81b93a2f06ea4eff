/**
 * Estimates the disk writes that recently stored entries still cause: the snapshots of their actors,
 * and the rows of views in SQLite's write-ahead log and then in its tables.
 */
import type { Clock } from '../host/ports.ts'

/** Assumed number of bytes that are written later for each byte of a stored entry. */
const BYTES_PER_BYTE = 4
/** Assumed milliseconds within which these later writes take place. */
const DURATION_MS = 5000
/** Length in milliseconds of the intervals in which the sizes of stored entries are added up. */
const SLICE_MS = 250

export interface ExpectedWrites {
  /** Adds a stored entry. Returns whether it begins a new interval. */
  add(bytes: number): boolean
  /** Returns the number of bytes that will still be written. */
  bytes(): number
}

export function createExpectedWrites(clock: Pick<Clock, 'elapsed'>): ExpectedWrites {
  const slices: { readonly at: number; bytes: number }[] = []
  return {
    add: (bytes) => {
      const now = clock.elapsed()
      const slice = slices.at(-1)
      if (slice && now - slice.at < SLICE_MS) {
        slice.bytes += bytes
        return false
      }
      slices.push({ at: now, bytes })
      return true
    },
    bytes: () => {
      const since = clock.elapsed() - DURATION_MS
      while ((slices[0]?.at ?? since) < since) slices.shift()
      return BYTES_PER_BYTE * slices.reduce((sum, { bytes }) => sum + bytes, 0)
    },
  }
}
