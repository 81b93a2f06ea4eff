/** Truncates texts that are too long for a row, with a note that states how much was omitted. */

/** Number of characters that are reserved for the note. */
const NOTE_LENGTH = 64

/** Returns the beginning of a text, with at most `most` characters including the note. */
export const beginningOf = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most - NOTE_LENGTH)}\n[${text.length - most + NOTE_LENGTH} characters more were left out]`
/** Returns the end of a text, with at most `most` characters including the note. */
export const endOf = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `[${text.length - most + NOTE_LENGTH} characters before this were left out]\n${text.slice(NOTE_LENGTH - most)}`
