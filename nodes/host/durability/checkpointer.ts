/**
 * Stores snapshots and the checkpoint, so that a new owner need not replay everything.
 *
 * Invariants:
 * K1. A snapshot is taken between commits, so it is never ahead of the journal.
 * K2. The checkpoint is stored after everything that it covers. Every actor that has changed up to
 *     the checkpoint's `state` has a stored snapshot, or is in the stored index of ended actors
 *     with its last event. Every deadline and every queue with waiting work is in the stored index.
 *     Every effect up to the checkpoint's `sequence`, which may be much lower than `state`, has
 *     been performed or abandoned.
 * K3. All snapshots and checkpoints, or only the newest, may be lost, even while an owner is alive.
 *     The missing state is then restored by a replay.
 * K4. A stored snapshot is replaced only by a newer one, no matter which owner writes it.
 * K5. An actor is evicted only when the `state` of the stored checkpoint covers it, or when it has
 *     ended and can be read from the journal. In the second case, `state` does not pass the actor's
 *     changes until the actor is in the index of ended actors (`released.ts`).
 * K6. Storage rounds never overlap, because each of two concurrent rounds would consider the actors
 *     of the other round stored.
 */
import { sequenceOf } from '../../../protocol/entry.ts'
import type { Deadlines } from '../effects/deadlines.ts'
import type { Effects } from '../effects/effects.ts'
import type { Offers } from '../effects/offers.ts'
import type { ActorCache } from '../memory/actor-cache.ts'
import { type ActorInstance, addressOf } from '../memory/actor-instance.ts'
import type { ScheduleTask, ShardContext } from '../shard-context.ts'
import { Checkpoint, type Covered } from './checkpoint-store.ts'
import { MAX_ENTRIES } from './ended-index.ts'
import { LostState } from './lost-state.ts'
import { ReleasedActors } from './released.ts'
import { type Saved, SnapshotWriter } from './snapshot-writer.ts'
import { type IndexEntry, indexParts } from './wake-index.ts'
import type { WriteGate } from './write-gate.ts'

/** Milliseconds between checkpoints. */
const CHECKPOINT_INTERVAL_MS = 1000
/**
 * Age of the last snapshot, in milliseconds, at which a changed actor is stored again. The actor is
 * stored earlier once its new entries amount to half of its snapshot. A new owner replays
 * everything since the oldest change that is not stored. With an age of 30 s, the replay took 4 to
 * 6 s at 200 runs/s on a busy machine.
 */
const MAX_SNAPSHOT_AGE_MS = 3000
/**
 * Milliseconds that an actor must have been in memory before its first snapshot is stored, unless
 * the actor has ended. Applies only to kinds whose actors can end. Most runs end sooner, and are
 * stored once instead of twice. In return, a takeover replays more.
 */
const FIRST_SNAPSHOT_DELAY_MS = 2000
/**
 * An ended actor is not stored as a snapshot if it has at most this many entries since its last
 * snapshot, with at most this many characters. When the actor is needed, its entries are read one
 * after the other.
 */
const BRIEF = { entries: 16, characters: 65_536 }
/**
 * Milliseconds after which an idle actor is evicted. An actor with leases (`recover`) stays in
 * memory while it has a deadline.
 */
const IDLE_EVICTION_MS = 60_000
/** An idle actor that is due to be woken within this number of milliseconds is not evicted. */
const NEAR_DEADLINE_MS = 60_000
/** Milliseconds between two scans of all actors for idle ones. */
const IDLE_VISIT_MS = 5000

interface CheckpointerParts {
  /** Lists the actors to store, and evicts actors from memory. */
  readonly cache: Pick<ActorCache, 'active' | 'evict' | 'rest'>
  readonly deadlines: Pick<Deadlines, 'entries' | 'get' | 'set'>
  readonly effects: Pick<Effects, 'lowestPending'>
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
  readonly #checkpoint: Checkpoint
  readonly #writer: SnapshotWriter
  readonly #released = new ReleasedActors()
  #cancel: (() => void) | undefined
  #stopped = false
  #started = false
  #checked = Number.NEGATIVE_INFINITY
  #visited = Number.NEGATIVE_INFINITY
  /** The last requested storage round. */
  #busy: Promise<unknown> = Promise.resolve()

