/**
 * Separates the time that a page causes from the time that the machine adds at random. The same
 * path is scrolled in several passes. The time that the page causes at a place recurs in each pass,
 * so the minimum for the place across all passes excludes the time that the machine added.
 *
 * Limit: a cost that occurs at a different place in each pass, such as a garbage collection, is
 * excluded too. The tables list collections separately.
 */
import type { Frames } from './trace.ts'

/** A part of the scroll path. It begins where the previous part ends. */
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
 * Returns the greatest time that recurs in each pass: for each place, the minimum across the passes
 * that reached it is taken, and the maximum of these minimums is returned.
 */
export function greatestRepeated(passes: readonly ReadonlyMap<string, number>[]): number {
  const least = new Map<string, number>()
  for (const [place, value] of passes.flatMap((pass) => [...pass]))
    least.set(place, Math.min(least.get(place) ?? Number.POSITIVE_INFINITY, value))
  return Math.max(0, ...least.values())
}
