/** Finds the new part of a growing text, for readers that receive only the end of the text. */

/**
 * Minimum number of characters of an overlap that does not begin at the beginning of a line, because
 * the text was cut off within a line.
 */
const MIN_OVERLAP = 2000

/**
 * Returns the part of `after` that was appended to `before`, or undefined if `after` does not
 * continue `before`. Both are ends of one growing text. If several parts are possible, because the
 * whole of `after` consists of equal lines, returns the shortest.
 * @param before at least as long as `after`, unless it is the whole previous text.
 */
export function addedTo(before: string, after: string): string | undefined {
  if (after.startsWith(before)) return after.slice(before.length)
  const borders = bordersOf(after)
  // The length of the longest end of `before` with which `after` begins (Knuth, Morris and Pratt).
  let length = 0
  for (let at = Math.max(0, before.length - after.length); at < before.length; at++) {
    const sign = before.charCodeAt(at)
    while (length > 0 && after.charCodeAt(length) !== sign) length = borders[length - 1] ?? 0
    if (after.charCodeAt(length) === sign) length++
  }
  for (; length > 0; length = borders[length - 1] ?? 0) {
    const isWholeLines = before[before.length - length - 1] === '\n'
    if (isWholeLines || length >= Math.min(MIN_OVERLAP, before.length)) return after.slice(length)
  }
  return undefined
}
/**
 * Returns for each beginning of a text, by its length minus 1, the length of the longest shorter
 * beginning with which it also ends.
 */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length)
  for (let at = 1, length = 0; at < text.length; at++) {
    const sign = text.charCodeAt(at)
    while (length > 0 && text.charCodeAt(length) !== sign) length = borders[length - 1] ?? 0
    if (text.charCodeAt(length) === sign) length++
    borders[at] = length
  }
  return borders
}
