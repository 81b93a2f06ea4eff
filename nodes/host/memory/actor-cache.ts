/**
 * The actors of a shard that are in memory. Other actors are loaded from their snapshots and, if
 * the index of ended actors contains a later event, from the journal. An actor that has neither is
 * created.
 *
 * Invariants:
 * A1. No actor is in memory twice: concurrent requests for an actor share one read.
 * A2. An actor that was read enters memory only after a check shows that no stored state was lost.
 *     During a takeover, one check at the end covers all reads.
 * A3. Every actor with changes that are not stored is active.
 */
import type { Address, PlacedEntry } from '../../../protocol/entry.ts'
import { TransientMap } from '../../../protocol/rules/transient-map.ts'
import type { HostDeps } from '../deps.ts'
import { LostState } from '../durability/lost-state.ts'
import { actorOf, type MailboxMessage } from '../mailbox-message.ts'
import {
  type ActorInstance,
  actorKey,
  coveredCursor,
  LostSnapshot,
  newInstance,
  replayPast,
  restoreInstance,
} from './actor-instance.ts'
import { EvictedActors } from './evicted.ts'
import { ActorHistory } from './past.ts'

/** Assumed maximum delay of a message in milliseconds: twice the default `BATON_DEADLINE`. */
const MAX_MESSAGE_DELAY_MS = 30_000

/** Maximum number of snapshots read at a time. */
const MAX_CONCURRENT_READS = 256

/**
 * Maximum time in milliseconds between the start of a read and the start of the check that no
 * stored state was lost. If the check were later, the read and the check might be answered by
 * different servers.
 */
const MAX_CHECK_DELAY_MS = 1000

/**
 * Maximum duration of the retries of a snapshot read, and pause between two attempts, in
 * milliseconds. During a leader election, no server answers for several seconds. Without retries,
 * the shard would then be given up, and everything in memory discarded.
 */
const ACTOR_LOAD_MS = { most: 20_000, pause: 200 }

/**
 * Thrown when a snapshot could not be read, or when a check after the read showed that stored state
 * was lost; `cause` is the underlying error. The shard is then given up and taken over again.
 */
export class Unreadable extends Error {}

interface CacheParts {
  /** Throws `LostState` when the snapshots just read may not be the newest. */
  confirm(): Promise<void>
  /** Returns the possible cursors of the last event of an ended actor, highest first. */
  ended(key: string): Promise<readonly number[]>
  /** Whether the shard still needs the actors that it requested. */
  isWanted(): boolean
  /** Called when a read that `ready` started has ended, with or without success. */
  onRead(): void
}

export class ActorCache {
  readonly #deps: HostDeps
  readonly #partition: number
  readonly #journal: ActorHistory
  #takenOverAt = Number.NEGATIVE_INFINITY
  readonly #instances = new TransientMap<string, ActorInstance>()
  /**
   * Actors that entered memory, or changed, since the checkpointer found them idle (`rest`).
   */
  readonly #active = new TransientMap<string, ActorInstance>()
  readonly #evicted = new EvictedActors(MAX_MESSAGE_DELAY_MS)
  /** Actors that are being read, by key. */
  readonly #reads = new Map<string, Promise<ActorInstance>>()
  readonly #parts: CacheParts
  /** The last check for lost state. */
  #lastCheck: Promise<unknown> = Promise.resolve()
  /** Start time of the last check, in monotonic milliseconds. */
  #checkedAt = Number.NEGATIVE_INFINITY
  /** The next check, until it starts. */
  #nextCheck: Promise<void> | undefined
  #failed: unknown

