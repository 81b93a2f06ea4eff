/**
 * Encodes and decodes envelopes. If the JSON of an entry is longer than `LARGE`, its events and
 * reply are stored as a value in the object store. The entry then contains only the name of the
 * value. The value is stored before the envelope that refers to it is appended.
 */
import type { Entry, Envelope, Event } from '../../../protocol/entry.ts'
import type { Blobs } from '../ports.ts'

/** Characters of JSON above which the content of an entry is stored outside the journal. */
export const LARGE = 256 * 1024
interface Outside {
  readonly blob: string
  readonly count: number
}

/** Encodes an entry as JSON. The caller uses the text for the journal and to measure the size. */
export const encodeEntry = (entry: Entry): string => JSON.stringify(entry)

/**
 * Encodes an envelope.
 * @param parts JSON of its entries.
 * @param name unique name for its large values.
 */
export async function encode(
  head: Omit<Envelope, 'entries' | 'v'>,
  entries: readonly Entry[],
  parts: readonly string[],
  name: string,
  blobs: Blobs,
): Promise<Uint8Array> {
  const texts = parts.some((part) => part.length > LARGE)
    ? await Promise.all(
        parts.map((part, i) =>
          part.length > LARGE ? moveOut(entries[i] as Entry, `${name}.${i}`, blobs) : part,
        ),
      )
    : parts
  return Buffer.from(
    `{"v":1,"epoch":${head.epoch},"prev":${head.prev},"entries":[${texts.join(',')}]}`,
  )
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
/** The envelope version that this release writes and reads. */
const VERSION = 1

/**
 * Decodes an envelope and loads its large values.
 * @throws NewerRelease for an unknown version.
 * @throws Error when a large value is missing. Values are stored before their envelope, so the data
 *   is then damaged.
 */
export async function decode(data: Uint8Array, blobs: Pick<Blobs, 'get'>): Promise<Envelope> {
  const envelope = JSON.parse(new TextDecoder().decode(data)) as Envelope
  if (envelope.v !== VERSION) {
    throw new NewerRelease(
      `The journal has an envelope of version ${String(envelope.v)}; this release reads version ${VERSION}. ` +
        `It was written by a newer release of Baton: run that release or a newer one on every node.`,
    )
  }
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
