/**
 * Stores snapshots and the checkpoint, so that a new owner need not replay everything.
 *
 * Invariants:
 * K1. A snapshot is taken between commits, so it is never ahead of the journal.
 * K2. The checkpoint is stored after everything that it covers. Every actor changed up to its
 *     `state` has a stored snapshot. Every deadline and every queue with waiting work is in the
 *     stored index. Every effect up to its `sequence`, which may be much lower than `state`, has
 *     been performed or abandoned.
 * K3. All snapshots and checkpoints, or the newest, may be lost, even while an owner is alive. The
 *     missing state is then restored by a replay.
 * K4. A stored snapshot is replaced only by a newer one, no matter which owner writes it.
 * K5. An actor leaves memory only when the `state` of the stored checkpoint covers it.
 * K6. Rounds of storing never overlap, because each of two concurrent rounds would consider the
 *     actors of the other one stored.
 */
import { sequenceOf } from '../../../protocol/entry.ts'
import type { Deadlines } from '../effects/deadlines.ts'
import type { Effects } from '../effects/effects.ts'
import type { Offers } from '../effects/offers.ts'
import type { ActorCache } from '../memory/actor-cache.ts'
import { type ActorInstance, addressOf, placeOf, snapshot } from '../memory/actor-instance.ts'
import type { ScheduleTask, ShardContext } from '../shard-context.ts'
import { Checkpoint, type Covered, LostState } from './checkpoint-store.ts'
import { type IndexEntry, indexParts } from './wake-index.ts'
import type { WriteGate } from './write-gate.ts'

/** Milliseconds between checkpoints. */
const CHECKPOINT_INTERVAL_MS = 1000
/**
 * A changed actor is stored once its new events amount to half of its snapshot, or after this many
 * milliseconds. A new owner replays everything since the oldest change that is not stored. With an
 * age of 30 s, the replay took 4 to 6 s at 200 runs/s on a busy machine.
 */
const MAX_SNAPSHOT_AGE_MS = 3000
/**
 * Minimum age in milliseconds at which the first snapshot of an actor is stored, unless the actor
 * has ended. It applies to kinds whose actors can end. Most runs end sooner and are stored once
 * instead of twice. In return, a takeover replays more.
 */
const FIRST_SNAPSHOT_DELAY_MS = 2000
/** Milliseconds before a failed snapshot is retried. */
const FAILED_SNAPSHOT_RETRY_MS = 60_000
/**
 * Maximum number of snapshots being written at the same time, and milliseconds spent on taking
 * snapshots in one pause of the shard's loop.
 */
const AT_ONCE = 512
const SNAPSHOT_SLICE_MS = 5
/**
 * Idle actors leave memory after this many milliseconds, unless they are due to be woken within
 * `NEAR_DEADLINE_MS`. An actor with leases (`recover`) stays in memory while it has a deadline.
 */
const IDLE_EVICTION_MS = 60_000
const NEAR_DEADLINE_MS = 60_000
interface Saved {
  readonly instance: ActorInstance
  readonly data: Uint8Array
  readonly prev: number
  readonly dirty: number
  readonly grown: number
}

interface CheckpointerParts {
  /** Removes the actors whose snapshots are stored. */
  readonly cache: Pick<ActorCache, 'evict'>
  readonly deadlines: Pick<Deadlines, 'entries' | 'get' | 'set'>
  readonly effects: Pick<Effects, 'low'>
  readonly gate: Pick<WriteGate, 'latched'>
  readonly offers: Pick<Offers, 'recall' | 'waiting'>
  readonly task: ScheduleTask
  /** Gives up the shard because its stored state was lost. */
  lose(reason: string): void
  /** Whether this node serves the shard and is its recorded owner. */
  owns(): Promise<boolean>
}

export class Checkpointer {
  readonly #context: ShardContext
  readonly #parts: CheckpointerParts
  /** Snapshots that are being written. */
  readonly #onTheWay = new Set<Saved>()
  readonly #lastSaved = new WeakMap<ActorInstance, number>()
  readonly #checkpoint: Checkpoint
  #cancel: (() => void) | undefined
  #stopped = false
  #started = false
  #checked = Number.NEGATIVE_INFINITY
  /** The last requested round of storing. */
  #busy: Promise<unknown> = Promise.resolve()

  constructor(context: ShardContext, parts: CheckpointerParts) {
    this.#context = context
    this.#parts = parts
    this.#checkpoint = new Checkpoint(context, parts.gate)
  }

