/** Texts of users inside sentences of the console. */

/** Characters that change the direction of the text after them. */
const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const ASCII = /^[\x20-\x7e]*$/

/**
 * Returns a text of a user for use in a sentence: its direction does not affect the words around it.
 * Elements with the class `user-text` do not need this.
 */
export const isolate = (text: string): string =>
  ASCII.test(text) ? text : `\u2068${text.replace(CONTROLS, '')}\u2069`
