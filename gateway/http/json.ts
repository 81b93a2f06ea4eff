/**
 * Parses JSON of clients with a bound on the number of different names. `JSON.parse` and every
 * later loop over the members of an object take far longer for new names than for repeated names
 * or for items of arrays, and they block the event loop.
 *
 * Invariant: names are counted before `JSON.parse`, and the count ends as soon as it exceeds the
 * bound. Texts that are not JSON may be counted incorrectly, because `JSON.parse` refuses them.
 */
import { randomInt } from 'node:crypto'

/**
 * Maximum number of different names in a body. `JSON.parse` takes about 100 ms for this number.
 */
export const MAX_NAMES = 50_000
/** Number of characters up to which a text is not examined, because its names are few. */
const MAX_UNEXAMINED_LENGTH = 65_536
/** Random parameters of the hash, so that clients cannot construct names with equal hashes. */
const SEED = randomInt(2 ** 32)
const FACTOR = (randomInt(2 ** 31) << 1) | 1

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

/**
 * Parses a JSON text. Returns the value, or the reason why the text is refused. `tooMany` means
 * that the text has too many names, and may be JSON.
 * @param maxNames maximum number of different names in all objects of the text together.
 */
export function parseJson(
  text: string,
  maxNames = MAX_NAMES,
): { readonly value: unknown } | { readonly fault: string; readonly tooMany?: true } {
  if (text.length > MAX_UNEXAMINED_LENGTH && hasMoreNames(text, maxNames))
    return { fault: `has more than ${maxNames} different names of members`, tooMany: true }
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { fault: `is not JSON: ${(error as Error).message.slice(0, 200)}` }
  }
}

/**
 * Returns whether the objects of a JSON text have more than `max` different names. Two spellings
 * of a name, with and without escapes, count as two names. Names with equal hashes count as one.
 */
function hasMoreNames(text: string, max: number): boolean {
  if (!hasMoreColons(text, max)) return false
  const bytes = Buffer.from(text)
  const { length } = bytes
  const known = createHashSet(max)
  let hash = 0
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]
    if (byte === COLON) {
      known.add(hash)
      if (known.size > max) return true
    }
    if (byte !== QUOTE) continue
    hash = SEED
    for (at++; at < length && bytes[at] !== QUOTE; at++) {
      if (bytes[at] === BACKSLASH) hash = Math.imul(hash ^ (bytes[at++] as number), FACTOR)
      hash = Math.imul(hash ^ (bytes[at] as number), FACTOR)
    }
  }
  return false
}

/**
 * Returns whether a text contains more than `max` colons, and may thus have more than `max` names.
 * This is much faster than the examination of every character, because most texts have few colons.
 */
function hasMoreColons(text: string, max: number): boolean {
  let count = 0
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1))
    if (++count > max) return true
  return false
}

/**
 * Creates a set of at most `max + 1` hashes: a table with linear probing, in which 0 is a free place.
 * A `Set` takes about five times as long.
 */
function createHashSet(max: number): { readonly size: number; add(hash: number): void } {
  const mask = 2 ** Math.ceil(Math.log2(2 * (max + 1))) - 1
  const table = new Int32Array(mask + 1)
  let size = 0
  return {
    get size() {
      return size
    },
    add(given) {
      // The upper bits depend on all bytes of the name, so they are mixed into the lower bits.
      const hash = given ^ (given >>> 15) || 1
      let at = hash & mask
      while (table[at] !== 0) {
        if (table[at] === hash) return
        at = (at + 1) & mask
      }
      table[at] = hash
      size++
    },
  }
}
