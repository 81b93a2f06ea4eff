/**
 * Announces committed entries to followers, without a delivery guarantee. Followers detect gaps
 * themselves. Followers of one actor receive its entries. Followers of a whole project receive only
 * the newest cursor, once per commit, and then query a view. Sending every entry of the project's
 * actors to every gateway would be wasteful. Entries of runs and sessions that no node follows are
 * not published.
 */
import {
  type Entry,
  feedKinds,
  followedKinds,
  type Kind,
  lastCursor,
  type PlacedEntry,
} from '../../../protocol/entry.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { reportedKinds } from '../cluster/interest.ts'
import { type EnvelopeWriter, MAX_INLINE_CHARACTERS } from '../memory/codec.ts'
import { MAX_REPEATS } from '../memory/compact.ts'
import type { Bus } from '../ports.ts'

const followed: ReadonlySet<Kind> = new Set(followedKinds)
const fed: ReadonlySet<Kind> = new Set(feedKinds)

interface Committed {
  readonly entries: readonly Entry[]
  /** The number of characters of each entry, as the writer returned it. */
  readonly sizes: readonly number[]
  readonly writer: Pick<EnvelopeWriter, 'part'>
}
/**
 * Announces the entries of one commit, in order.
 * @param batch the entries as they were stored.
 * @param fail called with an unexpected error.
 */
export function announce(
  bus: Bus,
  placed: readonly PlacedEntry[],
  batch: Committed,
  fail: (error: unknown) => void,
): void {
  try {
    announceEntries(bus, placed, batch)
  } catch (error) {
    fail(error)
  }
}
function announceEntries(bus: Bus, placed: readonly PlacedEntry[], batch: Committed): void {
  const live = bus.hears(LIVE)
  const reached = new Map<string, number>()
  for (let i = 0; i < placed.length; i++) {
    const one = placed[i] as PlacedEntry
    const { kind, project } = one.entry
    if (fed.has(kind)) reached.set(project, lastCursor(one))
    if (live && followed.has(kind)) announceEntry(bus, one, batch, i)
  }
  for (const [project, cursor] of reached) bus.publish(subjects.moved(project), { cursor })
}
/** The first token of `subjects.live`. */
const LIVE = 'live'
function announceEntry(
  bus: Bus,
  one: PlacedEntry,
  { entries, sizes, writer }: Committed,
  i: number,
): void {
  const { cursor, entry } = one
  const subject = subjects.live(entry.project, entry.kind, entry.id)
  if (reportedKinds.has(entry.kind) && !bus.wants(subject)) return
  const part = writer.part(i)
  const size = sizes[i] ?? 0
  // In format 3, the writer does not provide the JSON of the entry, and `size` is the length of the
  // compact form. There, up to `MAX_REPEATS` events contain a reference to a payload instead of the
  // payload, so the JSON may be longer. Its length is computed unless even the longest possible
  // JSON is within the limit.
  const large =
    part === undefined && size > MAX_INLINE_CHARACTERS / (MAX_REPEATS + 1)
      ? JSON.stringify(entry).length > MAX_INLINE_CHARACTERS
      : size > MAX_INLINE_CHARACTERS
  if (large) for (const chunk of chunksOf(one)) bus.publish(subject, chunk)
  else
    bus.publish(
      subject,
      one,
      part !== undefined && entry === entries[i]
        ? () => `{"cursor":${cursor},"entry":${part}}`
        : undefined,
    )
}

/**
 * Maximum size in bytes of an event that is announced whole: half of the maximum message size in
 * `nats.conf`.
 */
const MAX_WHOLE_BYTES = 4 * 1_048_576

/**
 * Splits a large entry into smaller entries that follow each other without a gap. An event that is
 * too large to be announced whole is reduced to its type, in a separate entry.
 */
export function chunksOf({ cursor, entry: { reply: _, ...rest } }: PlacedEntry): PlacedEntry[] {
  const chunks: PlacedEntry[] = []
  let [from, size] = [0, 0]
  const cut = (to: number, one: Pick<PlacedEntry, 'stripped'> = {}) => {
    if (to === from) return
    const events = rest.events.slice(from, to)
    chunks.push({
      cursor: cursor + from,
      entry: {
        ...rest,
        events: one.stripped ? events.map(({ type }) => ({ type })) : events,
        prev: from === 0 ? rest.prev : cursor + from - 1,
      },
      ...one,
    })
    ;[from, size] = [to, 0]
  }
  rest.events.forEach((event, index) => {
    const bytes = Buffer.byteLength(JSON.stringify(event))
    if (size + bytes > MAX_INLINE_CHARACTERS) cut(index)
    size += bytes
    if (bytes > MAX_WHOLE_BYTES) cut(index + 1, { stripped: true })
  })
  cut(rest.events.length)
  return chunks
}
