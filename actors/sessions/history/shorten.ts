/**
 * Truncates texts that are too long for a row, with a note that states how much was omitted. Half of
 * a surrogate pair at the cut is replaced, because providers reject it.
 */

/** Number of characters that are reserved for the note. */
const NOTE_LENGTH = 64

/** Returns the beginning of a text, with at most `most` characters including the note. */
export function beginningOf(text: string, most: number): string {
  if (text.length <= most) return text
  const omitted = text.length - most + NOTE_LENGTH
  const beginning = text.slice(0, most - NOTE_LENGTH).toWellFormed()
  return `${beginning}\n[${omitted} characters more were left out]`
}
/** Returns the end of a text, with at most `most` characters including the note. */
export function endOf(text: string, most: number): string {
  if (text.length <= most) return text
  const omitted = text.length - most + NOTE_LENGTH
  const end = text.slice(NOTE_LENGTH - most).toWellFormed()
  return `[${omitted} characters before this were left out]\n${end}`
}
