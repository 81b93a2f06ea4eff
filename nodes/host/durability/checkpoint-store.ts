/**
 * The stored checkpoint of a shard: one record, the parts of its index, and the segments of the
 * index of ended actors (`ended-index.ts`).
 *
 * Invariants:
 * C1. The record is changed by compare-and-set. A superseded owner cannot replace its successor's
 *     record, and the records that it stored before remain valid.
 * C2. The keys of the parts contain the epoch of their writer, so owners never overwrite each
 *     other's parts. Parts are changed by compare-and-set, too: a write that timed out may still
 *     arrive, and must not replace the later write of the same part.
 * C3. The stream of snapshots may lose its newest messages, even while an owner is alive. A loss
 *     removes all messages from some point on, and always the ownership record, which the NATS
 *     servers keep in memory only. Therefore a record that covers more than the old one is stored
 *     in three steps. First, the owner writes the old record again, after everything that the new
 *     record covers. Second, the owner checks that this node is still the recorded owner: if so,
 *     nothing was lost before. Third, it replaces the old record at the revision of the first step:
 *     this fails if the message of the first step was lost in the meantime.
 * C4. Storing a snapshot deletes the previous one of the same actor. If the newest messages are
 *     then lost, the actor has no snapshot at all, although an older record that covers it still
 *     exists. Therefore the record lists snapshots before they are replaced, and the next owner
 *     checks that each of them exists.
 */
import { LostSnapshot } from '../memory/actor-instance.ts'
import type { ShardContext } from '../shard-context.ts'
import { EndedIndex, type SegmentName } from './ended-index.ts'
import { LostState } from './lost-state.ts'
import type { WriteGate } from './write-gate.ts'

/** The sequences of a shard's journal up to which its stored data is complete. */
export interface Covered {
  /**
   * Entries up to this sequence need not be read: they are in snapshots, and their effects have
   * been performed.
   */
  readonly sequence: number
  /**
   * Entries up to this sequence are in snapshots, or their actors are in the index of ended actors.
   * Never less than `sequence`.
   */
  readonly state: number
}
/**
 * `state` is absent in empty records and in records of older releases, and then equals `sequence`.
 */
interface Mark extends Omit<Covered, 'state'>, Partial<Pick<Covered, 'state'>> {
  /**
   * Version of the record: 2 if there are `ended` actors, otherwise 1. A release that supports only
   * 1 ignores such a record, and therefore replays everything.
   */
  readonly v: 1 | 2
  readonly epoch: number
  /** Numbers of the stored parts of the index. */
  readonly parts: readonly number[]
  /** Keys of stored snapshots that were being replaced; absent if there were none. */
  readonly replacing?: readonly string[]
  /** The segments of the index of ended actors; absent if it is empty. */
  readonly ended?: readonly SegmentName[]
}
const stateOf = ({ state, sequence }: Mark): number => state ?? sequence

/** Number of compare-and-set attempts before a write fails. */
const ATTEMPTS = 5

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const bytes = (value: unknown): Uint8Array => encode(JSON.stringify(value))
const parse = <T>(data: Uint8Array): T => JSON.parse(new TextDecoder().decode(data)) as T

export class Checkpoint implements Covered {
  readonly ended: EndedIndex
  readonly #context: ShardContext
  readonly #gate: Pick<WriteGate, 'latched'>
  #mark: Mark = { v: 1, sequence: 0, epoch: 0, parts: [] }
  #revision = 0
  /**
   * The parts of the index that this owner has certainly stored, as JSON. The other elements are
   * undefined.
   */
  readonly #parts: (string | undefined)[] = []
  /**
   * Revision of each part of the index that this owner has written; undefined if the revision is
   * unknown.
   */
  readonly #revisions = new Map<number, number | undefined>()

  /** Keys of the snapshots that this owner is replacing, or that an earlier owner was replacing. */
  readonly #replacing = new Set<string>()
  /** Whether the stored record lists all of `#replacing`. */
  #announced = true
  #inherited: readonly string[] = []

