/**
 * The checkpoint of a shard as it is stored: one record, and the parts of its index.
 *
 * Invariants:
 * C1. The record is changed by compare-and-set. An owner that was overtaken cannot replace its successor's, and what it
 *     writes before that is true all the same.
 * C2. The parts belong to the epoch of their writer, so owners never write to each other's. A part is changed by
 *     compare-and-set too: a write that its owner gave up may arrive later, and must not replace the one made instead.
 * C3. The stream may lose its newest messages, also while an owner lives: always a whole tail, and always with the record
 *     of ownership, which is in the servers' memory. Therefore the old record is written once more behind everything the
 *     new one stands for; then a look at the ownership shows that nothing was lost before; and the new record is stored
 *     only on that very message, which a later loss would have taken along.
 * C4. A snapshot that replaces another may be lost when the one before is gone already, while the record is still there. Therefore
 *     the record names the snapshots that are being replaced before they are, and the next owner looks for each of them.
 */
import { LostSnapshot } from '../memory/actor-instance.ts'
import type { Shard } from '../shard.ts'

/** How far a shard is stored. */
export interface Covered {
  /** What lies up to this sequence needs no look: it is in snapshots, and its effects have been performed. */
  readonly sequence: number
  /** What lies up to this one is in snapshots; never less. */
  readonly state: number
}
/** `state` is absent in what older releases wrote: the same as `sequence`. */
interface Mark extends Omit<Covered, 'state'>, Partial<Pick<Covered, 'state'>> {
  readonly v: 1
  readonly epoch: number
  /** Numbers of the parts of the index. */
  readonly parts: readonly number[]
  /** Keys of stored snapshots that were being replaced; absent: none. */
  readonly replacing?: readonly string[]
}
const stateOf = ({ state, sequence }: Mark): number => state ?? sequence
/** The stored state is not what this owner stored: it was lost, or another owner came. Memory cannot be trusted with it any more. */
export class LostState extends Error {}

/** Times that a compare-and-set is tried before the round of storing is given up. */
const ATTEMPTS = 5

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const bytes = (value: unknown): Uint8Array => encode(JSON.stringify(value))
const parse = <T>(data: Uint8Array): T => JSON.parse(new TextDecoder().decode(data)) as T

export class Checkpoint implements Covered {
  readonly #shard: Shard
  #mark: Mark = { v: 1, sequence: 0, epoch: 0, parts: [] }
  #revision = 0
  /** Parts stored by this owner, as JSON; undefined: not stored, or not known. */
  readonly #parts: (string | undefined)[] = []
  /** Revisions of these parts; absent: never written by this owner; undefined: not known. */
  readonly #revisions = new Map<number, number | undefined>()

  /** Keys of snapshots that this owner replaces, and those that an owner before was replacing. */
  readonly #replacing = new Set<string>()
  #inherited: readonly string[] = []

