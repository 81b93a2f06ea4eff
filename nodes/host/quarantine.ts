/**
 * Actors whose timer made their decision throw. That costs the shard everything it has in memory, so each of them is not woken
 * for a while: one second at first, then twice as long every time. One error then does not stop a shard again and again. A node
 * keeps one quarantine.
 */

/** Milliseconds for which an actor is not woken after its first error, and at most. */
const FIRST_MS = 1000
const MAX_MS = 300_000

export class Quarantine {
  readonly #actors = new Map<string, { readonly pause: number; readonly until: number }>()
  /** Waking an actor made its decision throw. @param now elapsed milliseconds. @returns milliseconds for which it is not woken. */
  add(key: string, now: number): number {
    const pause = Math.min(MAX_MS, (this.#actors.get(key)?.pause ?? FIRST_MS / 2) * 2)
    this.#actors.set(key, { pause, until: now + pause })
    return pause
  }
  /** Milliseconds until an actor may be woken again; 0: now. */
  remaining(key: string, now: number): number {
    return Math.max(0, (this.#actors.get(key)?.until ?? 0) - now)
  }
  /** It was woken and did not throw. */
  release(key: string): void {
    this.#actors.delete(key)
  }
}
