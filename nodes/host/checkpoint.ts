/**
 * Snapshots and the checkpoint: what a new owner need not replay.
 *
 * Invariants:
 * K1. A snapshot is taken between commits, so it never runs ahead of the journal.
 * K2. The checkpoint is stored after everything it stands for: every actor changed up to it has a stored snapshot, every
 *     deadline and every queue with waiting work is in the stored index, every effect up to it has been performed.
 * K3. All of it may be lost at once: then the whole journal is replayed.
 */
import { hashOf } from '../../protocol/subjects.ts'
import { addressOf, snapshot, type Cell } from './cell.ts'
import type { Shard } from './shard.ts'

/** Milliseconds between checkpoints. */
const EVERY = 2000
/** A changed actor is stored once its new events are worth half its snapshot, or after this many milliseconds. */
const LATEST = 30_000
/** Snapshots taken in one pause of the loop. */
const SLICE = 64
/** Idle actors leave memory after this many milliseconds, unless they want to be woken sooner than `SOON`. */
const IDLE = 60_000
const SOON = 60_000
/** Parts of the index; only changed parts are stored. An entry is the key of an actor with its deadline, or of a queue with work. */
const PARTS = 64

type Indexed = readonly [key: string, at?: number]
interface Saved { readonly cell: Cell; readonly data: Uint8Array; readonly dirty: number; readonly grown: number }

export class Keeper {
  readonly #shard: Shard
  /** Sequences that snapshots on their way stand for. */
  readonly #onTheWay = new Set<Saved>()
  readonly #lastSaved = new WeakMap<Cell, number>()
  #parts: string[] = []
  #cancel: (() => void) | undefined
  #stopped = false
  #checkpoint = 0
  #busy: Promise<void> = Promise.resolve()

