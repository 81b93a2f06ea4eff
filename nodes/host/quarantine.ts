/**
 * The quarantine of a node, for actors that failed halfway through a decision when a timer woke
 * them. After such an error, the shard discards everything in memory (`torn` in
 * `durability/batch.ts`). The quarantine prevents one faulty actor from stopping its shard
 * repeatedly. After its first error, an actor is not woken for one second. Each further error
 * doubles this time, up to five minutes.
 */

/** Milliseconds for which an actor is not woken after its first error. */
const FIRST_PAUSE_MS = 1000
/** Maximum number of milliseconds for which an actor is not woken. */
const MAX_PAUSE_MS = 300_000

export class Quarantine {
  readonly #actors = new Map<string, { readonly pause: number; readonly until: number }>()
  /**
   * Records that an actor failed when it was woken.
   * @param now monotonic time in milliseconds (`Clock.elapsed`).
   * @returns milliseconds for which the actor is not woken.
   */
  add(key: string, now: number): number {
    const pause = Math.min(MAX_PAUSE_MS, (this.#actors.get(key)?.pause ?? FIRST_PAUSE_MS / 2) * 2)
    this.#actors.set(key, { pause, until: now + pause })
    return pause
  }
  /**
   * Returns the milliseconds until an actor may be woken again; 0 if it may be woken now.
   * @param now monotonic time in milliseconds (`Clock.elapsed`).
   */
  remaining(key: string, now: number): number {
    return Math.max(0, (this.#actors.get(key)?.until ?? 0) - now)
  }
  /** Removes an actor from the quarantine after a wake changed it without an error. */
  release(key: string): void {
    this.#actors.delete(key)
  }
}
