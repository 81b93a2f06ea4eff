/**
 * Encodes and decodes envelopes. If the JSON of an entry is longer than `MAX_INLINE_CHARACTERS`,
 * its events and reply are stored as a value in the object store. The entry then contains the name
 * of the value instead. The value is stored before the envelope that refers to it is appended.
 *
 * Format 1 is the JSON of the envelope. Format 2 is the byte `COMPRESSED`, which no JSON text
 * begins with, and the same JSON as raw DEFLATE data (RFC 1951). The entries of a commit repeat
 * names, ids, times and origins, so format 2 needs only 5 to 10 % of the bytes of format 1
 * (`bench/HISTORY.md`). Format 3 is a different form of JSON (`compact.ts`), compressed as in
 * format 2.
 */
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Entry, Envelope, Event } from '../../../protocol/entry.ts'
import { type Blobs, UnreadableEntry } from '../ports.ts'
import { CompactWriter, type EventsReference, isCompact, restore } from './compact.ts'

/**
 * Length of the JSON in characters above which the content of an entry is stored outside the
 * journal.
 */
export const MAX_INLINE_CHARACTERS = 256 * 1024
/** The newest format that this release reads and writes. */
export const NEWEST_FORMAT = 3
export type EnvelopeFormat = 1 | 2 | typeof NEWEST_FORMAT
/** The newest format whose envelopes contain the plain JSON of each entry, which is announced. */
const ANNOUNCED_FORMAT = 2

/** First byte of an envelope of format 2. */
const COMPRESSED = 2
/** Level 1 is the fastest. Higher levels save few bytes, because most matches are long. */
const DEFLATE = { level: 1 } as const
/**
 * Length of the JSON in characters below which an envelope is not compressed. Preparing the
 * compressor takes as long as compressing 25 KB, and an idle shard commits one small envelope at a
 * time.
 */
const MIN_COMPRESSED_LENGTH = 16 * 1024
/**
 * Length of the JSON in characters above which the compression runs in libuv's threads, so that the
 * event loop is not blocked.
 */
const MIN_THREADED_LENGTH = 96 * 1024
const deflateApart = promisify(deflateRaw)

type Head = Pick<Envelope, 'epoch' | 'prev'>
/** Collects the JSON of the entries of one envelope. */
export interface EnvelopeWriter {
  /** Adds an entry. Returns the number of characters of its JSON. */
  add(entry: Entry): number
  /** Replaces the content of an entry with the name of the value that contains it. */
  moveOut(index: number, entry: Entry, outside: EventsReference): void
  /** Returns the JSON of an entry, if the JSON of the envelope contains it. */
  part(index: number): string | undefined
  /** Returns the JSON of the envelope. */
  json(head: Head): string
}
/** Writes formats 1 and 2. */
class PlainWriter implements EnvelopeWriter {
  readonly #parts: string[] = []

  add(entry: Entry): number {
    const part = encodeEntry(entry)
    this.#parts.push(part)
    return part.length
  }
  moveOut(index: number, { events: _, reply: __, ...rest }: Entry, outside: EventsReference): void {
    this.#parts[index] = JSON.stringify({ ...rest, events: outside })
  }
  part(index: number): string | undefined {
    return this.#parts[index]
  }
  json({ epoch, prev }: Head): string {
    return `{"v":1,"epoch":${epoch},"prev":${prev},"entries":[${this.#parts.join(',')}]}`
  }
}
const encodeEntry = (entry: Entry): string => JSON.stringify(entry)
/**
 * Returns the format of new envelopes: the newest one that the parameters permit and `allRead`
 * accepts. Format 1 is always permitted.
 * @param limit the newest format that may be written.
 * @param announced whether most entries may be announced to other processes. An announcement
 *   contains the JSON of an entry, which a writer of format 3 does not provide.
 */
