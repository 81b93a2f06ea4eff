/** Computes which lines of a long list are rendered. */

/** Number of lines that are rendered before and after the visible ones. */
export const OVERSCAN_LINES = 8

/** The lines from `first` up to but excluding `end`. */
export interface Range {
  readonly first: number
  readonly end: number
}

/**
 * Returns the range of lines to render: the visible ones, and some before and after them for the
 * next scroll step. All ranges of a list have the same length (or that of the list, if it is
 * shorter), because adding lines to a page costs several times as much as changing their content.
 * @param scrolled distance of the visible part from the start of the list, in pixels.
 * @param height height of the visible part, in pixels.
 * @param line height of a line, in pixels.
 */
export function visibleRange(scrolled: number, height: number, line: number, count: number): Range {
  const length = Math.ceil(height / line) + 1 + 2 * OVERSCAN_LINES
  const last = Math.max(0, count - length)
  const first = Math.max(0, Math.min(last, Math.floor(scrolled / line) - OVERSCAN_LINES))
  return { first, end: Math.min(count, first + length) }
}
