/**
 * Watches many time limits with one timer. A limit expires at most about `CHECK_EVERY_MS` late, and
 * never early, except when `end` is called.
 */

import { TransientMap } from '../../../protocol/rules/transient-map.ts'

/** Milliseconds between two checks for expired limits. */
const CHECK_EVERY_MS = 50

/** An item with a time limit. */
export interface Limited {
  /** When the limit expires, in milliseconds on the clock of `performance.now()`. */
  readonly until: number
  /** Key of the item in `Overdue`. Set by `add`. */
  number?: number
  /** Called once, when the limit expires or at `end`, unless the item was deleted first. */
  over(): void
}

export class Overdue<T extends Limited> {
  readonly #waiting = new TransientMap<number, T>()
  #last = 0
  #looking: NodeJS.Timeout | undefined

  add(limited: T): void {
    limited.number = ++this.#last
    this.#waiting.set(limited.number, limited)
    if (this.#looking === undefined) this.#looking = setTimeout(this.#look, CHECK_EVERY_MS)
  }
  /** Removes an item that is done. Returns whether it was still waiting. */
  delete(limited: T): boolean {
    return limited.number !== undefined && this.#waiting.delete(limited.number)
  }
  /** Expires all waiting items now. */
  end(): void {
    for (const limited of this.#waiting.values()) this.#end(limited)
  }
  #end(limited: T): void {
    this.delete(limited)
    limited.over()
  }
  readonly #look = (): void => {
    const now = performance.now()
    for (const limited of this.#waiting.values()) if (limited.until <= now) this.#end(limited)
    this.#looking = this.#waiting.size > 0 ? setTimeout(this.#look, CHECK_EVERY_MS) : undefined
  }
}
