/**
 * Finds integers that JSON numbers cannot represent, such as account numbers of 20 digits. They
 * would be stored as other numbers. Pure functions.
 */

/** Matches the texts and numbers of JSON. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const INTEGER = /^[+-]?\d{16,}$/

/** Whether reading an integer changes it. */
function isInexact(integer: string): boolean {
  const value = Number(integer)
  if (!Number.isFinite(value)) return true
  // JSON contains the shortest text of a number, whose last digits can differ from its value.
  return String(value) !== integer && BigInt(integer) !== BigInt(value)
}

/**
 * Returns the first integer of a JSON text, or of a single numeral, that a number cannot represent.
 */
export function inexactInteger(json: string): string | undefined {
  if (!/\d{16}/.test(json)) return undefined
  for (const [token] of json.matchAll(TOKEN))
    if (INTEGER.test(token) && isInexact(token)) return token
  return undefined
}

/** Returns the message that refuses such an integer in a line of a file. */
export const inexactFault = (line: number, integer: string): string =>
  `Line ${line}: a number cannot store all digits of ${integer.slice(0, 80)}. ` +
  'Store it as a text, in a column of type string.'
