/**
 * Actors whose timer broke their decision half-way, which costs the shard all that it has in memory: each is left alone for a
 * while, twice as long every time, so that one error does not take a shard from everybody again and again. A node keeps one.
 */

/** Milliseconds for which an actor is left alone after the first time, and at most. */
const FIRST = 1000
const LONGEST = 300_000

export class Aside {
  readonly #broken = new Map<string, { readonly rest: number; readonly until: number }>()
  /** Waking an actor broke its decision. Gives the milliseconds for which it is left alone. @param now elapsed milliseconds. */
  put(key: string, now: number): number {
    const rest = Math.min(LONGEST, (this.#broken.get(key)?.rest ?? FIRST / 2) * 2)
    this.#broken.set(key, { rest, until: now + rest })
    return rest
  }
  /** Milliseconds until an actor may be woken again; 0: now. */
  rest(key: string, now: number): number {
    return Math.max(0, (this.#broken.get(key)?.until ?? 0) - now)
  }
  /** It was woken and nothing broke. */
  forget(key: string): void {
    this.#broken.delete(key)
  }
}