  constructor(context: ShardContext, parts: CheckpointerParts) {
    this.#context = context
    this.#parts = parts
    this.#checkpoint = new Checkpoint(context, parts.gate)
    this.#writer = new SnapshotWriter(context, parts.task)
  }

  /**
   * Reads the checkpoint and the index. Returns the covered positions; 0 if nothing is covered.
   * @param replayable whether the journal has all entries, so that stored state that cannot be read
   *   may be replaced.
   */
  async load(replayable: boolean): Promise<Covered> {
    for (const [key, at] of (await this.#checkpoint.load<IndexEntry>(replayable)) ?? []) {
      if (at === undefined) this.#parts.offers.recall({ ...addressOf(key), kind: 'queue' })
      else this.#parts.deadlines.set(key, at)
    }
    const { sequence, state } = this.#checkpoint
    return { sequence, state }
  }
  /** Returns the epoch in the stored checkpoint, or 0 if no checkpoint is stored. */
  storedEpoch(): Promise<number> {
    return this.#checkpoint.storedEpoch()
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
   * takeover, only the call with `end` performs the check.
   * @throws LostState when stored state was lost, or another owner has stored a checkpoint.
   */
  async confirm(end = false): Promise<void> {
    if (this.#started || end) await this.#checkpoint.confirm()
  }

  /**
   * Returns the possible cursors of the last event of an ended actor, highest first.
   * @throws LostState when stored state was lost.
   * @throws Error when the storage does not answer.
   */
  async ended(key: string): Promise<readonly number[]> {
    return [...this.#released.find(key), ...(await this.#checkpoint.ended.find(key))]
  }
  /**
   * Evicts those of the changed actors that have ended and can be read from the journal. Called
   * immediately after each commit, because such actors would otherwise survive several garbage
   * collections. A storage round calls this again for the ended actors that are still in memory.
   */
  release(changed: Iterable<ActorInstance>): void {
    for (const instance of changed) {
      if (!this.#isBrief(instance)) continue
      this.#released.add(instance)
      this.#parts.cache.evict(instance)
    }
  }

  /** Milliseconds since the last successful storage round, or since `start`. */
  get age(): number {
    return this.#context.deps.clock.elapsed() - this.#checked
  }

  start(): void {
    this.#started = true
    this.#checked = this.#context.deps.clock.elapsed()
    this.#scheduleRound()
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
    await this.#roundInTurn(true).catch((error) =>
      this.#context.deps.log.warn(
        { event: 'final_checkpoint_failed', err: error, shard: this.#context.name },
        'final checkpoint failed; the next takeover replays more entries',
      ),
    )
  }
  #scheduleRound(): void {
    this.#cancel?.()
    if (!this.#stopped)
      this.#cancel = this.#context.deps.clock.later(
        CHECKPOINT_INTERVAL_MS,
        () => void this.#tick(false),
      )
  }
  #tick(all: boolean): Promise<void> {
    const { deps, name } = this.#context
    return this.#roundInTurn(all)
      .catch((error) => {
        if (error instanceof LostState) this.#parts.lose(error.message)
        else
          deps.log.warn(
            { event: 'checkpoint_failed', err: error, shard: name },
            'checkpoint failed; retrying at the next interval',
          )
      })
      .then(() => this.#scheduleRound())
  }
  /** Runs a round after all earlier rounds have ended. */
  #roundInTurn(all: boolean): Promise<void> {
    const round = this.#busy.then(() => this.#round(all))
    this.#busy = round.catch(() => {})
    return round
  }

  async #round(all: boolean): Promise<void> {
    const { clock } = this.#context.deps
    const now = clock.elapsed()
    const due: ActorInstance[] = []
    const ended: ActorInstance[] = []
    for (const instance of this.#parts.cache.active())
      if (instance.dirty > 0 && !instance.saving && (all || this.#isDue(instance, now)))
        (this.#isBrief(instance) ? ended : due).push(instance)
    // These ended actors were not evicted at their commit, for example because they had ended
    // before a takeover, were being stored, or were read into memory again later.
    if (ended.length > 0) await this.#betweenCommits(() => this.release(ended))
    const released = this.#released.begin()
    const stored: Saved[] = []
    try {
      await this.#checkpoint.announce(
        due.filter(({ revision }) => revision > 0).map(({ key }) => key),
      )
      await this.#writer.save(due, stored)
      for (let i = 0; i < released.length; i += MAX_ENTRIES)
        await this.#checkpoint.ended.add(released.slice(i, i + MAX_ENTRIES))
      await this.#storeCheckpoint(stored, released.length > 0)
      this.#released.end(true)
      this.#checked = clock.elapsed()
    } catch (error) {
      this.#released.end(false)
      // After a failed round, it is unknown whether its snapshots still exist, so they are stored
      // again.
      for (const saved of stored) saved.taint()
      throw error
    }
    if (!all) this.#evictCovered(now)
  }
  #isDue(instance: ActorInstance, now: number): boolean {
    if (this.#writer.last(instance) > now) return false
    if (instance.actor.ended?.(instance.state as never)) return true
    if (
      instance.stored === 0 &&
      instance.actor.ended &&
      now - instance.born < FIRST_SNAPSHOT_DELAY_MS
    )
      return false
    return (
      instance.grown * 2 >= instance.stored ||
      now - this.#writer.last(instance) >= MAX_SNAPSHOT_AGE_MS
    )
  }

  /**
   * Whether a changed actor needs no snapshot, because it has ended and can be read from the
   * journal with few reads. It is then added to the index of ended actors. Always false while
   * envelopes are written in format 1, because a live node may not support the index.
   */
  #isBrief(instance: ActorInstance): boolean {
    return (
      instance.actor.final?.(instance.state as never) === true &&
      instance.dirty > 0 &&
      !instance.saving &&
      instance.entries <= BRIEF.entries &&
      instance.grown <= BRIEF.characters &&
      this.#parts.deadlines.get(instance.key) === undefined &&
      this.#context.deps.format?.() !== 1
    )
  }
  /** Calls `run` while no append is in flight, unless the shard is given up. */
  #betweenCommits(run: () => void): Promise<void> {
    return new Promise((done) =>
      this.#parts.task(
        () => {
          run()
          done()
        },
        done,
        true,
      ),
    )
  }

  /**
   * Stores the index, then the checkpoint. A checkpoint whose `state` would decrease is not stored.
   * A checkpoint that would not advance is stored only if this round stored snapshots or added
   * actors to the index of ended actors.
   */
  async #storeCheckpoint(stored: readonly Saved[], indexed: boolean): Promise<void> {
    const anew = indexed || stored.length > 0
    const plan = await new Promise<(Covered & { parts: string[] }) | undefined>((done) =>
      this.#parts.task(
        () => {
          const { sequence, state } = this.#covered()
          const known = this.#checkpoint
          const stays =
            state < known.state || (state === known.state && sequence <= known.sequence && !anew)
          // With many sleeping runs, the index is long, so it is built only if it will be stored.
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
    for (const { dirty } of this.#parts.cache.active()) if (dirty > 0 && dirty < low) low = dirty
    low = Math.min(
      low,
      this.#writer.lowestUnsaved() ?? low,
      this.#released.lowestUncovered() ?? low,
    )
    return {
      sequence: Math.min(low, this.#parts.effects.lowestPending() ?? low) - 1,
      state: low - 1,
    }
  }
  /** Evicts actors that have ended or are idle, if the stored checkpoint covers them (K5). */
  #evictCovered(now: number): void {
    const { cache, task } = this.#parts
    const idle = now - this.#visited >= IDLE_VISIT_MS
    if (idle) this.#visited = now
    task(() => {
      for (const instance of idle ? this.#context.instances.all() : cache.active()) {
        if (
          instance.dirty > 0 ||
          instance.saving ||
          sequenceOf(instance.prev) > this.#checkpoint.state
        )
          continue
        const ended = instance.actor.ended?.(instance.state as never)
        if ((ended || now - instance.used > IDLE_EVICTION_MS) && !this.#hasNearDeadline(instance))
          cache.evict(instance)
        else if (!ended) cache.rest(instance)
      }
    })
  }
  #hasNearDeadline({ key, actor }: ActorInstance): boolean {
    const at = this.#parts.deadlines.get(key)
    if (at === undefined) return false
    return actor.recover !== undefined || at - this.#context.deps.clock.now() < NEAR_DEADLINE_MS
  }
}
