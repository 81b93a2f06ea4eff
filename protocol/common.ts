/**
 * Schemas and parsers that many resources share: times, durations, integers, tags, ids, pages.
 * Definitions that belong to a single resource are in the folder of that resource.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'

/** A UTC time in RFC 3339 format with exactly three fractional digits. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, milliseconds',
})
/** Formats Unix milliseconds as a `Timestamp`. */
export const timestamp = (at: number): string => {
  if (at !== latest.at) latest = { at, text: spelled(at) }
  return latest.text
}
/** The last formatted time, cached because one command formats the same time repeatedly. */
let latest = { at: Number.NaN, text: '' }
const p = (n: number, width: number) => String(n).padStart(width, '0')
const spelled = (at: number): string => {
  // A pure calendar computation (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"): no
  // clock is read.
  const days = Math.floor(at / 86_400_000)
  const ms = at - days * 86_400_000
  const z = days + 719_468
  const era = Math.floor(z / 146_097)
  const doe = z - era * 146_097
  const yoe = Math.floor(
    (doe - Math.floor(doe / 1460) + Math.floor(doe / 36_524) - Math.floor(doe / 146_096)) / 365,
  )
  const doy = doe - (365 * yoe + Math.floor(yoe / 4) - Math.floor(yoe / 100))
  const mp = Math.floor((5 * doy + 2) / 153)
  const month = mp < 10 ? mp + 3 : mp - 9
  const year = yoe + era * 400 + (month <= 2 ? 1 : 0)
  return (
    `${p(year, 4)}-${p(month, 2)}-${p(doy - Math.floor((153 * mp + 2) / 5) + 1, 2)}T` +
    `${p(Math.floor(ms / 3_600_000), 2)}:${p(Math.floor(ms / 60_000) % 60, 2)}:` +
    `${p(Math.floor(ms / 1000) % 60, 2)}.${p(ms % 1000, 3)}Z`
  )
}
const RFC3339 =
  /^\d{4}-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/
/**
 * Parses an RFC 3339 time. Returns Unix milliseconds, or undefined when the text is not valid. Days
 * that the month does not have, the hour 24 and leap seconds are not valid.
 */
export function parseTimestamp(text: string): number | undefined {
  const match = RFC3339.exec(text)
  if (!match) return undefined
  const [, month, day] = match
  // `Date.parse` would accept February 31 as March 2 or 3.
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`)
  if (date.getUTCMonth() + 1 !== Number(month) || date.getUTCDate() !== Number(day))
    return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}

/** Number of milliseconds in each unit of duration. */
const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
/**
 * Parses a Go duration (`90s`, `1h30m`, `1.5h`; https://pkg.go.dev/time#ParseDuration). Returns
 * milliseconds, possibly with a fraction, or undefined when the text is not valid or has a sign.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (!/^((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g))
    total += Number(amount) * (UNITS[unit ?? ''] ?? 0)
  return total
}

/**
 * Parses a signed 64-bit integer in decimal. Returns undefined when the text is not such an
 * integer. A value beyond the safe integers becomes the nearest safe integer, which is harmless for
 * positions, because no position is that large.
 */
export function wholeOf(text: string): number | undefined {
  if (!/^-?\d{1,19}$/.test(text) || BigInt(text) !== BigInt.asIntN(64, BigInt(text)))
    return undefined
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text)))
}

export const Duration = Type.String({
  pattern: '^(0|((\\d+(\\.\\d*)?|\\.\\d+)(ns|us|µs|μs|ms|s|m|h))+)$',
  description: 'Duration in the syntax of Go, such as 90s or 1h30m',
})
/**
 * Returns the size of a text in UTF-8 bytes. When the size cannot exceed `most` bytes, returns the
 * length in UTF-16 units instead, which avoids encoding.
 */
export const sizeOf = (text: string, most: number): number =>
  text.length * 3 <= most ? text.length : new TextEncoder().encode(text).length
/** A JSON object with any content. */
export const JsonObject = Type.Record(Type.String(), Type.Unknown())
export type JsonObject = Static<typeof JsonObject>
// Without an explicit pattern for keys, TypeBox uses one that does not match keys with line breaks.
// The limits on the length of keys are in `propertyNames`, because `Type.Record` retains only the
// pattern of its key schema.
export const Tags = Type.Record(
  Type.String({ pattern: '^[\\s\\S]*$' }),
  Type.String({ maxLength: 256 }),
  {
    maxProperties: 8,
    propertyNames: { minLength: 1, maxLength: 128 },
    description:
      'At most 8 entries; keys have 1 to 128 characters and must not begin with the reserved ' +
      'prefix of the brand',
  },
)
export type Tags = Static<typeof Tags>
export const Id = Type.String({ minLength: 1, maxLength: 128 })
/**
 * Options of a text without unpaired surrogates. UTF-8 cannot represent them, so different texts
 * would become the same token of a subject.
 */
export const wellFormed = {
  pattern: '^[^\\ud800-\\udfff]*$',
  description: 'well-formed Unicode text',
} as const
/** The name of a queue. */
export const QueueName = Type.String({ minLength: 1, maxLength: 128, ...wellFormed })
export const Handle = Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 64 })

/** Returns the schema of a request object that rejects unknown fields. */
export const Closed = <P extends TProperties>(
  properties: P,
  options: Readonly<Record<string, unknown>> = {},
): TObject<P> => Type.Object(properties, { additionalProperties: false, ...options })

/**
 * Returns the schema of a field for which null means absent. Because of the default `null`,
 * validation removes the field if its value is null.
 */
export const orAbsent = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Static<T>>({ anyOf: [schema, Type.Null()], default: null })

/**
 * Returns the idempotency key of a body, trimmed. Returns undefined if the key is absent or blank.
 */
export const bodyKey = ({
  idempotency_key,
}: {
  readonly idempotency_key?: string | undefined
}): string | undefined => idempotency_key?.trim() || undefined

/** Query parameters of paged lists. */
export const paging = {
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1024, description: 'next_cursor of the previous page' }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
}
/** Query parameters of lists that are returned completely unless the caller sets a limit. */
export const cutting = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      description: 'Maximum number of items to return; all by default',
    }),
  ),
}
/** Returns the schema of a page of a list. `next_cursor` is present when there are more items. */
export const pageOf = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: Type.Optional(Type.String()),
  })
/**
 * Returns the schema of a page of runs. The operator configures whether the array is returned as
 * `items`, as `data` or, by default, as both. Lists that are filtered by `loop_id` or
 * `source_event_id` have only `items`, because only clients that read `items` use these filters.
 */
export const runPageOf = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    data: Type.Optional(Type.Array(item)),
    has_more: Type.Boolean(),
    next_cursor: Type.Optional(Type.String()),
  })
/** Returns the schema of a list that is not paged. */
export const listOf = <T extends TSchema>(item: T) => Type.Object({ items: Type.Array(item) })
/** Returns the schema of a query parameter with several values, repeated or separated by commas. */
export const valuesOf = <T extends TSchema>(item: T) => Type.Array(item, { maxItems: 200 })
