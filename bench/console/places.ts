/**
 * Separates the time that a page causes from the time that the machine adds at random. The same way
 * is scrolled in several passes. What the page causes at a place comes again in each pass, so the
 * least time of a place over the passes leaves out what the machine has added.
 *
 * Limit: a cost that occurs at another place in each pass, such as a garbage collection, is left
 * out too. The tables list collections separately.
 */
import type { Frames } from './trace.ts'

/** A part of the way. It begins where the previous one ends. */
export interface Stretch {
  /** End of the part in microseconds, on the clock of trace events. */
  readonly until: number
  /** The place in the list, which is the same in each pass. */
  readonly place: string
}

/** Returns the time in microseconds on the clock of trace events, which is monotonic. */
export const traceTime = (): number => Number(process.hrtime.bigint() / 1000n)

/** Returns the greatest processor time of a frame at each place, in milliseconds. */
export function greatestByPlace(
  { begins, processor }: Pick<Frames, 'begins' | 'processor'>,
  way: readonly Stretch[],
): Map<string, number> {
  const greatest = new Map<string, number>()
  let at = 0
  for (const [index, begin] of begins.entries()) {
    while (begin >= (way[at]?.until ?? Number.POSITIVE_INFINITY)) at++
    const place = way[at]?.place
    if (place !== undefined)
      greatest.set(place, Math.max(greatest.get(place) ?? 0, processor[index] ?? 0))
  }
  return greatest
}

/**
 * Returns the greatest of the times that repeat: the maximum over all places of the minimum over
 * the passes that came to the place.
 */
export function greatestRepeated(passes: readonly ReadonlyMap<string, number>[]): number {
  const least = new Map<string, number>()
  for (const [place, value] of passes.flatMap((pass) => [...pass]))
    least.set(place, Math.min(least.get(place) ?? Number.POSITIVE_INFINITY, value))
  return Math.max(0, ...least.values())
}
