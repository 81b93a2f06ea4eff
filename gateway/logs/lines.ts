/**
 * Converts the lines of a frame to stored lines: valid text of limited length, without credentials.
 * Lines come from users' programs, so a line is never refused. The parts of a line that cannot be
 * stored are omitted, and the line is marked as truncated.
 */
import { type JsonObject, parseTimestamp, timestamp } from '../../protocol/common.ts'
import { type LogFrame, type LogLine, logLimits } from '../../protocol/jobs/logs.ts'
import { unsafeValueFault } from '../http/validate.ts'

/** Replaces credentials in a text. */
type Mask = (text: string) => string

/**
 * Number of characters that are examined beyond the maximum length of a text, to recognize a
 * credential that extends beyond it.
 */
const MARGIN_LENGTH = 2048
/** Marker at the end of truncated text. */
const CUT = '…'

/**
 * Returns the stored form of a line.
 * @param now Unix milliseconds, for a line without a valid time.
 */
export function storedLine(
  { at, level = 'info', text, fields }: LogFrame['lines'][number],
  now: number,
  mask: Mask,
): LogLine {
  const shown = shortened(text, mask)
  const kept = fields && fitting(fields, mask)
  return {
    at: timestamp(parseTimestamp(at ?? '') ?? now),
    level,
    text: shown.text,
    ...(kept && { fields: kept }),
    ...((shown.cut || (fields && !kept)) && { truncated: true }),
  }
}

/** Replaces unpaired surrogates, which UTF-8 cannot encode, with U+FFFD. */
const valid = (text: string): string => Buffer.from(text).toString()

function shortened(text: string, mask: Mask): { readonly text: string; readonly cut: boolean } {
  const long = text.length > logLimits.text + MARGIN_LENGTH
  // The last word may be the beginning of a credential. A part of a credential is not recognized,
  // so the word is dropped.
  const part = long
    ? text.slice(0, logLimits.text + MARGIN_LENGTH).replace(/\S{1,1024}$/, '')
    : text
  const masked = mask(valid(part))
  const bytes = Buffer.from(masked)
  if (!long && bytes.length <= logLimits.text) return { text: masked, cut: false }
  let end = Math.min(bytes.length, logLimits.text - Buffer.byteLength(CUT))
  // In UTF-8, bytes of the form 10xxxxxx continue a character.
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return { text: bytes.subarray(0, end).toString() + CUT, cut: true }
}

function fitting(fields: JsonObject, mask: Mask): JsonObject | undefined {
  if (unsafeValueFault(fields)) return undefined
  const masked = masking(fields, mask) as JsonObject
  return Buffer.byteLength(JSON.stringify(masked)) <= logLimits.fields ? masked : undefined
}
/** Masks all strings in a JSON value, including the names of members. */
const masking = (value: unknown, mask: Mask): unknown => {
  if (typeof value === 'string') return mask(valid(value))
  if (Array.isArray(value)) return value.map((item) => masking(item, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [mask(valid(name)), masking(item, mask)]),
  )
}