  /** Reads the checkpoint and the index. Returns the covered positions; 0 if nothing is covered. */
  async load(): Promise<Covered> {
    for (const [key, at] of (await this.#checkpoint.load<IndexEntry>()) ?? []) {
      if (at === undefined) this.#parts.offers.recall({ ...addressOf(key), kind: 'queue' })
      else this.#parts.deadlines.set(key, at)
    }
    const { sequence, state } = this.#checkpoint
    return { sequence, state }
  }
  /**
   * Discards the checkpoint because a snapshot that it covers is missing. The whole journal is then
   * replayed.
   */
  reset(): Promise<void> {
    return this.#checkpoint.reset()
  }
  /**
   * Checks that the snapshots that an earlier owner was replacing still exist.
   * @throws LostSnapshot when one is missing.
   */
  complete(): Promise<void> {
    return this.#checkpoint.complete()
  }
  /**
   * Checks that no stored state was lost, so that the snapshots just read are the newest. During a
   * takeover, only the call with `end` checks.
   * @throws LostState when stored state was lost, or another owner has stored a checkpoint.
   */
  async confirm(end = false): Promise<void> {
    if (this.#started || end) await this.#checkpoint.confirm()
  }

  /** Milliseconds since the last successful round of storing, or since `start`. */
  get age(): number {
    return this.#context.deps.clock.elapsed() - this.#checked
  }

  start(): void {
    this.#started = true
    this.#checked = this.#context.deps.clock.elapsed()
    this.#again()
  }
  /**
   * Stores all changes while the shard continues to work, so that a stop soon afterwards has little
   * left to store.
   */
  async flush(): Promise<void> {
    this.#cancel?.()
    await this.#tick(true)
  }
  /** Stops storing; with `flush`, after a last round. An error in that round is only logged. */
  async stop(flush: boolean): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    if (!flush) return
    await this.#next(true).catch((error) =>
      this.#context.deps.log.warn(
        { event: 'final_checkpoint_failed', err: error, shard: this.#context.name },
        'final checkpoint failed; the next takeover replays more entries',
      ),
    )
  }
  #again(): void {
    this.#cancel?.()
    if (!this.#stopped)
      this.#cancel = this.#context.deps.clock.later(
        CHECKPOINT_INTERVAL_MS,
        () => void this.#tick(false),
      )
  }
  #tick(all: boolean): Promise<void> {
    const { deps, name } = this.#context
    return this.#next(all)
      .catch((error) => {
        if (error instanceof LostState) this.#parts.lose(error.message)
        else
          deps.log.warn(
            { event: 'checkpoint_failed', err: error, shard: name },
            'checkpoint failed; retrying at the next interval',
          )
      })
      .then(() => this.#again())
  }
  /** Runs a round after all earlier ones have ended. */
  #next(all: boolean): Promise<void> {
    const round = this.#busy.then(() => this.#round(all))
    this.#busy = round.catch(() => {})
    return round
  }

  async #round(all: boolean): Promise<void> {
    const { clock } = this.#context.deps
    const now = clock.elapsed()
    const due = [...this.#context.instances.all()].filter(
      (instance) => instance.dirty > 0 && !instance.saving && (all || this.#due(instance, now)),
    )
    const stored: Saved[] = []
    try {
      await this.#checkpoint.announce(
        due.filter(({ revision }) => revision > 0).map(({ key }) => key),
      )
      await this.#save(due, stored)
      await this.#mark(stored)
      this.#checked = clock.elapsed()
    } catch (error) {
      // It is unknown whether these snapshots still exist, so they are stored again.
      for (const saved of stored) this.#taint(saved)
      throw error
    }
    if (!all) this.#relieve(now)
  }
  #due(instance: ActorInstance, now: number): boolean {
    if ((this.#lastSaved.get(instance) ?? 0) > now) return false
    if (instance.actor.ended?.(instance.state as never)) return true
    if (
      instance.stored === 0 &&
      instance.actor.ended &&
      now - instance.born < FIRST_SNAPSHOT_DELAY_MS
    )
      return false
    return (
      instance.grown * 2 >= instance.stored ||
      now - (this.#lastSaved.get(instance) ?? 0) >= MAX_SNAPSHOT_AGE_MS
    )
  }

  /**
   * Takes snapshots of actors, some in each pause of the loop, and writes them concurrently. If a
   * snapshot could not be stored, throws once no other write is in flight.
   */
  async #save(instances: readonly ActorInstance[], stored: Saved[]): Promise<void> {
    const writing = new Set<Promise<void>>()
    const failures: unknown[] = []
    for (let i = 0; i < instances.length && failures.length === 0; ) {
      const taken = await this.#take(instances.slice(i, i + AT_ONCE - writing.size))
      if (taken.length === 0) break
      i += taken.length
      for (const saved of taken) {
        if (!saved) continue
        const written = this.#write(saved)
          .then(
            () => void stored.push(saved),
            (error) => void failures.push(error),
          )
          .finally(() => writing.delete(written))
        writing.add(written)
      }
      while (writing.size >= AT_ONCE) await Promise.race(writing)
    }
    await Promise.all(writing)
    if (failures.length > 0) throw failures[0]
  }
  /**
   * Takes snapshots of the first actors of a list, at least one, for about `SNAPSHOT_SLICE_MS`. The
   * element of an actor whose snapshot cannot be taken is undefined. The result is empty when the
   * shard was given up.
   */
  #take(instances: readonly ActorInstance[]): Promise<(Saved | undefined)[]> {
    const { clock } = this.#context.deps
    return new Promise((done) =>
      this.#parts.task(
        () => {
          const taken: (Saved | undefined)[] = []
          const until = clock.elapsed() + SNAPSHOT_SLICE_MS
          for (const instance of instances) {
            taken.push(this.#snapshot(instance))
            if (clock.elapsed() >= until) break
          }
          done(taken)
        },
        () => done([]),
        true,
      ),
    )
  }
  /**
   * Takes a snapshot. Returns undefined when that fails, for example because the actor is too large
   * for one string. The checkpoint then stays before the actor's changes and a takeover takes
   * longer, but the shard continues to work.
   */
  #snapshot(instance: ActorInstance): Saved | undefined {
    const { clock, log } = this.#context.deps
    try {
      const saved: Saved = {
        instance: instance,
        data: snapshot(instance),
        prev: instance.prev,
        dirty: instance.dirty,
        grown: instance.grown,
      }
      instance.dirty = 0
      instance.grown = 0
      instance.saving = true
      this.#onTheWay.add(saved)
      return saved
    } catch (error) {
      this.#lastSaved.set(instance, clock.elapsed() + FAILED_SNAPSHOT_RETRY_MS)
      log.error(
        { event: 'actor_snapshot_failed', err: error, kind: instance.kind, id: instance.id },
        'actor snapshot failed; the next takeover replays from the previous snapshot',
      )
      return undefined
    }
  }
  async #write(saved: Saved): Promise<void> {
    try {
      await this.#put(saved)
      saved.instance.stored = saved.data.byteLength
      this.#lastSaved.set(saved.instance, this.#context.deps.clock.elapsed())
    } catch (error) {
      this.#taint(saved)
      throw error
    } finally {
      saved.instance.saving = false
      this.#onTheWay.delete(saved)
    }
  }
  #taint({ instance, dirty, grown }: Saved): void {
    instance.dirty = instance.dirty === 0 ? dirty : Math.min(dirty, instance.dirty)
    instance.grown += grown
  }
  /** Stores a snapshot, unless the stored one is at least as new. */
  async #put({ instance, data, prev }: Saved): Promise<void> {
    const { deps, partition } = this.#context
    const { snapshots } = deps
    for (;;) {
      const revision = await snapshots.put(partition, instance.key, data, instance.revision)
      if (revision !== undefined) {
        instance.revision = revision
        return
      }
      const found = await snapshots.get(partition, instance.key)
      instance.revision = found?.revision ?? 0
      if (found && placeOf(found.data) >= prev) return
    }
  }

  /**
   * Stores the index, then the checkpoint. A checkpoint whose `state` would decrease is not stored.
   * A checkpoint that would not advance is stored only if snapshots were stored in this round.
   */
  async #mark(stored: readonly Saved[]): Promise<void> {
    const anew = stored.length > 0
    const plan = await new Promise<(Covered & { parts: string[] }) | undefined>((done) =>
      this.#parts.task(
        () => {
          const { sequence, state } = this.#covered()
          const known = this.#checkpoint
          const stays =
            state < known.state || (state === known.state && sequence <= known.sequence && !anew)
          // The index of many sleeping runs is long, so it is built only when it is stored.
          done(
            stays
              ? undefined
              : {
                  sequence,
                  state,
                  parts: indexParts(this.#parts.deadlines.entries(), this.#parts.offers.waiting()),
                },
          )
        },
        () => done(undefined),
        true,
      ),
    )
    if (!plan) return
    const keys = stored.map(({ instance }) => instance.key)
    await this.#checkpoint.store(plan, plan.parts, keys, this.#parts.owns)
  }
  #covered(): Covered {
    let low = this.#context.position.sequence + 1
    for (const instance of this.#context.instances.all())
      if (instance.dirty > 0 && instance.dirty < low) low = instance.dirty
    for (const { dirty } of this.#onTheWay) if (dirty < low) low = dirty
    return { sequence: Math.min(low, this.#parts.effects.low() ?? low) - 1, state: low - 1 }
  }
  /** Evicts actors that have ended or are idle, if the stored checkpoint covers them (K5). */
  #relieve(now: number): void {
    const { clock } = this.#context.deps
    this.#parts.task(() => {
      for (const instance of [...this.#context.instances.all()]) {
        if (
          instance.dirty > 0 ||
          instance.saving ||
          sequenceOf(instance.prev) > this.#checkpoint.state
        )
          continue
        const at = this.#parts.deadlines.get(instance.key)
        const soon =
          at !== undefined &&
          (instance.actor.recover !== undefined || at - clock.now() < NEAR_DEADLINE_MS)
        if (
          !soon &&
          (instance.actor.ended?.(instance.state as never) ||
            now - instance.used > IDLE_EVICTION_MS)
        )
          this.#parts.cache.evict(instance)
      }
    })
  }
}
