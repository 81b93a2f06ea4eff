/** The actors of a shard that are in memory, and how the others come in: from their snapshot, else as new. */
import type { Address } from '../../protocol/entry.ts'
import { cellKey, freshCell, LostSnapshot, restore, type Cell } from './cell.ts'
import type { HostDeps } from './deps.ts'
import type { Letter } from './letter.ts'
import { LostState } from './mark.ts'

/** Milliseconds that a message can be late: longer than any request waits for its answer. */
const LATE = 30_000

/** Snapshots that are read ahead at a time: a batch of them; and the milliseconds after which they are read again, because the server that told them may have been another one than tells now that all is well. */
const AHEAD = { most: 256, lasts: 1000 }

/**
 * Milliseconds for which a snapshot that cannot be read is asked for again, and between two tries: while another server is
 * elected nobody answers for some seconds, and to give up the shard would cost all that is in memory.
 */
const PATIENCE = { most: 20_000, pause: 200 }

/** A snapshot could not be read: the shard cannot go on, but nobody is to blame. */
export class Unreadable extends Error {}

export class Cells {
  readonly #deps: HostDeps
  readonly #partition: number
  #since = Number.NEGATIVE_INFINITY
  readonly #cells = new Map<string, Cell>()
  /** Actors that left memory lately, when, and the revision that their snapshot then had. */
  readonly #left = new Map<string, { readonly at: number; readonly revision: number }>()
  /** Snapshots that are being read ahead of the batch that needs them; of no actor that is in memory. */
  readonly #ahead = new Map<string, { readonly at: number; readonly reading: ReturnType<HostDeps['snapshots']['get']> }>()
  readonly #confirm: () => Promise<void>
  readonly #wanted: () => boolean

  /**
   * @param confirm throws `LostState` when snapshots that were just read cannot be trusted to be the newest.
   * @param wanted whether the shard still needs what it asked for.
   */
  constructor(deps: HostDeps, partition: number, confirm: () => Promise<void>, wanted: () => boolean) {
    this.#deps = deps
    this.#partition = partition
    this.#confirm = confirm
    this.#wanted = wanted
  }
  get size(): number {
    return this.#cells.size
  }
  all(): IterableIterator<Cell> {
    return this.#cells.values()
  }
  /** The cell, if it is in memory. */
  loaded(address: Address): Cell | undefined {
    return this.#cells.get(cellKey(address))
  }
  /** The cell, read from its snapshot when it is not in memory. Only the shard's loop calls this, one at a time. */
  get(address: Address): Cell | Promise<Cell> {
    return this.loaded(address) ?? this.#sure(this.#load(address))
  }
  /** The actor that a letter is for, if it has to be read; one that is new is in memory afterwards, without a look at the snapshots. */
  absent(letter: Letter): Address | undefined {
    if (letter.type === 'task') return undefined
    const address = letter.type === 'ask' ? letter.to : letter.command
    if (this.loaded(address)) return undefined
    if (letter.type === 'ask' || !letter.command.born || !this.believes(address)) return address
    this.fresh(address)
    return undefined
  }
  /** A letter waits while others are being committed: read the snapshot that it needs meanwhile. */
  expect(letter: Letter): void {
    const address = this.#ahead.size < AHEAD.most && this.absent(letter)
    if (!address || this.#ahead.has(cellKey(address))) return
    const key = cellKey(address)
    const reading = this.#deps.snapshots.get(this.#partition, key)
    reading.catch(() => this.#ahead.delete(key))
    this.#ahead.set(key, { at: this.#deps.clock.elapsed(), reading })
  }
  /** Bring actors into memory together, before a batch needs them one after the other. */
  async load(addresses: readonly Address[]): Promise<void> {
    const missing = new Map(addresses.filter((address) => !this.loaded(address)).map((address) => [cellKey(address), address]))
    if (missing.size < 2) return
    const all = [...missing.values()]
    for (let i = 0; i < all.length; i += AHEAD.most) await this.#sure(Promise.all(all.slice(i, i + AHEAD.most).map((address) => this.#load(address))))
  }
  /** A cell without a look at the snapshots: for an actor that has no event yet. */
  fresh(address: Address): Cell {
    const cell = freshCell(address, this.#deps.kinds[address.kind], this.#deps.clock.elapsed())
    this.#cells.set(cell.key, cell)
    // What was read of it until now says nothing once it has changed here and left memory again.
    this.#ahead.delete(cell.key)
    return cell
  }
  /** Leave memory; what it holds must be stored. */
  evict(cell: Cell): void {
    this.#cells.delete(cell.key)
    this.#left.delete(cell.key)
    this.#left.set(cell.key, { at: this.#deps.clock.elapsed(), revision: cell.revision })
    for (const [key, { at }] of this.#left) {
      if (this.#deps.clock.elapsed() - at < LATE) break
      this.#left.delete(key)
    }
  }
  /**
   * Whether a command that says its actor is new can be believed. A message can be late, but not by more than `LATE` ms: the
   * actor may have been made by its repeat and have left memory since, here or at an owner before.
   */
  believes(address: Address): boolean {
    return this.#deps.clock.elapsed() - this.#since >= LATE && !this.#left.has(cellKey(address))
  }
  /** The shard was taken over from an owner that knew what this one does not. */
  inherit(): void {
    this.#since = this.#deps.clock.elapsed()
  }
  clear(): void {
    this.#cells.clear()
    this.#ahead.clear()
  }

  /** What was read is worth something only if nothing stored had been lost by then. */
  async #sure<T>(loading: Promise<T>): Promise<T> {
    try {
      const loaded = await loading
      await this.#patiently(this.#confirm)
      return loaded
    } catch (cause) {
      if (cause instanceof LostSnapshot) throw cause
      throw new Unreadable('a snapshot cannot be read', { cause })
    }
  }
  /** Try again while the storage does not answer. */
  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps
    const until = clock.elapsed() + PATIENCE.most
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof LostState || !this.#wanted() || clock.elapsed() >= until) throw error
        log.debug({ err: error }, 'a snapshot cannot be read yet')
        await new Promise<void>((again) => clock.later(PATIENCE.pause, again))
      }
    }
  }
  async #load(address: Address): Promise<Cell> {
    const key = cellKey(address)
    const found = await this.#patiently(async () => {
      const ahead = this.#ahead.get(key)
      this.#ahead.delete(key)
      const read = await (ahead && this.#deps.clock.elapsed() - ahead.at < AHEAD.lasts ? ahead.reading : this.#deps.snapshots.get(this.#partition, key))
      // A server that was cut off goes on believing that it leads, for less than `LATE` ms, and does not know what others stored since.
      if ((read?.revision ?? 0) >= (this.#left.get(key)?.revision ?? 0)) return read
      // Or what was stored is lost: then to ask again does not help.
      await this.#confirm()
      throw new Error('an older snapshot was read than the one that was stored')
    })
    const cell = this.fresh(address)
    if (!found) return cell
    restore(cell, found.data, this.#deps.clock.now())
    cell.revision = found.revision
    return cell
  }
}