export const formatOf = (
  limit: EnvelopeFormat,
  announced: boolean,
  allRead: (format: EnvelopeFormat) => boolean,
): EnvelopeFormat =>
  FORMATS.find(
    (format) => format <= limit && !(announced && format > ANNOUNCED_FORMAT) && allRead(format),
  ) ?? 1
/** The formats of envelopes above 1, newest first. */
const FORMATS: readonly EnvelopeFormat[] = [3, 2]

/** Returns a writer for an envelope in the given format. */
export const envelopeWriter = (format: EnvelopeFormat): EnvelopeWriter =>
  format > ANNOUNCED_FORMAT ? new CompactWriter() : new PlainWriter()

/**
 * Stores the large values of an envelope, and returns its JSON.
 * @param sizes the number of characters of each entry, as its writer returned it.
 * @param name unique prefix of the names of its large values.
 */
export async function envelopeJson(
  head: Head,
  {
    entries,
    sizes,
    writer,
  }: {
    readonly entries: readonly Entry[]
    readonly sizes: readonly number[]
    readonly writer: EnvelopeWriter
  },
  name: string,
  blobs: Blobs,
): Promise<string> {
  for (let i = 0; i < entries.length; i++) {
    if ((sizes[i] as number) <= MAX_INLINE_CHARACTERS) continue
    const entry = entries[i] as Entry
    const { events, reply } = entry
    const blob = `${name}.${i}`
    await blobs.put(blob, Buffer.from(JSON.stringify({ events, reply })))
    writer.moveOut(i, entry, { blob, count: events.length })
  }
  return writer.json(head)
}
/**
 * Returns the stored bytes of an envelope.
 * @param format the newest format that may be written; by default, the newest of this release.
 */
export async function encodeEnvelope(
  json: string,
  format: EnvelopeFormat = NEWEST_FORMAT,
): Promise<Uint8Array> {
  if (format === 1 || json.length < MIN_COMPRESSED_LENGTH) return Buffer.from(json)
  const packed =
    json.length < MIN_THREADED_LENGTH
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

/** Thrown when stored data has a format of a newer release, which this release cannot read. */
export class NewerRelease extends Error {
  override readonly name = 'NewerRelease'
}
/** The version of the JSON of an envelope in formats 1 and 2. */
const VERSION = 1
/** The first byte of an uncompressed envelope: `{`. */
const JSON_BEGIN = 0x7b
const newer = (version: string): string =>
  `The journal has an envelope of version ${version}; this release reads versions up to ${NEWEST_FORMAT}. ` +
  `It was written by a newer release of Baton: run that release or a newer one on every node.`

/**
 * Parses the JSON of an envelope. Large values are represented by their names only.
 * @param whole whether to include the data that views do not read.
 * @throws NewerRelease for an unknown version.
 */
export function parseEnvelope(json: string, whole = true): Envelope {
  if (isCompact(json)) return restore(json, whole)
  const envelope = JSON.parse(json) as Envelope
  if (envelope.v !== VERSION) throw new NewerRelease(newer(String(envelope.v)))
  return envelope
}

/**
 * Decodes an envelope and loads its large values.
 * @param data its bytes, or its JSON.
 * @param whole whether to include the data that views do not read.
 * @throws NewerRelease for an unknown version.
 * @throws UnreadableEntry when a large value is missing. Values are stored before their envelope, so the data
 *   is then damaged.
 */
export async function decodeEnvelope(
  data: Uint8Array | string,
  blobs: Pick<Blobs, 'get'>,
  whole = true,
): Promise<Envelope> {
  const envelope = parseEnvelope(typeof data === 'string' ? data : envelopeText(data), whole)
  if (envelope.entries.every((entry) => Array.isArray(entry.events))) return envelope
  const entries = await Promise.all(
    envelope.entries.map(async (entry): Promise<Entry> => {
      if (Array.isArray(entry.events)) return entry
      const { blob } = entry.events as unknown as EventsReference
      const value = await blobs.get(blob)
      if (!value)
        throw new UnreadableEntry(
          `journal: the large value ${blob} is missing from the object store`,
        )
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
