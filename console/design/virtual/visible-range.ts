/** Computes which lines of a long list are rendered. */

/** Number of lines that are rendered before and after the visible ones. */
const BEYOND = 8

/**
 * Returns the range of lines to render, from `first` up to but excluding `end`.
 * @param moved pixels scrolled since the last rendering. Extra lines before and after the visible
 * ones prepare for the next scroll step. They are omitted if the last step was longer than their
 * height, because they would be skipped.
 */
export function visibleRange(
  scrolled: number,
  height: number,
  line: number,
  count: number,
  moved = 0,
): { readonly first: number; readonly end: number } {
  const beyond = Math.abs(moved) > BEYOND * line ? 0 : BEYOND
  const first = Math.max(0, Math.floor(scrolled / line) - beyond)
  const end = Math.min(count, Math.ceil((scrolled + height) / line) + beyond)
  return { first: Math.min(first, end), end }
}