  /** @param gate while it is latched, an empty checkpoint is not stored. */
  constructor(context: ShardContext, gate: Pick<WriteGate, 'latched'>) {
    this.#context = context
    this.#gate = gate
    this.ended = new EndedIndex(context)
  }
  get sequence(): number {
    return this.#mark.sequence
  }
  get state(): number {
    return stateOf(this.#mark)
  }
  #key(what: string): string {
    return `_/${this.#context.shard}/${what}`
  }
  #part(epoch: number, part: number): string {
    return this.#key(`deadlines/${epoch}/${part}`)
  }

  /**
   * Reads the record, the parts of the index of deadlines, and the segments of the index of ended
   * actors. Stores an empty checkpoint and returns undefined when the record is missing, empty or
   * of an unknown format, or when a part or a segment is missing.
   * @param replayable whether the journal has all entries. If not, nothing is stored.
   * @throws LostState when a newer owner has stored a checkpoint.
   */
  async load<T>(replayable: boolean): Promise<readonly T[] | undefined> {
    const { snapshots } = this.#context.deps
    const { partition } = this.#context
    const found = await this.#read()
    if (found?.v !== 1 && found?.v !== 2) {
      // An empty record is stored, because a loss before the first checkpoint would otherwise go
      // unnoticed. A record in another format was written by another release. Its snapshots may be
      // unreadable as well, so everything is replayed.
      await this.reset(replayable)
      return undefined
    }
    const [ended, ...texts] = await Promise.all([
      this.ended.load(found.ended ?? []),
      ...found.parts.map((part) => snapshots.get(partition, this.#part(found.epoch, part))),
    ])
    if (found.sequence === 0 || !ended || texts.some((text) => text === undefined)) {
      await this.reset(replayable)
      return undefined
    }
    const { replacing = [], ...mark } = found
    this.#inherited = replacing
    this.#mark = mark
    return texts.flatMap((text) => (text ? parse<T>(text.data) : []))
  }
  /** Returns the epoch in the stored record, or 0 if no record is stored. */
  async storedEpoch(): Promise<number> {
    const { deps, partition } = this.#context
    const found = await deps.snapshots.get(partition, this.#key('checkpoint'))
    return found ? (parse<Partial<Mark>>(found.data).epoch ?? 0) : 0
  }
  /**
   * Stores an empty checkpoint, for an owner that replays everything. While the gate is latched, or
   * without `stores`, the checkpoint becomes empty in memory only.
   */
  async reset(stores = true): Promise<void> {
    this.#inherited = []
    this.#mark = { v: 1, sequence: 0, epoch: this.#context.position.epoch, parts: [] }
    const isStored = stores && !this.#gate.latched
    if (isStored) await this.#again()
    this.ended.clear(isStored)
  }
  /**
   * Checks that the checkpoint, and hence everything that was stored before it, still exists.
   * @throws LostState when the checkpoint was lost, or a newer owner has stored a checkpoint.
   */
  async confirm(): Promise<void> {
    await this.#read()
  }

  /** Records which stored snapshots will be replaced next (C4). */
  async announce(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      if (this.#replacing.has(key)) continue
      this.#replacing.add(key)
      this.#announced = false
    }
    if (!this.#announced) await this.#again()
  }
  /**
   * Checks that the snapshots that an earlier owner was replacing still exist (C4).
   * @throws LostSnapshot when one is missing.
   */
  async complete(): Promise<void> {
    const { deps, partition } = this.#context
    await Promise.all(
      this.#inherited.map(async (key) => {
        if (!(await deps.snapshots.get(partition, key)))
          throw new LostSnapshot(`the snapshot of ${key} is missing`)
      }),
    )
  }

  /**
   * Stores the index, and then the checkpoint. The caller has already stored everything that they
   * cover. The checkpoint lists all segments of the index of ended actors.
   * @param replaced keys of the snapshots that this round has stored.
   * @param held returns whether this node is still the recorded owner.
   * @throws LostState when stored state was lost, or this node is no longer the recorded owner.
   */
  async store(
    { sequence, state }: Covered,
    index: readonly string[],
    replaced: readonly string[],
    held: () => Promise<boolean>,
  ): Promise<void> {
    const { deps, partition, position } = this.#context
    const { snapshots } = deps
    await Promise.all(
      index.map(async (json, part) => {
        if (json === this.#parts[part] || (json === '[]' && this.#parts[part] === undefined)) return
        await this.#storePart(part, json)
      }),
    )
    const before = this.#mark
    const parts = index.flatMap((_, part) => (this.#parts[part] === undefined ? [] : [part]))
    const own = await this.#again()
    if (!(await held())) throw new LostState('this node is no longer the recorded owner')
    // The snapshots that an earlier owner was replacing need no longer be listed: they have been
    // checked, and the record was stored after them. A loss of one of them would now remove the
    // record as well.
    this.#inherited = []
    for (const key of replaced) this.#replacing.delete(key)
    const ended = this.ended.names
    const next: Mark = {
      v: ended.length > 0 ? 2 : 1,
      sequence: Math.max(sequence, before.sequence),
      state: Math.max(state, this.state),
      epoch: position.epoch,
      parts,
      ...(ended.length > 0 && { ended }),
    }
    const revision = await snapshots.put(partition, this.#key('checkpoint'), this.#bytes(next), own)
    if (revision === undefined) throw new Error('the checkpoint was overwritten concurrently')
    this.#revision = revision
    this.#mark = next
    this.ended.adopt()
    if (before.epoch !== next.epoch)
      for (const part of before.parts)
        void snapshots.delete(partition, this.#part(before.epoch, part)).catch(() => {})
  }

  /**
   * Stores a part of the index.
   * @throws Error when it is not certain that the part is stored.
   */
  async #storePart(part: number, json: string): Promise<void> {
    const { deps, partition, position } = this.#context
    const key = this.#part(position.epoch, part)
    this.#parts[part] = undefined
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = this.#revisions.has(part) ? this.#revisions.get(part) : 0
      const revision = known ?? (await deps.snapshots.get(partition, key))?.revision ?? 0
      this.#revisions.set(part, undefined)
      const stored = await deps.snapshots.put(partition, key, encode(json), revision)
      if (stored !== undefined) {
        this.#revisions.set(part, stored)
        this.#parts[part] = json
        return
      }
    }
    throw new Error('a part of the index keeps being overwritten')
  }
  #bytes(mark: Mark): Uint8Array {
    const replacing = [...this.#inherited, ...this.#replacing]
    return bytes({ ...mark, ...(replacing.length > 0 && { replacing }) })
  }
  /** Stores the checkpoint with its current content. Returns the revision of the stored record. */
  async #again(): Promise<number> {
    const { deps, partition } = this.#context
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const revision = await deps.snapshots.put(
        partition,
        this.#key('checkpoint'),
        this.#bytes(this.#mark),
        this.#revision,
      )
      if (revision !== undefined) {
        this.#revision = revision
        this.#announced = true
        return revision
      }
      await this.#read()
    }
    throw new Error('the checkpoint keeps being overwritten')
  }
  /**
   * Reads the record.
   * @throws LostState when the record that this owner read or stored last was lost, or a newer
   *   owner has stored a record.
   */
  async #read(): Promise<Mark | undefined> {
    // The values are captured before the read, because a record that is stored during the read may
    // be newer than the answer.
    const [known, revision] = [this.#mark, this.#revision]
    const { deps, partition } = this.#context
    const found = await deps.snapshots.get(partition, this.#key('checkpoint'))
    const mark = found && parse<Mark>(found.data)
    if (mark && mark.epoch > this.#context.position.epoch)
      throw new LostState('another owner has stored a checkpoint')
    const behind =
      (mark?.sequence ?? 0) < known.sequence || (mark ? stateOf(mark) : 0) < stateOf(known)
    // The record that remains after a loss may equal the lost one, but its revision is lower.
    const earlier = found !== undefined && found.revision < revision
    if ((revision > 0 && !mark) || behind || earlier) throw new LostState('stored state was lost')
    if (this.#revision === revision) this.#revision = found?.revision ?? 0
    return mark
  }
}
