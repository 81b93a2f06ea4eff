/** Finds the new part of a growing text, for readers that receive only the end of the text. */

/**
 * Maximum number of characters at the end of the previous text that `addedTo` searches for in the
 * new text.
 */
export const MAX_CONTEXT_CHARACTERS = 2000

/**
 * Returns the part of `after` that follows the end of `before`, or undefined if `after` does not
 * contain the end of `before`. If `before` is empty, returns all of `after`.
 * @param isWhole whether `before` is the whole previous text, and not only its end. Lines that equal
 * those before them are then found as long as the beginning of the text is not cut off.
 */
export function addedTo(before: string, after: string, isWhole = false): string | undefined {
  if (before === '') return after
  if (isWhole && after.startsWith(before)) return after.slice(before.length)
  const anchor = before.slice(-MAX_CONTEXT_CHARACTERS)
  const at = after.lastIndexOf(anchor)
  return at < 0 ? undefined : after.slice(at + anchor.length)
}
