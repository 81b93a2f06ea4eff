/** The time axis of the timeline: the visible range, zooming, marks and positions. */

/** A range of time in Unix milliseconds. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** The shortest range that can be shown. */
const MIN_RANGE_MS = 5
/** Possible intervals of less than one second between adjacent marks, in milliseconds. */
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const sizes: readonly number[] = [
  ...steps,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR_MS),
  ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY_MS),
]

/** Returns a range with a positive length that begins at `from`. */
export const rangeOf = (from: number, to: number): TimeRange => ({
  from,
  to: Math.max(to, from + MIN_RANGE_MS),
})

/**
 * Returns a range that is zoomed around a point.
 * @param factor above 1 shows less time, below 1 more.
 * @param at position in the range that stays fixed, from 0 to 1.
 * @param whole the range that the result does not exceed.
 */
export function zoom(range: TimeRange, factor: number, at: number, whole: TimeRange): TimeRange {
  const length = range.to - range.from
  const next = Math.max(MIN_RANGE_MS, Math.min(whole.to - whole.from, length / factor))
  const from = range.from + (length - next) * at
  return within({ from, to: from + next }, whole)
}
/** Returns a range that is moved by the fraction `by` of its length, without leaving `whole`. */
export function pan(range: TimeRange, by: number, whole: TimeRange): TimeRange {
  const length = range.to - range.from
  return within({ from: range.from + length * by, to: range.to + length * by }, whole)
}
function within({ from, to }: TimeRange, whole: TimeRange): TimeRange {
  const length = Math.min(to - from, whole.to - whole.from)
  const begin = Math.max(whole.from, Math.min(from, whole.to - length))
  return { from: begin, to: begin + length }
}

/** Returns the position of a time in a range: 0 at its start, 1 at its end. */
const positionOf = (at: number, { from, to }: TimeRange): number => (at - from) / (to - from)

/**
 * Returns the marks of an axis as offsets from `origin` in milliseconds, with their positions.
 * There are at most `maxIntervals` intervals between the marks.
 */
export function marksOf(
  range: TimeRange,
  origin: number,
  maxIntervals: number,
): readonly { readonly offset: number; readonly position: number }[] {
  const length = range.to - range.from
  const size = sizes.find((one) => length / one <= maxIntervals) ?? (sizes.at(-1) as number)
  const marks: { offset: number; position: number }[] = []
  const first = Math.ceil((range.from - origin) / size) * size
  for (
    let offset = first;
    origin + offset <= range.to && marks.length <= maxIntervals;
    offset += size
  )
    marks.push({ offset, position: positionOf(origin + offset, range) })
  return marks
}

/** A visible bar: its start and width as percentages of the axis. */
export interface Bar {
  readonly left: number
  readonly width: number
}
/** Returns the visible part of a span; undefined if no part is visible. */
export function barOf(from: number, to: number, range: TimeRange): Bar | undefined {
  if (to < range.from || from > range.to) return undefined
  const left = Math.max(0, positionOf(from, range))
  const right = Math.min(1, positionOf(to, range))
  return { left: left * 100, width: Math.max(0, right - left) * 100 }
}