  constructor(deps: HostDeps, partition: number, parts: CacheParts) {
    this.#deps = deps
    this.#partition = partition
    this.#journal = new ActorHistory(deps, partition)
    this.#parts = parts
  }
  get size(): number {
    return this.#instances.size
  }
  all(): Iterable<ActorInstance> {
    return this.#instances.values()
  }
  /**
   * Returns the actors that entered memory or changed recently. `rest` and `evict` may be called
   * during the iteration.
   */
  active(): Iterable<ActorInstance> {
    return this.#active.values()
  }
  /** Removes an unchanged actor from the active ones. It stays in memory. */
  rest(instance: ActorInstance): void {
    this.#active.delete(instance.key)
  }
  /**
   * Records that an envelope with an entry of an actor was stored.
   * @param characters length of the entry's JSON, if known.
   */
  changed(instance: ActorInstance, sequence: number, characters = 0): void {
    if (instance.dirty === 0) instance.dirty = sequence
    instance.grown += characters
    instance.entries++
    this.#active.set(instance.key, instance)
  }
  /** Returns the actor instance, if it is in memory. */
  loaded(address: Address): ActorInstance | undefined {
    return this.#instances.get(actorKey(address))
  }
  /** Returns the actor instance with a key (`actorKey`), if it is in memory. */
  find(key: string): ActorInstance | undefined {
    return this.#instances.get(key)
  }
  /**
   * Returns the actor instance, read from its snapshot if it is not in memory.
   * @throws Unreadable when the snapshot cannot be read.
   * @throws ForeignSnapshot when another release wrote the snapshot in an unknown format.
   */
  get(address: Address): ActorInstance | Promise<ActorInstance> {
    return this.loaded(address) ?? this.#read(address)
  }
  /**
   * Whether the actor of a message is in memory. A new actor is first created there, without
   * reading the snapshots. For any other actor that is not in memory, this starts a read, unless
   * `MAX_CONCURRENT_READS` reads are in progress.
   */
  ready(mailboxMessage: Exclude<MailboxMessage, { type: 'task' }>): boolean {
    const { key } = mailboxMessage
    if (this.#instances.has(key)) return true
    const address = actorOf(mailboxMessage)
    if (
      mailboxMessage.type === 'command' &&
      mailboxMessage.command.born &&
      this.trustsNew(address)
    ) {
      this.fresh(address)
      return true
    }
    if (this.#reads.size < MAX_CONCURRENT_READS && !this.#reads.has(key)) {
      this.#read(address)
        .catch((error: unknown) => {
          this.#failed ??= error
        })
        .finally(() => this.#parts.onRead())
    }
    return false
  }
  /**
   * Checks that no read that `ready` started has failed.
   * @throws Unreadable when a snapshot could not be read.
   * @throws ForeignSnapshot when another release wrote a snapshot in an unknown format.
   */
  check(): void {
    if (this.#failed !== undefined) throw this.#failed
  }
  /** Reads actors into memory concurrently, before they are needed one after the other. */
  async load(addresses: readonly Address[]): Promise<void> {
    const missing = addresses.filter((address) => !this.loaded(address))
    for (let i = 0; i < missing.length; i += MAX_CONCURRENT_READS)
      await Promise.all(
        missing.slice(i, i + MAX_CONCURRENT_READS).map((address) => this.get(address)),
      )
  }
  /**
   * Creates an actor instance without reading the snapshots, for an actor that has no event yet.
   */
  fresh(address: Address): ActorInstance {
    const instance = newInstance(
      address,
      this.#deps.kinds[address.kind],
      this.#deps.clock.elapsed(),
    )
    return this.#add(instance)
  }
  #add(instance: ActorInstance): ActorInstance {
    this.#instances.set(instance.key, instance)
    this.#active.set(instance.key, instance)
    return instance
  }
  /**
   * Removes an actor instance from memory. The caller ensures that the actor can be read again (K5
   * in `../durability/checkpointer.ts`).
   */
  evict(instance: ActorInstance): void {
    const { key, revision } = instance
    this.#instances.delete(key)
    this.#active.delete(key)
    this.#evicted.add(key, revision, this.#deps.clock.elapsed())
  }
  /**
   * Whether a command's claim that its actor is new (`born`) can be trusted. The command can be up
   * to `MAX_MESSAGE_DELAY_MS` late. In the meantime, a copy of the command may have created the
   * actor, and this or an earlier owner may have evicted it.
   */
  trustsNew(address: Address): boolean {
    return (
      this.#deps.clock.elapsed() - this.#takenOverAt >= MAX_MESSAGE_DELAY_MS &&
      this.#evicted.revisionOf(actorKey(address)) === undefined
    )
  }
  /**
   * Records that the shard was taken over from an earlier owner. It is unknown which actors the
   * earlier owner evicted recently, so no command's `born` is trusted for `MAX_MESSAGE_DELAY_MS`.
   */
  noteTakeover(): void {
    this.#takenOverAt = this.#deps.clock.elapsed()
  }
  clear(): void {
    this.#instances.clear()
    this.#active.clear()
  }

  #read(address: Address): Promise<ActorInstance> {
    const key = actorKey(address)
    const same = this.#reads.get(key)
    if (same) return same
    const reading = this.#load(address, key).finally(() => {
      this.#reads.delete(key)
      if (this.#reads.size === 0) this.#journal.clear()
    })
    this.#reads.set(key, reading)
    return reading
  }
  async #load(address: Address, key: string): Promise<ActorInstance> {
    const { clock, snapshots } = this.#deps
    const until = clock.elapsed() + ACTOR_LOAD_MS.most
    try {
      for (let attempt = 0; ; attempt++) {
        let at = clock.elapsed()
        const read = await this.#retried(() => {
          at = clock.elapsed()
          return snapshots.get(this.#partition, key)
        })
        const past = await this.#retried(() => this.#pastOf(address, key, read?.data))
        await this.#checkForLoss()
        const made = this.loaded(address)
        if (made) return made
        // A partitioned server may act as the leader for some time, and lacks newer snapshots. A
        // read that is older than the snapshot of an evicted actor is therefore repeated.
        const older = (read?.revision ?? 0) < (this.#evicted.revisionOf(key) ?? 0)
        if (older && (!this.#parts.isWanted() || clock.elapsed() >= until))
          throw new Error('the snapshot read is older than the stored snapshot')
        if (older) await new Promise<void>((again) => clock.later(ACTOR_LOAD_MS.pause, again))
        // If the check started too long after the read, the read is repeated, but only once: on a
        // slow system, every check would start too late.
        else if (attempt > 0 || this.#checkedAt - at < MAX_CHECK_DELAY_MS)
          return this.#add(this.#instanceOf(address, read, past))
      }
    } catch (cause) {
      if (cause instanceof LostSnapshot) throw cause
      throw new Unreadable('a snapshot cannot be read', { cause })
    }
  }
  /** Returns the entries of an ended actor that its snapshot does not cover, oldest first. */
  async #pastOf(
    address: Address,
    key: string,
    snapshot: Uint8Array | undefined,
  ): Promise<readonly PlacedEntry[]> {
    const cursors = await this.#parts.ended(key)
    if (cursors.length === 0) return []
    return this.#journal.of(address, cursors, snapshot ? coveredCursor(snapshot) : 0)
  }
  #instanceOf(
    address: Address,
    found: Awaited<ReturnType<HostDeps['snapshots']['get']>>,
    past: readonly PlacedEntry[],
  ): ActorInstance {
    const { clock, kinds } = this.#deps
    const instance = newInstance(address, kinds[address.kind], clock.elapsed())
    if (found) {
      restoreInstance(instance, found.data, clock.now())
      instance.revision = found.revision
    }
    if (past.length > 0) replayPast(instance, past, clock.now())
    return instance
  }
  /**
   * Checks that no stored state was lost. The check must start after the read that it validates.
   * Reads that end before the next check starts share that check.
   */
  #checkForLoss(): Promise<void> {
    this.#nextCheck ??= this.#lastCheck.then(() => {
      this.#nextCheck = undefined
      this.#checkedAt = this.#deps.clock.elapsed()
      const check = this.#retried(() => this.#parts.confirm())
      this.#lastCheck = check.catch(() => {})
      return check
    })
    return this.#nextCheck
  }
  /** Retries for up to `ACTOR_LOAD_MS.most` while the storage does not answer. */
  async #retried<T>(attempt: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps
    const until = clock.elapsed() + ACTOR_LOAD_MS.most
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof LostState || !this.#parts.isWanted() || clock.elapsed() >= until)
          throw error
        log.debug({ event: 'snapshot_read_failed', err: error }, 'snapshot read failed; retrying')
        await new Promise<void>((again) => clock.later(ACTOR_LOAD_MS.pause, again))
      }
    }
  }
}
