/** Folds texts, so that searches find words regardless of letter case and Unicode form. */

/**
 * Returns a text in lower case and in the composed form of Unicode. The forms of sigma are one
 * letter. A dotted I loses its dot, which `toLowerCase` would leave as a combining mark.
 */
export const foldText = (text: string): string =>
  text.toLowerCase().replaceAll('i\u0307', 'i').replaceAll('ς', 'σ').normalize('NFC')
