/**
 * The index of a checkpoint: the actors of a shard that must act without an incoming message. A new
 * owner reads the deadlines and the queues with work from the index before it loads the actors.
 */
import { hashOf } from '../../../protocol/subjects.ts'

/** Maximum number of parts of the index. Only changed parts are stored. */
const MAX_PARTS = 64
/** Average number of entries per part above which the number of parts is doubled. */
const ENTRIES_PER_PART = 64

/** The key of an actor with its deadline in Unix milliseconds, or the key of a queue with work. */
export type IndexEntry = readonly [key: string, at?: number]

/**
 * Returns the parts of the index as JSON. Entries are distributed by a hash of their key, so that
 * an entry stays in its part while the number of parts stays the same.
 */
export function indexParts(
  deadlines: Iterable<IndexEntry>,
  queuesWithWork: Iterable<string>,
): string[] {
  const entries: IndexEntry[] = [
    ...deadlines,
    ...[...queuesWithWork].map((key): IndexEntry => [key]),
  ]
  const needed = Math.max(1, entries.length / ENTRIES_PER_PART)
  const count = Math.min(MAX_PARTS, 2 ** Math.ceil(Math.log2(needed)))
  const parts: IndexEntry[][] = Array.from({ length: MAX_PARTS }, () => [])
  for (const entry of entries) parts[hashOf(entry[0]) % count]?.push(entry)
  return parts.map((part) => JSON.stringify(part))
}
