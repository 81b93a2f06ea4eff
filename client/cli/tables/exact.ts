/**
 * Finds integers that JSON numbers cannot represent, such as account numbers of 20 digits. They
 * would be stored as other numbers. Pure functions.
 */

/** Matches the texts and numbers of JSON. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const INTEGER = /^[+-]?\d{16,}$/

/** Whether reading a number changes it: an integer with too many digits, or a number too large. */
function isInexact(token: string): boolean {
  if (token.startsWith('"')) return false
  const value = Number(token)
  if (!Number.isFinite(value)) return true
  if (!INTEGER.test(token)) return false
  // JSON contains the shortest text of a number, whose last digits can differ from its value.
  return String(value) !== token && BigInt(token) !== BigInt(value)
}

/**
 * Returns the first integer of a JSON text, or of a single numeral, that a number cannot represent.
 * A number that is too large, which would be stored as null, counts as such an integer.
 */
export function inexactInteger(json: string): string | undefined {
  if (!/\d{16}|\d[eE]\+?\d{3}/.test(json)) return undefined
  for (const [token] of json.matchAll(TOKEN)) if (isInexact(token)) return token
  return undefined
}

/** Returns the message that refuses such an integer in a line of a file. */
export const inexactFault = (line: number, integer: string): string =>
  `Line ${line}: a number cannot store all digits of ${integer.slice(0, 80)}. ` +
  'Store it as a text, in a column of type string.'
