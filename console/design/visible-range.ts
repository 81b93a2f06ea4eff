/** Which lines of a long list are rendered. */

/** Number of lines that are rendered before and after the visible ones. */
const BEYOND = 8

/**
 * Returns the range of lines to render: from `first`, up to and without `end`.
 * @param moved pixels since the lines were last rendered. Lines beyond the visible ones prepare the
 * next movement. When the list moves further than they reach, they would not be seen, and are left
 * out.
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
