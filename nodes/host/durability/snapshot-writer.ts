/**
 * Takes snapshots of actors in the pauses of the shard's loop, and writes them concurrently. A
 * stored snapshot is replaced only by a newer one, no matter which owner writes it (K4 in
 * `checkpointer.ts`).
 */
import { type ActorInstance, coveredCursor, snapshotOf } from '../memory/actor-instance.ts'
import type { ScheduleTask, ShardContext } from '../shard-context.ts'

/** Milliseconds before a failed snapshot is retried. */
const FAILED_SNAPSHOT_RETRY_MS = 60_000
/** Maximum number of concurrent writes of snapshots. */
const MAX_CONCURRENT_WRITES = 512
/** Approximate duration, in milliseconds, of one pause of the shard's loop to take snapshots. */
const SNAPSHOT_SLICE_MS = 5

/**
 * The changes of an actor that a round stores. They are marked as stored immediately. If the round
 * fails, `taint` marks them as not stored.
 */
export class Saved {
  readonly instance: ActorInstance
  readonly dirty: number
  readonly #grown: number
  readonly #entries: number

  constructor(instance: ActorInstance) {
    this.instance = instance
    this.dirty = instance.dirty
    this.#grown = instance.grown
    this.#entries = instance.entries
    instance.dirty = 0
    instance.grown = 0
    instance.entries = 0
  }
  /** Marks the changes as not stored. */
  taint(): void {
    const { instance, dirty } = this
    instance.dirty = instance.dirty === 0 ? dirty : Math.min(dirty, instance.dirty)
    instance.grown += this.#grown
    instance.entries += this.#entries
  }
}
interface Taken {
  readonly saved: Saved
  readonly data: Uint8Array
  readonly prev: number
}

export class SnapshotWriter {
  readonly #context: ShardContext
  readonly #task: ScheduleTask
  /** Snapshots that are being written. */
  readonly #onTheWay = new Set<Saved>()
  readonly #last = new WeakMap<ActorInstance, number>()

  constructor(context: ShardContext, task: ScheduleTask) {
    this.#context = context
    this.#task = task
  }
  /**
   * Returns the time at which an actor was last stored, in monotonic milliseconds, or 0 if it was
   * never stored. If its snapshot could not be taken, returns the time of the next attempt.
   */
  last(instance: ActorInstance): number {
    return this.#last.get(instance) ?? 0
  }
  /** Sequence of the first envelope whose changes are being written, if any. */
  lowestUnsaved(): number | undefined {
    let low: number | undefined
    for (const { dirty } of this.#onTheWay) low = Math.min(low ?? dirty, dirty)
    return low
  }

  /**
   * Stores snapshots. If a snapshot could not be stored, throws after all writes in flight have
   * ended.
   * @param stored receives the stored snapshots.
   */
  async save(instances: readonly ActorInstance[], stored: Saved[]): Promise<void> {
    const writing = new Set<Promise<void>>()
    const failures: unknown[] = []
    for (let i = 0; i < instances.length && failures.length === 0; ) {
      const taken = await this.#take(instances.slice(i, i + MAX_CONCURRENT_WRITES - writing.size))
      if (taken.length === 0) break
      i += taken.length
      for (const one of taken) {
        if (!one) continue
        const written = this.#write(one)
          .then(
            () => void stored.push(one.saved),
            (error) => void failures.push(error),
          )
          .finally(() => writing.delete(written))
        writing.add(written)
      }
      while (writing.size >= MAX_CONCURRENT_WRITES) await Promise.race(writing)
    }
    await Promise.all(writing)
    if (failures.length > 0) throw failures[0]
  }
  /**
   * Takes snapshots of the first actors of a list, at least one, for about `SNAPSHOT_SLICE_MS`. The
   * element of an actor whose snapshot cannot be taken is undefined. The result is empty when the
   * shard was given up.
   */
  #take(instances: readonly ActorInstance[]): Promise<(Taken | undefined)[]> {
    const { clock } = this.#context.deps
    return new Promise((done) =>
      this.#task(
        () => {
          const taken: (Taken | undefined)[] = []
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
  #snapshot(instance: ActorInstance): Taken | undefined {
    const { clock, log } = this.#context.deps
    try {
      const data = snapshotOf(instance)
      const saved = new Saved(instance)
      instance.saving = true
      this.#onTheWay.add(saved)
      return { saved, data, prev: instance.prev }
    } catch (error) {
      this.#last.set(instance, clock.elapsed() + FAILED_SNAPSHOT_RETRY_MS)
      log.error(
        { event: 'actor_snapshot_failed', err: error, kind: instance.kind, id: instance.id },
        'actor snapshot failed; the next takeover replays from the previous snapshot',
      )
      return undefined
    }
  }
  async #write({ saved, data, prev }: Taken): Promise<void> {
    const { instance } = saved
    try {
      await this.#put(instance, data, prev)
      instance.stored = data.byteLength
      this.#last.set(instance, this.#context.deps.clock.elapsed())
    } catch (error) {
      saved.taint()
      throw error
    } finally {
      instance.saving = false
      this.#onTheWay.delete(saved)
    }
  }
  /** Stores a snapshot, unless the stored one is at least as new. */
  async #put(instance: ActorInstance, data: Uint8Array, prev: number): Promise<void> {
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
      if (found && coveredCursor(found.data) >= prev) return
    }
  }
}
