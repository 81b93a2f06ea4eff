/**
 * Ended actors that were evicted but are not yet in the index of ended actors (`ended-index.ts`).
 * Until an actor is in the index, it is found here and read from the journal.
 *
 * Invariant: a released actor is in `#waiting` or `#storing` until a checkpoint with its last event
 * in the index was stored.
 */
import type { ActorInstance } from '../memory/actor-instance.ts'

/**
 * An ended actor: the cursor of its last event (`prev`), and the sequence of its first envelope
 * that no stored snapshot covers (`dirty`).
 */
export interface Released {
  readonly key: string
  readonly prev: number
  readonly dirty: number
}

export class ReleasedActors {
  /**
   * The actors for the next round, by key: those evicted since the latest round began, and those
   * of a failed round.
   */
  #waiting = new Map<string, Released>()
  /** The actors that the current round stores. */
  #storing: ReadonlyMap<string, Released> = new Map()

  add({ key, prev, dirty }: ActorInstance): void {
    this.#waiting.set(key, { key, prev, dirty: this.#waiting.get(key)?.dirty ?? dirty })
  }
  /** Returns the possible cursors of the last event of an actor, highest first. */
  find(key: string): number[] {
    return [this.#waiting, this.#storing].flatMap((actors) => actors.get(key)?.prev ?? [])
  }
  /** Returns the first sequence that the next checkpoint must not cover, if any. */
  lowestUncovered(): number | undefined {
    let low: number | undefined
    for (const { dirty } of this.#waiting.values()) low = Math.min(low ?? dirty, dirty)
    return low
  }
  /** Begins a round, and returns the actors that it has to add to the index. */
  begin(): readonly Released[] {
    this.#storing = this.#waiting
    this.#waiting = new Map()
    return [...this.#storing.values()]
  }
  /**
   * Ends a round.
   * @param stored whether its checkpoint was stored. If not, the next round stores the same actors.
   */
  end(stored: boolean): void {
    if (!stored)
      for (const [key, { prev, dirty }] of this.#storing)
        this.#waiting.set(key, { key, prev: this.#waiting.get(key)?.prev ?? prev, dirty })
    this.#storing = new Map()
  }
}
