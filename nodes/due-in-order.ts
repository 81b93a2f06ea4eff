/**
 * Items that become due after the same delay, and therefore in the order in which they were added.
 * One timer serves all of them.
 *
 * Invariants:
 * D1. The items are a doubly linked list in the order of their times. Most items are removed soon,
 *     and a list does without the hashing and the garbage of a map.
 * D2. A removed item has no links. If it has been promoted to the old generation of the heap, it
 *     therefore does not keep younger items in memory.
 */
import type { Clock } from './host/ports.ts'

/** An item that waits until it is due. */
export interface Waiting<T> {
  readonly item: T
  /** When the item is due, in milliseconds of `Clock.elapsed`. */
  readonly at: number
  previous: Waiting<T> | undefined
  next: Waiting<T> | undefined
  removed: boolean
}

export class DueInOrder<T> {
  readonly #clock: Pick<Clock, 'elapsed' | 'later'>
  readonly #delay: number
  readonly #run: (item: T) => void
  #first: Waiting<T> | undefined
  #last: Waiting<T> | undefined
  #cancel: (() => void) | undefined

  /**
   * @param delay milliseconds after which an item is due.
   * @param run called with an item that is due, which has been removed.
   */
  constructor(clock: Pick<Clock, 'elapsed' | 'later'>, delay: number, run: (item: T) => void) {
    this.#clock = clock
    this.#delay = delay
    this.#run = run
  }
  /** Adds an item. The result is passed to `delete`. */
  add(item: T): Waiting<T> {
    const at = this.#clock.elapsed() + this.#delay
    const waiting = { item, at, previous: this.#last, next: undefined, removed: false }
    if (this.#last) this.#last.next = waiting
    else this.#first = waiting
    this.#last = waiting
    if (!this.#cancel) this.#arm(at)
    return waiting
  }
  /** Removes an item. Nothing happens if it was removed before. */
  delete(waiting: Waiting<T>): void {
    if (waiting.removed) return
    const { previous, next } = waiting
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    waiting.previous = waiting.next = undefined
    waiting.removed = true
    if (this.#first) return
    this.#cancel?.()
    this.#cancel = undefined
  }
  /** Sets the timer to a time, instead of any other time. */
  #arm(at: number): void {
    this.#cancel?.()
    this.#cancel = this.#clock.later(Math.max(0, at - this.#clock.elapsed()), () => {
      this.#cancel = undefined
      // A timer may be early by a fraction of a millisecond.
      const now = this.#clock.elapsed() + 1
      while (this.#first && this.#first.at <= now) {
        const { item } = this.#first
        this.delete(this.#first)
        this.#run(item)
      }
      if (this.#first) this.#arm(this.#first.at)
    })
  }
}
