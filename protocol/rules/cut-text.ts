/** Shortens texts at a maximum number of characters. */

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
/** Number of UTF-16 units around a cut in which its grapheme is searched. */
const WINDOW = 64
/** The first character that can extend the character before it. */
const FIRST_EXTENDING = 0x300

/**
 * Returns the first characters of a text, at most `max` UTF-16 units, without a part of a grapheme
 * at the end: half of a surrogate pair, a letter without its accents, or a part of an emoji. Of a
 * grapheme with more than `WINDOW` units, or more than `max`, whole code points remain.
 */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text
  if (text.charCodeAt(max) < FIRST_EXTENDING) return text.slice(0, max)
  const from = Math.max(0, max - WINDOW)
  const around = graphemes.segment(text.slice(from, max + WINDOW))
  const start = around.containing(max - from)?.index ?? 0
  if (start > 0) return text.slice(0, from + start)
  const last = text.charCodeAt(max - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max)
}
