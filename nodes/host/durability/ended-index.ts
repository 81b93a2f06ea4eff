/**
 * The index of a shard's ended actors that have no snapshot of their last state. It contains the
 * cursor of the last event of each, from which the actor is read from the journal
 * (`../memory/past.ts`). The index consists of segments, each of which is one stored value.
 *
 * Invariants:
 * I1. A segment is written once and never replaced. The keys of the segments contain the epoch of
 *     their writer, so owners never overwrite each other's segments.
 * I2. A segment is stored before the record of the checkpoint that names it, and deleted after a
 *     record that no longer names it was stored.
 * I3. Segments that are not full are in memory. Of a full segment, a filter is in memory, and its
 *     entries are read when the filter lets a hash pass.
 * I4. Each entry is written at most once per size class: when the index has many segments of one
 *     class, the next segment replaces them (a log-structured merge tree, O'Neil et al. 1996).
 */
import type { ShardContext } from '../shard-context.ts'
import {
  cursorsOf,
  type Entries,
  entriesOf,
  filterOf,
  hashOfKey,
  mayInclude,
  merge,
  pack,
  unpack,
} from './ended-entries.ts'
import { LostState } from './lost-state.ts'

/** A segment as the record names it. */
export type SegmentName = readonly [epoch: number, number: number, count: number]

/** Number of segments of one size class, or of smaller ones, that are merged into one. */
const MERGED = 4
/** Number of entries from which a segment is full, and its maximum: 256 KiB of data. */
const FULL = 4096
export const MAX_ENTRIES = 16_000
/** Maximum number of full segments whose entries are in memory: 2 MiB. */
const PAGES = 8

interface Segment {
  readonly name: SegmentName
  /** Present if the segment is not full. */
  readonly entries?: Entries
  /** Present if the segment is full. */
  readonly filter?: Uint8Array
}
const countOf = ({ name }: { readonly name: SegmentName }): number => name[2]
/** The size class of a segment: the integer part of the logarithm of its count to the base 4. */
const classOf = (count: number): number => (31 - Math.clz32(count)) >> 1

export class EndedIndex {
  readonly #context: ShardContext
  /** The segments that the stored record names. */
  #stored: readonly Segment[] = []
  /** The segments that the next record names. */
  #next: readonly Segment[] = []
  /** Segments that the next record does not name. They are deleted after it was stored. */
  readonly #dropped = new Set<Segment>()
  #written = 0
  /** Entries of full segments that were read or written last. */
  readonly #pages = new Map<Segment, Promise<Entries>>()

  constructor(context: ShardContext) {
    this.#context = context
  }
  /** The names of the segments for the next record. */
  get names(): readonly SegmentName[] {
    return this.#next.map(({ name }) => name)
  }
  #key([epoch, number]: SegmentName, part = ''): string {
    return `_/${this.#context.shard}/ended/${epoch}/${number}${part}`
  }

  /** Reads the segments that a record names. Returns false when one is missing. */
  async load(names: readonly SegmentName[]): Promise<boolean> {
    const segments = await Promise.all(names.map((name) => this.#open(name)))
    this.#stored = this.#next = segments.filter((segment) => segment !== undefined)
    return this.#next.length === names.length
  }
  async #open(name: SegmentName): Promise<Segment | undefined> {
    if (name[2] < FULL) {
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
    return found && unpack(found.data, name[2])
  }

  /**
   * Adds actors to the index for the next record, and stores a segment that contains them.
   * @param actors at most `MAX_ENTRIES`, with the cursor of the last event of each (`prev`).
   * @throws Error when the segment may not be stored.
   */
  async add(actors: readonly { readonly key: string; readonly prev: number }[]): Promise<void> {
    if (actors.length === 0) return
    let entries = entriesOf(actors)
    let kept = this.#next
    for (let small = smaller(kept, entries); small.length > 0; small = smaller(kept, entries)) {
      for (const segment of small) if (segment.entries) entries = merge(segment.entries, entries)
      kept = kept.slice(0, -small.length)
    }
    const { epoch } = this.#context.position
    const name: SegmentName = [epoch, this.#written++, entries.hashes.length]
    const added = await this.#write(name, entries)
    for (const segment of this.#next.slice(kept.length)) this.#dropped.add(segment)
    this.#next = [...kept, added]
  }
  async #write(name: SegmentName, entries: Entries): Promise<Segment> {
    if (name[2] < FULL) {
      await this.#put(this.#key(name), pack(entries))
      return { name, entries }
    }
    const segment = { name, filter: filterOf(entries) }
    await Promise.all([
      this.#put(this.#key(name), pack(entries)),
      this.#put(this.#key(name, '/filter'), segment.filter),
    ])
    void this.#keep(segment, Promise.resolve(entries))
    return segment
  }
  async #put(key: string, data: Uint8Array): Promise<void> {
    const { deps, partition } = this.#context
    if ((await deps.snapshots.put(partition, key, data, 0)) === undefined)
      throw new Error(`${key} exists already`)
  }

  /** Called after a record with `names` was stored. */
  adopt(): void {
    this.#stored = this.#next
    void this.#erase([...this.#dropped])
    this.#dropped.clear()
  }
  /**
   * Called when it is unknown whether the record was stored. The next record names the segments of
   * the last one again, and the actors that were added since are added again.
   */
  discard(): void {
    for (const segment of this.#stored) this.#dropped.delete(segment)
    for (const segment of this.#next)
      if (!this.#stored.includes(segment)) this.#dropped.add(segment)
    this.#next = this.#stored
  }
  /**
   * Empties the index, because everything is replayed.
   * @param erase whether a record without segments was stored.
   */
  clear(erase: boolean): void {
    if (erase) void this.#erase(this.#next)
    this.#stored = this.#next = []
    this.#pages.clear()
  }
  /** Deletes segments. A segment that remains after a failure only wastes space. */
  async #erase(segments: readonly Segment[]): Promise<void> {
    const { deps, partition } = this.#context
    for (const { name } of segments) {
      await deps.snapshots.delete(partition, this.#key(name)).catch(() => {})
      if (name[2] >= FULL)
        await deps.snapshots.delete(partition, this.#key(name, '/filter')).catch(() => {})
    }
  }

  /**
   * Returns the cursors that may be those of an actor's last event, highest first.
   * @throws LostState when a segment is missing.
   * @throws Error when the storage does not answer.
   */
  async find(key: string): Promise<readonly number[]> {
    const hash = hashOfKey(key)
    const found: number[] = []
    for (const segment of this.#next) {
      if (segment.entries) found.push(...cursorsOf(segment.entries, hash))
      else if (segment.filter && mayInclude(segment.filter, hash))
        found.push(...cursorsOf(await this.#page(segment), hash))
    }
    return found.sort((a, b) => b - a)
  }
  /** Returns the entries of a full segment. Concurrent reads share one. */
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
      if (this.#pages.size <= PAGES) break
      this.#pages.delete(oldest)
    }
    return page
  }
}

/**
 * Returns the last segments that are merged into a new one: those of its size class and below, if
 * there are enough of them, and the result is not too large.
 */
function smaller(segments: readonly Segment[], { hashes }: Entries): readonly Segment[] {
  const most = Math.min(classOf(hashes.length), classOf(FULL) - 1)
  let total = hashes.length
  let from = segments.length
  for (; from > 0; from--) {
    const count = countOf(segments[from - 1] as Segment)
    if (classOf(count) > most || total + count > MAX_ENTRIES) break
    total += count
  }
  return segments.length - from < MERGED - 1 ? [] : segments.slice(from)
}
