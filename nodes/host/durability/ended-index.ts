/**
 * The index of a shard's ended actors that have no snapshot of their last state. For each actor, it
 * contains the cursor of the last event, which is used to read the actor from the journal
 * (`../memory/past.ts`). The index consists of segments, each of which is one stored value.
 *
 * Invariants:
 * I1. The keys of the segments contain the epoch of their writer, so owners never overwrite each
 *     other's segments.
 * I2. A segment is stored before the checkpoint record that lists it. Once a record without the
 *     segment is stored, the owner reuses the segment's key, if the owner wrote the segment and it
 *     is not full. The owner writes the key by compare-and-set, because a write that timed out may
 *     still arrive. Only full segments and segments of earlier owners are deleted, because a
 *     deletion purges the stream and would add a request to most rounds.
 * I3. Segments that are not full are in memory. For a full segment, only a filter is in memory, and
 *     the entries are read when a hash passes the filter.
 * I4. There are few segments, and an entry is rewritten only a few times: a new segment replaces
 *     the last ones if at least three are of its size class or smaller (a log-structured merge
 *     tree, O'Neil et al. 1996).
 */
import type { ShardContext } from '../shard-context.ts'
import {
  cursorsOf,
  type Entries,
  entriesOf,
  filterOf,
  hashOfKey,
  mayInclude,
  mergeEntries,
  packEntries,
  unpackEntries,
} from './ended-entries.ts'
import { LostState } from './lost-state.ts'

/** A segment as the record lists it. `count` is 0 for a key that no longer contains a segment. */
export type SegmentName = readonly [epoch: number, number: number, count: number]

/** Number of segments of the same size class or smaller that are merged into one. */
const MERGED = 4
/** Number of entries at which a segment is full. */
const FULL_SEGMENT = 4096
/** Maximum number of entries in a segment, which amount to 256 KB of data. */
export const MAX_ENTRIES = 16_000
/** Maximum number of full segments whose entries are in memory. They take up to 2 MiB. */
const MAX_PAGES = 8

interface Segment {
  readonly name: SegmentName
  /** Revision of the value, if this owner wrote it and the segment is not full. */
  readonly revision?: number
  /** Present if the segment is not full. */
  readonly entries?: Entries
  /** Present if the segment is full. */
  readonly filter?: Uint8Array
}
const countOf = ({ name }: { readonly name: SegmentName }): number => name[2]
/** Returns the size class of a segment: the integer part of the base-4 logarithm of its count. */
const classOf = (count: number): number => (31 - Math.clz32(count)) >> 1

export class EndedIndex {
  readonly #context: ShardContext
  /** The segments that the next record lists. */
  #segments: readonly Segment[] = []
  /** Segments that the next record does not list. */
  #dropped: Segment[] = []
  /** Keys that new segments can reuse. */
  readonly #free: { readonly number: number; readonly revision: number }[] = []
  #written = 0
  /** Entries of the full segments that were read or written most recently. */
  readonly #pages = new Map<Segment, Promise<Entries>>()

