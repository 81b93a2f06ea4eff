/**
 * The actors that were evicted recently, in two generations.
 *
 * Invariant: an actor is remembered for at least the given time, and for at most twice that time
 * while other actors are evicted. Actors are dropped a generation at a time, because the removal of
 * single ones would cost more than it saves: a shard evicts an actor for each ended run.
 */
export class EvictedActors {
  readonly #keepMs: number
  /** The revisions of the snapshots, by the key of the actor. */
  #young = new Map<string, number>()
  #old: ReadonlyMap<string, number> = new Map()
  /** When the younger generation began. */
  #begun = Number.NEGATIVE_INFINITY

  /** @param keepMs minimum time in milliseconds for which an actor is remembered. */
  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }
  /**
   * Adds an actor.
   * @param revision revision of its stored snapshot; 0 if it has none.
   * @param now monotonic time in milliseconds.
   */
  add(key: string, revision: number, now: number): void {
    if (now - this.#begun >= this.#keepMs) {
      this.#old = this.#young
      this.#young = new Map()
      this.#begun = now
    }
    this.#young.set(key, revision)
  }
  /**
   * Returns the revision of an actor's stored snapshot at its last eviction; undefined if the actor
   * is not remembered.
   */
  revisionOf(key: string): number | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }
}