  constructor(shard: Shard) {
    this.#shard = shard
  }
  get sequence(): number {
    return this.#mark.sequence
  }
  get state(): number {
    return stateOf(this.#mark)
  }
  #key(what: string): string {
    return `_/${this.#shard.shard}/${what}`
  }
  #part(epoch: number, part: number): string {
    return this.#key(`deadlines/${epoch}/${part}`)
  }

  /** Read the record and the parts of the index; undefined when nothing, or not all of it, is there. */
  async load<T>(): Promise<readonly T[] | undefined> {
    const { snapshots } = this.#shard.deps
    const { partition } = this.#shard
    const found = await this.#read()
    if (found?.v !== 1) {
      // There must be a record to compare with, or a loss before the first checkpoint would go unseen. One in another form was
      // written by another release; so may the snapshots, and everything is replayed.
      await this.reset()
      return undefined
    }
    const texts = await Promise.all(
      found.parts.map((part) => snapshots.get(partition, this.#part(found.epoch, part))),
    )
    if (found.sequence === 0 || texts.some((text) => text === undefined)) {
      await this.reset()
      return undefined
    }
    const { replacing = [], ...mark } = found
    this.#inherited = replacing
    this.#mark = mark
    return texts.flatMap((text) => (text ? parse<T>(text.data) : []))
  }
  /** Store that nothing is known, for an owner that replays everything. One that takes no writes stores no checkpoint either. */
  async reset(): Promise<void> {
    this.#inherited = []
    this.#mark = { v: 1, sequence: 0, epoch: this.#shard.epoch, parts: [] }
    if (!this.#shard.gate.latched) await this.#again()
  }
  /** Look whether everything stored up to the checkpoint is still there. Throws `LostState` when it is not. */
  async confirm(): Promise<void> {
    await this.#read()
  }

  /** Stored snapshots are about to be replaced (C4). */
  async announce(keys: readonly string[]): Promise<void> {
    const known = this.#replacing.size
    for (const key of keys) this.#replacing.add(key)
    if (this.#replacing.size > known) await this.#again()
  }
  /** Look for the snapshots that were being replaced when the record was written. Throws `LostSnapshot` when one is missing. */
  async complete(): Promise<void> {
    const { deps, partition } = this.#shard
    await Promise.all(
      this.#inherited.map(async (key) => {
        if (!(await deps.snapshots.get(partition, key)))
          throw new LostSnapshot(`the snapshot of ${key} is missing`)
      }),
    )
  }

  /** Store the index and the checkpoint, behind all that they stand for. @param replaced keys of snapshots that are stored. @param held whether this node is still the recorded owner. */
  async store(
    { sequence, state }: Covered,
    index: readonly string[],
    replaced: readonly string[],
    held: () => Promise<boolean>,
  ): Promise<void> {
    const shard = this.#shard
    const { snapshots } = shard.deps
    await Promise.all(
      index.map(async (json, part) => {
        if (json === this.#parts[part] || (json === '[]' && this.#parts[part] === undefined)) return
        await this.#storePart(part, json)
      }),
    )
    const before = this.#mark
    const parts = index.flatMap((_, part) => (this.#parts[part] === undefined ? [] : [part]))
    const own = await this.#again()
    if (!(await held())) throw new LostState('the record of ownership is gone')
    // What an owner before was replacing was looked for, and now lies before the record.
    this.#inherited = []
    for (const key of replaced) this.#replacing.delete(key)
    const next: Mark = {
      v: 1,
      sequence: Math.max(sequence, before.sequence),
      state: Math.max(state, this.state),
      epoch: shard.epoch,
      parts,
    }
    const revision = await snapshots.put(
      shard.partition,
      this.#key('checkpoint'),
      this.#bytes(next),
      own,
    )
    if (revision === undefined) throw new Error('the checkpoint was overtaken')
    this.#revision = revision
    this.#mark = next
    if (before.epoch !== next.epoch)
      for (const part of before.parts)
        void snapshots.delete(shard.partition, this.#part(before.epoch, part)).catch(() => {})
  }

  /** Store a part of the index. Throws when it is not known to be stored. */
  async #storePart(part: number, json: string): Promise<void> {
    const { deps, epoch, partition } = this.#shard
    const key = this.#part(epoch, part)
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
    throw new Error('a part of the index is being overtaken')
  }
  #bytes(mark: Mark): Uint8Array {
    const replacing = [...this.#inherited, ...this.#replacing]
    return bytes({ ...mark, ...(replacing.length > 0 && { replacing }) })
  }
  /** Write the record as it is once more. Gives the revision of that very message. */
  async #again(): Promise<number> {
    const {
      deps: { snapshots },
      partition,
    } = this.#shard
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const revision = await snapshots.put(
        partition,
        this.#key('checkpoint'),
        this.#bytes(this.#mark),
        this.#revision,
      )
      if (revision !== undefined) {
        this.#revision = revision
        return revision
      }
      await this.#read()
    }
    throw new Error('the checkpoint is being overtaken')
  }
  /** The record, if it can be one that this owner knows or follows. */
  async #read(): Promise<Mark | undefined> {
    // What is stored while this is read is newer than the answer has to be.
    const [known, revision] = [this.#mark, this.#revision]
    const found = await this.#shard.deps.snapshots.get(
      this.#shard.partition,
      this.#key('checkpoint'),
    )
    const mark = found && parse<Mark>(found.data)
    if (mark && mark.epoch > this.#shard.epoch)
      throw new LostState('another owner has stored a checkpoint')
    const behind =
      (mark?.sequence ?? 0) < known.sequence || (mark ? stateOf(mark) : 0) < stateOf(known)
    // The record that comes back after a loss may say the same as the lost one: its revision is lower.
    const earlier = found !== undefined && found.revision < revision
    if ((revision > 0 && !mark) || behind || earlier) throw new LostState('stored state was lost')
    if (this.#revision === revision) this.#revision = found?.revision ?? 0
    return mark
  }
}
