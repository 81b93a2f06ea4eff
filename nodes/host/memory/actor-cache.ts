/**
 * The actors of a shard that are in memory, and how the others come in: from their snapshot, else as new.
 *
 * Invariants:
 * A1. No actor is in memory twice: who wants one that is being read waits for the same reading.
 * A2. An actor comes into memory only when nothing stored had been lost after it was read.
 */
import type { Address } from '../../../protocol/entry.ts'
import { cellKey, freshCell, LostSnapshot, restore, type ActorInstance } from './actor-instance.ts'
import type { HostDeps } from '../deps.ts'
import { actorOf, type MailboxMessage } from '../mailbox-message.ts'
import { LostState } from '../durability/checkpoint-store.ts'

/** Milliseconds that a message can be late: longer than any request waits for its answer. */
const LATE = 30_000

/** Snapshots that are read at a time. */
const AT_ONCE = 256

/**
 * What was read is as new as it looks for this many milliseconds before all is found to be well: after that the server that told
 * it may have been another one.
 */
const LASTS = 1000

/**
 * Milliseconds for which a snapshot that cannot be read is asked for again, and between two tries: while another server is
 * elected nobody answers for some seconds, and to give up the shard would cost all that is in memory.
 */
const ACTOR_LOAD_MS = { most: 20_000, pause: 200 }

/** A snapshot could not be read: the shard cannot go on, but nobody is to blame. */
export class Unreadable extends Error {}

export class ActorCache {
  readonly #deps: HostDeps
  readonly #partition: number
  #since = Number.NEGATIVE_INFINITY
  readonly #cells = new Map<string, ActorInstance>()
  /** Actors that left memory lately, when, and the revision that their snapshot then had. */
  readonly #left = new Map<string, { readonly at: number; readonly revision: number }>()
  /** Actors that are being read. */
  readonly #coming = new Map<string, Promise<ActorInstance>>()
  readonly #confirm: () => Promise<void>
  readonly #wanted: () => boolean
  readonly #came: () => void
  /** The last look whether all is well, when it began, and the next one while it has not begun. */
  #look: Promise<unknown> = Promise.resolve()
  #lookedAt = Number.NEGATIVE_INFINITY
  #nextLook: Promise<void> | undefined
  #failed: unknown

  /**
   * @param confirm throws `LostState` when snapshots that were just read cannot be trusted to be the newest.
   * @param wanted whether the shard still needs what it asked for.
   * @param came called when an actor that a letter waits for has come, or never will.
   */
  constructor(
    deps: HostDeps,
    partition: number,
    confirm: () => Promise<void>,
    wanted: () => boolean,
    came: () => void,
  ) {
    this.#deps = deps
    this.#partition = partition
    this.#confirm = confirm
    this.#wanted = wanted
    this.#came = came
  }
  get size(): number {
    return this.#cells.size
  }
  all(): IterableIterator<ActorInstance> {
    return this.#cells.values()
  }
  /** The cell, if it is in memory. */
  loaded(address: Address): ActorInstance | undefined {
    return this.#cells.get(cellKey(address))
  }
  /** The cell, read from its snapshot when it is not in memory. Throws `Unreadable` when it cannot be, and `LostSnapshot`. */
  get(address: Address): ActorInstance | Promise<ActorInstance> {
    return this.loaded(address) ?? this.#come(address)
  }
  /**
   * Whether the actor of a letter is in memory; one that is new is from now on, without a look at the snapshots, any other is
   * being read.
   */
  ready(letter: Exclude<MailboxMessage, { type: 'task' }>): boolean {
    const address = actorOf(letter)
    if (this.loaded(address)) return true
    if (letter.type === 'command' && letter.command.born && this.believes(address)) {
      this.fresh(address)
      return true
    }
    if (this.#coming.size < AT_ONCE && !this.#coming.has(cellKey(address))) {
      this.#come(address)
        .catch((error: unknown) => {
          this.#failed ??= error
        })
        .finally(this.#came)
    }
    return false
  }
  /** Throws when an actor that a letter waits for cannot be read. */
  check(): void {
    if (this.#failed !== undefined) throw this.#failed
  }
  /** Bring actors into memory together, before they are needed one after the other. */
  async load(addresses: readonly Address[]): Promise<void> {
    const missing = addresses.filter((address) => !this.loaded(address))
    for (let i = 0; i < missing.length; i += AT_ONCE)
      await Promise.all(missing.slice(i, i + AT_ONCE).map((address) => this.get(address)))
  }
  /** A cell without a look at the snapshots: for an actor that has no event yet. */
  fresh(address: Address): ActorInstance {
    const cell = freshCell(address, this.#deps.kinds[address.kind], this.#deps.clock.elapsed())
    this.#cells.set(cell.key, cell)
    return cell
  }
  /** Leave memory; what it holds must be stored. */
  evict(cell: ActorInstance): void {
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
  }

  #come(address: Address): Promise<ActorInstance> {
    const key = cellKey(address)
    const same = this.#coming.get(key)
    if (same) return same
    const coming = this.#load(address, key).finally(() => this.#coming.delete(key))
    this.#coming.set(key, coming)
    return coming
  }
  async #load(address: Address, key: string): Promise<ActorInstance> {
    const { clock, snapshots } = this.#deps
    const until = clock.elapsed() + ACTOR_LOAD_MS.most
    try {
      for (let attempt = 0; ; attempt++) {
        let at = clock.elapsed()
        const read = await this.#patiently(() => {
          at = clock.elapsed()
          return snapshots.get(this.#partition, key)
        })
        await this.#allIsWell()
        const made = this.loaded(address)
        if (made) return made
        // A server that was cut off goes on believing that it leads, for less than `LATE` ms, and does not know what others stored since.
        const older = (read?.revision ?? 0) < (this.#left.get(key)?.revision ?? 0)
        if (older && (!this.#wanted() || clock.elapsed() >= until))
          throw new Error('an older snapshot was read than the one that was stored')
        if (older) await new Promise<void>((again) => clock.later(ACTOR_LOAD_MS.pause, again))
        // Read again once only: where everything takes long it would be too old for ever.
        else if (attempt > 0 || this.#lookedAt - at < LASTS) return this.#enter(address, read)
      }
    } catch (cause) {
      if (cause instanceof LostSnapshot) throw cause
      throw new Unreadable('a snapshot cannot be read', { cause })
    }
  }
  #enter(
    address: Address,
    found: Awaited<ReturnType<HostDeps['snapshots']['get']>>,
  ): ActorInstance {
    const cell = freshCell(address, this.#deps.kinds[address.kind], this.#deps.clock.elapsed())
    if (found) {
      restore(cell, found.data, this.#deps.clock.now())
      cell.revision = found.revision
    }
    this.#cells.set(cell.key, cell)
    return cell
  }
  /** What was read is worth something only if nothing stored had been lost by then: one look, begun later, for all that was read until then. */
  #allIsWell(): Promise<void> {
    this.#nextLook ??= this.#look.then(() => {
      this.#nextLook = undefined
      this.#lookedAt = this.#deps.clock.elapsed()
      const look = this.#patiently(this.#confirm)
      this.#look = look.catch(() => {})
      return look
    })
    return this.#nextLook
  }
  /** Try again while the storage does not answer. */
  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps
    const until = clock.elapsed() + ACTOR_LOAD_MS.most
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof LostState || !this.#wanted() || clock.elapsed() >= until) throw error
        log.debug({ err: error }, 'a snapshot cannot be read yet')
        await new Promise<void>((again) => clock.later(ACTOR_LOAD_MS.pause, again))
      }
    }
  }
}
