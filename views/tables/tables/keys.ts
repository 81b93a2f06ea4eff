/**
 * Sort keys: byte strings that sort in the same order as the rows when these are sorted by a list
 * of fields. The index of the view, the pages of queries and their cursors use the same keys.
 *
 * K1. For rows a and b with different ids, `keyOf(a) < keyOf(b)`, byte by byte, if and only if
 *     `compareRows` of the protocol puts a before b. There is one exception: texts with more than
 *     `TEXT_BYTES` bytes are sorted by their first bytes, so that keys and cursors are short.
 * K2. The key of the first fields of a list is a prefix of the key of the whole list. The next byte
 *     of the whole key is greater than `BEFORE` and less than `PAST`. If none of the values of the
 *     first fields was truncated, `key + BEFORE` and `key + PAST` therefore enclose exactly the
 *     rows with these values.
 *
 * A value is encoded as one byte for its rank (number, string, boolean, other), followed by the
 * bytes of the value itself. The bytes of a descending field are inverted. A missing value is the
 * byte `MISSING`, which is greater than the first byte of every value in both directions.
 */
import type { QueryField, SortField } from '../../../protocol/tables/query.ts'
import { instantOf } from '../../../protocol/tables/values.ts'

/** First byte of an ascending number in a key. */
const NUMBER = 0x10
/** First byte of an ascending text in a key. */
const STRING = 0x20
/** First byte of an ascending boolean in a key. */
const BOOLEAN = 0x30
/** The byte that represents a value of any other type in a key. */
const OTHER = 0x40
/** The byte that represents a missing value in a key. */
const MISSING = 0xf0
const BEFORE = Buffer.from([0x01])
const PAST = Buffer.from([0xff])

/** Number of leading UTF-8 bytes that determine the position of a text. */
export const TEXT_BYTES = 512

/**
 * Returns the bytes of a text, which sort like `compareTexts` and differ for different texts. The
 * bytes are UTF-8. Unpaired surrogates have no UTF-8 form, so they get bytes that sort where
 * `compareTexts` sorts such surrogates.
 */
export function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  // If the bytes contain no replacement character, nothing was lost when the text was encoded.
  if (!bytes.includes(REPLACEMENT)) return bytes
  const parts: Buffer[] = []
  for (const character of text) {
    const unit = character.charCodeAt(0)
    if (character.length === 2 || unit < 0xd800 || unit > 0xdfff) parts.push(Buffer.from(character))
    else if (unit >= 0xdc00) parts.push(Buffer.from([0xf8, unit >> 8, unit & 0xff]))
    else {
      // These bytes sort directly before the first character that begins with this surrogate.
      const first = Buffer.from(String.fromCharCode(unit, 0xdc00))
      first[3] = 0x7f
      parts.push(first)
    }
  }
  return Buffer.concat(parts)
}
const REPLACEMENT = Buffer.from('\ufffd')

/** Whether a value is a text that may be truncated in keys. */
export const isCut = (value: unknown): boolean =>
  typeof value === 'string' && Buffer.byteLength(value) >= TEXT_BYTES / 2
/**
 * Returns the key bytes of a text: the tag `STRING`, at most the first `TEXT_BYTES` bytes, and a
 * terminating zero byte. Zero bytes within the text become 0x00 0xFF.
 */
function terminated(text: string): Buffer {
  const bytes = textBytes(text).subarray(0, TEXT_BYTES)
  if (!bytes.includes(0)) return Buffer.concat([STRING_TAG, bytes, ZERO])
  const out: number[] = [STRING]
  for (const byte of bytes) out.push(byte, ...(byte === 0 ? [0xff] : []))
  out.push(0)
  return Buffer.from(out)
}
const STRING_TAG = Buffer.from([STRING])
const ZERO = Buffer.from([0])

function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(9)
  // Adding zero turns -0 into 0.
  bytes.writeDoubleBE(value + 0, 1)
  const sign = bytes[1] as number
  // IEEE 754 bit patterns sort like numbers if the sign bit of positive numbers, and all bits of
  // negative numbers, are inverted.
  if (sign < 0x80) bytes[1] = sign ^ 0x80
  else for (let i = 1; i < 9; i++) bytes[i] = (bytes[i] as number) ^ 0xff
  bytes[0] = NUMBER
  return bytes
}
const fixed = {
  true: Buffer.from([BOOLEAN, 1]),
  false: Buffer.from([BOOLEAN, 0]),
  other: Buffer.from([OTHER]),
  missing: Buffer.from([MISSING]),
}
function valueBytes({ type }: QueryField, value: unknown): Buffer {
  if (type === 'date') return numberBytes(instantOf(value) ?? 0)
  if (typeof value === 'number') return numberBytes(value)
  if (typeof value === 'string') return terminated(value)
  if (typeof value === 'boolean') return value ? fixed.true : fixed.false
  return fixed.other
}
/**
 * Returns the part of a key for the value of one field.
 * @param value a value of the field's type; undefined if it is missing.
 */
export function partOf({ field, descending }: SortField, value: unknown): Buffer {
  if (value === undefined) return fixed.missing
  const bytes = valueBytes(field, value)
  return descending ? invertBytes(bytes) : bytes
}
/** Converts the bytes of an ascending field to those of a descending field, and back. */
export function invertBytes(bytes: Buffer): Buffer {
  const other = Buffer.allocUnsafe(bytes.length)
  for (let i = 0; i < bytes.length; i++) other[i] = (bytes[i] as number) ^ 0xff
  return other
}
/**
 * Returns the key of a row.
 * @param read returns the value of a field, undefined if it is missing.
 */
export const keyOf = (fields: readonly SortField[], read: (field: QueryField) => unknown): Buffer =>
  Buffer.concat(fields.map((field) => partOf(field, read(field.field))))

/**
 * Returns the part of a key for a time in Unix milliseconds. All such parts have the same length.
 */
export function timePart(at: number, direction: 'ascending' | 'descending'): Buffer {
  const bytes = numberBytes(at)
  return direction === 'descending' ? invertBytes(bytes) : bytes
}
/**
 * Returns the key of a row in the order of its creation: of the fields `created_at` and `id`.
 * @param created_at Unix milliseconds.
 */
export const creationKey = (created_at: number, id: string): Buffer =>
  Buffer.concat([numberBytes(created_at), terminated(id)])

/** The rows whose keys are greater than or equal to `from`, and less than `to`. */
export interface KeyRange {
  readonly from: Buffer
  readonly to: Buffer
}
export const everything: KeyRange = { from: Buffer.alloc(0), to: PAST }
/** Returns a bound before all keys that begin with the given key. */
export const keyBefore = (key: Buffer): Buffer => Buffer.concat([key, BEFORE])
/** Returns a bound after all keys that begin with the given key. */
export const keyBehind = (key: Buffer): Buffer => Buffer.concat([key, PAST])
/** Returns the bound directly after one complete key. */
export const keyAfter = (key: Buffer): Buffer => Buffer.concat([key, ZERO])
/** Returns the intersection of two ranges. */
export const intersectRanges = (a: KeyRange, b: KeyRange): KeyRange => ({
  from: a.from.compare(b.from) < 0 ? b.from : a.from,
  to: a.to.compare(b.to) > 0 ? b.to : a.to,
})
