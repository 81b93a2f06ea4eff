/**
 * Texts in CSV files for spreadsheet programs, which evaluate a field as a formula if it begins
 * with certain characters. A formula can start programs and send data to other hosts. The rule is
 * the advice of OWASP ("CSV Injection"): such texts begin with an apostrophe. Pure functions.
 *
 * Invariant: `fromSpreadsheet` restores every text that `forSpreadsheet` returned.
 */

/** The first characters of formulas, after the apostrophes of texts that began with some. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/
/** Numbers begin with a sign and are harmless. */
const NUMBER = /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Returns the text of a field that no spreadsheet program evaluates as a formula. */
export const forSpreadsheet = (text: string): string =>
  FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text

/** Returns the text for which `forSpreadsheet` returned a field. */
export const fromSpreadsheet = (field: string): string =>
  field.startsWith("'") && FORMULA.test(field) ? field.slice(1) : field
