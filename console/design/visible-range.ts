/** Which lines of a long list are rendered. */

/** Number of lines that are rendered before and after the visible ones. */
const BEYOND = 8

/** Returns the range of lines to render: from `first`, up to and without `end`. */
export function visibleRange(
  scrolled: number,
  height: number,
  line: number,
  count: number,
): { readonly first: number; readonly end: number } {
  const first = Math.max(0, Math.floor(scrolled / line) - BEYOND)
  const end = Math.min(count, Math.ceil((scrolled + height) / line) + BEYOND)
  return { first: Math.min(first, end), end }
}
