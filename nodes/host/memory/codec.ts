/**
 * Encodes and decodes envelopes. If the JSON of an entry is longer than `LARGE`, its events and
 * reply are stored as a value in the object store. The entry then contains only the name of the
 * value. The value is stored before the envelope that refers to it is appended.
 *
 * Format 1 is the JSON of the envelope. Format 2 is the byte `COMPRESSED`, which no JSON text
 * begins with, and the same JSON as raw DEFLATE data (RFC 1951). The entries of a commit repeat
 * names, ids, times and origins, so format 2 takes 5 to 10 % of the bytes (`bench/HISTORY.md`).
 */
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Entry, Envelope, Event } from '../../../protocol/entry.ts'
import type { Blobs } from '../ports.ts'

/** Characters of JSON above which the content of an entry is stored outside the journal. */
export const LARGE = 256 * 1024
/** The newest format that this release reads and writes. */
export const NEWEST_FORMAT = 2
export type EnvelopeFormat = 1 | typeof NEWEST_FORMAT

/** First byte of an envelope of format 2. */
const COMPRESSED = 2
/** Level 1 is the fastest; higher levels save few bytes, because most matches are long. */
const DEFLATE = { level: 1 } as const
/**
 * Characters of JSON below which an envelope is not compressed. Preparing the compressor takes as
 * long as compressing 25 KB, and an idle shard commits one small envelope at a time.
 */
const COMPRESSED_FROM = 16 * 1024
/** Characters of JSON above which libuv's threads compress, so that the event loop is not blocked. */
const COMPRESSED_APART_FROM = 96 * 1024
const deflateApart = promisify(deflateRaw)

interface Outside {
  readonly blob: string
  readonly count: number
}

/** Encodes an entry as JSON. The caller uses the text for the journal and to measure the size. */
export const encodeEntry = (entry: Entry): string => JSON.stringify(entry)

/**
 * Returns the JSON of an envelope.
 * @param parts JSON of its entries.
 * @param name unique name for its large values.
 */
export async function envelopeJson(
  head: Omit<Envelope, 'entries' | 'v'>,
  { entries, parts }: { readonly entries: readonly Entry[]; readonly parts: readonly string[] },
  name: string,
  blobs: Blobs,
): Promise<string> {
  const texts = parts.some((part) => part.length > LARGE)
    ? await Promise.all(
        parts.map((part, i) =>
          part.length > LARGE ? moveOut(entries[i] as Entry, `${name}.${i}`, blobs) : part,
        ),
      )
    : parts
  return `{"v":1,"epoch":${head.epoch},"prev":${head.prev},"entries":[${texts.join(',')}]}`
}
/**
 * Returns the stored bytes of an envelope.
 * @param format the newest format that may be written; by default, the newest of this release.
 */
export async function encode(
  json: string,
  format: EnvelopeFormat = NEWEST_FORMAT,
): Promise<Uint8Array> {
  if (format === 1 || json.length < COMPRESSED_FROM) return Buffer.from(json)
  const packed =
    json.length < COMPRESSED_APART_FROM
      ? deflateRawSync(json, DEFLATE)
      : await deflateApart(json, DEFLATE)
  const data = new Uint8Array(packed.length + 1)
  data[0] = COMPRESSED
  data.set(packed, 1)
  return data
}

/**
 * Returns the JSON text of an envelope. The text contains only the names of large values.
 * @throws NewerRelease for an unknown first byte.
 */
export function envelopeText(data: Uint8Array): string {
  const first = data[0]
  if (first === COMPRESSED) return inflateRawSync(data.subarray(1)).toString()
  if (first !== JSON_BEGIN) throw new NewerRelease(newer(String(first)))
  return new TextDecoder().decode(data)
}

async function moveOut(entry: Entry, name: string, blobs: Blobs): Promise<string> {
  const { events, reply, ...rest } = entry
  await blobs.put(name, Buffer.from(JSON.stringify({ events, reply })))
  const outside: Outside = { blob: name, count: events.length }
  return JSON.stringify({ ...rest, events: outside })
}

/** Thrown when stored data has a format of a newer release, which this release cannot read. */
export class NewerRelease extends Error {
  override readonly name = 'NewerRelease'
}
/** The version of the JSON of an envelope, in both formats. */
const VERSION = 1
const JSON_BEGIN = 0x7b
const newer = (version: string): string =>
  `The journal has an envelope of version ${version}; this release reads versions up to ${NEWEST_FORMAT}. ` +
  `It was written by a newer release of Baton: run that release or a newer one on every node.`

/**
 * Decodes an envelope and loads its large values.
 * @param data its bytes, or its JSON.
 * @throws NewerRelease for an unknown version.
 * @throws Error when a large value is missing. Values are stored before their envelope, so the data
 *   is then damaged.
 */
export async function decode(
  data: Uint8Array | string,
  blobs: Pick<Blobs, 'get'>,
): Promise<Envelope> {
  const envelope = JSON.parse(typeof data === 'string' ? data : envelopeText(data)) as Envelope
  if (envelope.v !== VERSION) throw new NewerRelease(newer(String(envelope.v)))
  if (envelope.entries.every((entry) => Array.isArray(entry.events))) return envelope
  const entries = await Promise.all(
    envelope.entries.map(async (entry): Promise<Entry> => {
      if (Array.isArray(entry.events)) return entry
      const { blob } = entry.events as unknown as Outside
      const value = await blobs.get(blob)
      if (!value)
        throw new Error(`journal: the large value ${blob} is missing from the object store`)
      const inside = JSON.parse(new TextDecoder().decode(value)) as {
        events: readonly Event[]
        reply?: unknown
      }
      return {
        ...entry,
        events: inside.events,
        ...(inside.reply !== undefined && { reply: inside.reply }),
      }
    }),
  )
  return { ...envelope, entries }
}