  constructor(context: ShardContext) {
    this.#context = context
  }
  /**
   * What the next record lists: the segments, and the keys that contain no segment of this index
   * any more, which the next owner deletes.
   */
  get names(): readonly SegmentName[] {
    const { epoch } = this.#context.position
    return [
      ...this.#segments.map(({ name }) => name),
      ...this.#dropped.map(({ name: [of, number] }): SegmentName => [of, number, 0]),
      ...this.#free.map(({ number }): SegmentName => [epoch, number, 0]),
    ]
  }
  #key([epoch, number]: SegmentName, part = ''): string {
    return `_/${this.#context.shard}/ended/${epoch}/${number}${part}`
  }

  /** Reads the segments that a record lists. Returns false when one is missing. */
  async load(names: readonly SegmentName[]): Promise<boolean> {
    const used = names.filter((name) => name[2] > 0)
    this.#dropped = names.filter((name) => name[2] === 0).map((name) => ({ name }))
    const segments = await Promise.all(used.map((name) => this.#open(name)))
    this.#segments = segments.filter((segment) => segment !== undefined)
    return this.#segments.length === used.length
  }
  async #open(name: SegmentName): Promise<Segment | undefined> {
    if (name[2] < FULL_SEGMENT) {
      const entries = await this.#read(name)
      return entries && { name, entries }
    }
    const { deps, partition } = this.#context
    const found = await deps.snapshots.get(partition, this.#key(name, '/filter'))
    return found && { name, filter: found.data }
  }
  async #read(name: SegmentName): Promise<Entries | undefined> {
    const { deps, partition } = this.#context
    const found = await deps.snapshots.get(partition, this.#key(name))
    return found && unpackEntries(found.data, name[2])
  }

  /**
   * Adds actors to the index for the next record, and stores a segment that contains them.
   * @param actors at most `MAX_ENTRIES`, with the cursor of the last event of each (`prev`).
   * @throws Error when it is not certain that the segment is stored.
   */
  async add(actors: readonly { readonly key: string; readonly prev: number }[]): Promise<void> {
    if (actors.length === 0) return
    let entries = entriesOf(actors)
    let kept = this.#segments
    for (let small = smaller(kept, entries); small.length > 0; small = smaller(kept, entries)) {
      for (const segment of small)
        if (segment.entries) entries = mergeEntries(segment.entries, entries)
      kept = kept.slice(0, -small.length)
    }
    const added = await this.#write(entries)
    this.#dropped.push(...this.#segments.slice(kept.length))
    this.#segments = [...kept, added]
  }
  async #write(entries: Entries): Promise<Segment> {
    const { epoch } = this.#context.position
    const count = entries.hashes.length
    // If the write fails, the key is not used again, because its revision is then unknown.
    const { number, revision } = this.#free.pop() ?? { number: this.#written++, revision: 0 }
    const name: SegmentName = [epoch, number, count]
    if (count < FULL_SEGMENT) {
      const stored = await this.#put(this.#key(name), packEntries(entries), revision)
      return { name, entries, revision: stored }
    }
    const segment = { name, filter: filterOf(entries) }
    await Promise.all([
      this.#put(this.#key(name), packEntries(entries), revision),
      this.#put(this.#key(name, '/filter'), segment.filter, 0),
    ])
    void this.#keep(segment, Promise.resolve(entries))
    return segment
  }
  async #put(key: string, data: Uint8Array, revision: number): Promise<number> {
    const { deps, partition } = this.#context
    const stored = await deps.snapshots.put(partition, key, data, revision)
    if (stored === undefined) throw new Error(`${key} was overwritten`)
    return stored
  }

  /**
   * Records that a checkpoint record with `names` was stored. The key of a dropped segment can then
   * be reused if this owner wrote the segment and it was not full. The other dropped segments are
   * deleted.
   */
  adopt(): void {
    const dropped = this.#dropped
    this.#dropped = []
    for (const { name, revision } of dropped)
      if (revision !== undefined) this.#free.push({ number: name[1], revision })
    void this.#erase(dropped.filter(({ revision }) => revision === undefined))
  }
  /**
   * Empties the index, because everything is replayed.
   * @param erase whether a record without segments was stored, so that the segments can be deleted.
   */
  clear(erase: boolean): void {
    if (erase) void this.#erase(this.#segments)
    this.#segments = []
    this.#pages.clear()
  }
  /** Deletes segments. A segment that remains after a failure only wastes space. */
  async #erase(segments: readonly Segment[]): Promise<void> {
    const { deps, partition } = this.#context
    for (const { name } of segments) {
      await deps.snapshots.delete(partition, this.#key(name)).catch(() => {})
      if (name[2] >= FULL_SEGMENT)
        await deps.snapshots.delete(partition, this.#key(name, '/filter')).catch(() => {})
    }
  }

  /**
   * Returns the possible cursors of an actor's last event, highest first.
   * @throws LostState when a segment is missing.
   * @throws Error when the storage does not answer.
   */
  async find(key: string): Promise<readonly number[]> {
    const hash = hashOfKey(key)
    const found: number[] = []
    for (const segment of this.#segments) {
      if (segment.entries) found.push(...cursorsOf(segment.entries, hash))
      else if (segment.filter && mayInclude(segment.filter, hash))
        found.push(...cursorsOf(await this.#page(segment), hash))
    }
    return found.sort((a, b) => b - a)
  }
  /** Returns the entries of a full segment. Concurrent calls share one read. */
  #page(segment: Segment): Promise<Entries> {
    const known = this.#pages.get(segment)
    if (known) return this.#keep(segment, known)
    const reading = this.#read(segment.name).then((entries) => {
      if (!entries) throw new LostState('a segment of the index of ended actors was lost')
      return entries
    })
    reading.catch(() => this.#pages.delete(segment))
    return this.#keep(segment, reading)
  }
  #keep(segment: Segment, page: Promise<Entries>): Promise<Entries> {
    this.#pages.delete(segment)
    this.#pages.set(segment, page)
    for (const oldest of this.#pages.keys()) {
      if (this.#pages.size <= MAX_PAGES) break
      this.#pages.delete(oldest)
    }
    return page
  }
}

/**
 * Returns the segments that are to be merged into a new one: the last segments of its size class or
 * smaller, as many as fit. Returns none if there are fewer than `MERGED - 1`.
 */
function smaller(segments: readonly Segment[], { hashes }: Entries): readonly Segment[] {
  const most = Math.min(classOf(hashes.length), classOf(FULL_SEGMENT) - 1)
  let total = hashes.length
  let from = segments.length
  for (; from > 0; from--) {
    const count = countOf(segments[from - 1] as Segment)
    if (classOf(count) > most || total + count > MAX_ENTRIES) break
    total += count
  }
  return segments.length - from < MERGED - 1 ? [] : segments.slice(from)
}