  constructor(shard: Shard) {
    this.#shard = shard
  }
  #key(what: string): string {
    return `_/${this.#shard.shard}/${what}`
  }

  /** Read the checkpoint and the index. Gives the sequence up to which nothing needs a replay; 0 when unknown. */
  async load(): Promise<number> {
    const { snapshots } = this.#shard.deps
    const { partition } = this.#shard
    const stored = await snapshots.get(partition, this.#key('checkpoint'))
    if (!stored) return 0
    const { sequence, parts } = JSON.parse(new TextDecoder().decode(stored)) as { sequence: number; parts: readonly number[] }
    const texts = await Promise.all(parts.map((part) => snapshots.get(partition, this.#key(`deadlines/${part}`))))
    if (texts.some((text) => text === undefined)) return 0
    for (const [i, text] of texts.entries()) {
      const json = new TextDecoder().decode(text)
      this.#parts[parts[i] ?? 0] = json
      for (const [key, at] of JSON.parse(json) as Indexed[]) {
        if (at === undefined) this.#shard.offers.recall({ ...addressOf(key), kind: 'queue' })
        else this.#shard.deadlines.set(key, at)
      }
    }
    this.#checkpoint = sequence
    return sequence
  }

  start(): void {
    const { clock, log } = this.#shard.deps
    const tick = () => {
      this.#busy = this.#round(false).catch((error) => log.warn({ err: error, shard: this.#shard.name }, 'the checkpoint could not be stored; the next one will')).then(() => {
        if (!this.#stopped) this.#cancel = clock.later(EVERY, tick)
      })
    }
    this.#cancel = clock.later(EVERY, tick)
  }
  /** @param flush store everything first. */
  async stop(flush: boolean): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    if (!flush) return
    await this.#busy
    await this.#round(true).catch((error) => this.#shard.deps.log.warn({ err: error, shard: this.#shard.name }, 'the last checkpoint could not be stored; more will be replayed'))
  }

  async #round(all: boolean): Promise<void> {
    const { clock } = this.#shard.deps
    const now = clock.elapsed()
    const due = [...this.#shard.cells.all()].filter((cell) => cell.dirty > 0 && !cell.saving && (all || this.#due(cell, now)))
    for (let i = 0; i < due.length; i += SLICE) await this.#save(due.slice(i, i + SLICE))
    await this.#mark()
    if (!all) this.#relieve(now)
  }
  #due(cell: Cell, now: number): boolean {
    if (cell.grown * 2 >= cell.stored || cell.actor.ended?.(cell.state as never)) return true
    return now - (this.#lastSaved.get(cell) ?? 0) >= LATEST
  }

  /** Take the snapshots of some cells in one pause of the loop, then store them. */
  async #save(cells: readonly Cell[]): Promise<void> {
    const { snapshots } = this.#shard.deps
    const taken = await new Promise<Saved[]>((done) => this.#shard.task(() => done(cells.map((cell) => {
      const saved: Saved = { cell, data: snapshot(cell), dirty: cell.dirty, grown: cell.grown }
      cell.dirty = 0
      cell.grown = 0
      cell.saving = true
      this.#onTheWay.add(saved)
      return saved
    })), () => done([])))
    await Promise.all(taken.map(async (saved) => {
      const { cell, data } = saved
      try {
        await snapshots.put(this.#shard.partition, cell.key, data)
        cell.stored = data.byteLength
        this.#lastSaved.set(cell, this.#shard.deps.clock.elapsed())
      } catch (error) {
        cell.dirty = saved.dirty
        cell.grown += saved.grown
        throw error
      } finally {
        cell.saving = false
        this.#onTheWay.delete(saved)
      }
    }))
  }

  /** Store the index, then the checkpoint. */
  async #mark(): Promise<void> {
    const shard = this.#shard
    const { snapshots } = shard.deps
    const plan = await new Promise<{ sequence: number; parts: string[] } | undefined>((done) => shard.task(() => done({ sequence: this.#covered(), parts: this.#index() }), () => done(undefined)))
    if (!plan || plan.sequence <= this.#checkpoint) return
    await Promise.all(plan.parts.map(async (json, part) => {
      if (json === this.#parts[part] || (json === '[]' && this.#parts[part] === undefined)) return
      await snapshots.put(shard.partition, this.#key(`deadlines/${part}`), new TextEncoder().encode(json))
      this.#parts[part] = json
    }))
    const parts = this.#parts.flatMap((json, part) => (json === undefined ? [] : [part]))
    await snapshots.put(shard.partition, this.#key('checkpoint'), new TextEncoder().encode(JSON.stringify({ v: 1, sequence: plan.sequence, parts })))
    this.#checkpoint = plan.sequence
  }
  /** The sequence up to which every snapshot is stored and every effect performed. */
  #covered(): number {
    let low = this.#shard.sequence + 1
    for (const cell of this.#shard.cells.all()) if (cell.dirty > 0 && cell.dirty < low) low = cell.dirty
    for (const { dirty } of this.#onTheWay) if (dirty < low) low = dirty
    return Math.min(low, this.#shard.effects.low() ?? low) - 1
  }
  #index(): string[] {
    const parts: Indexed[][] = Array.from({ length: PARTS }, () => [])
    const add = (entry: Indexed) => parts[hashOf(entry[0]) % PARTS]?.push(entry)
    for (const entry of this.#shard.deadlines.entries()) add(entry)
    for (const key of this.#shard.offers.waiting()) add([key])
    return parts.map((part) => JSON.stringify(part))
  }

  /** Let go of actors that have ended or are idle, and whose snapshot is stored. */
  #relieve(now: number): void {
    const { clock } = this.#shard.deps
    this.#shard.task(() => {
      for (const cell of [...this.#shard.cells.all()]) {
        if (cell.dirty > 0 || cell.saving) continue
        const at = this.#shard.deadlines.get(cell.key)
        const soon = at !== undefined && (cell.actor.recover !== undefined || at - clock.now() < SOON)
        if (!soon && (cell.actor.ended?.(cell.state as never) || now - cell.used > IDLE)) this.#shard.cells.evict(cell)
      }
    })
  }
}

