/** Texts that are too long for a row: what is given up is said in its place. */

/** Room for the words that say so. */
const MARK = 64

/** The beginning of a text, as long as it may be. */
export const beginningOf = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most - MARK)}\n[${text.length - most + MARK} characters more were left out]`
/** The end of a text, as long as it may be. */
export const endOf = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `[${text.length - most + MARK} characters before this were left out]\n${text.slice(MARK - most)}`
