/**
 * Protects texts in CSV files for spreadsheet programs, which evaluate a field as a formula if it
 * begins with certain characters. A formula can start programs and send data to other hosts. As
 * OWASP advises ("CSV Injection"), an apostrophe is prepended to such texts. Pure functions.
 *
 * Invariant: `fromSpreadsheet` restores every text that `forSpreadsheet` returned.
 */

/** Matches a text that begins with the first character of a formula, possibly after apostrophes. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/
/** Matches numbers, which may begin with a sign and are harmless. */
const NUMBER = /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Returns a text in a form that no spreadsheet program evaluates as a formula. */
export const forSpreadsheet = (text: string): string =>
  FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text

/** Restores the text from a field that `forSpreadsheet` returned. */
export const fromSpreadsheet = (field: string): string =>
  field.startsWith("'") && FORMULA.test(field) ? field.slice(1) : field
