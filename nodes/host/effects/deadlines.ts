/**
 * The deadlines of a shard's actors. A due deadline is retained until it is set again, because a
 * checkpoint made before the actor was woken must still contain the deadline.
 */
import { add, type Order, removeAt, restoreOrder } from '../../../actors/heap.ts'

interface Deadline {
  at: number
  readonly key: string
  /** Index in the heap. */
  place: number
}
const byTime: Order<undefined, Deadline> = {
  before: (_, a, b) => a.at < b.at,
  placed: (_, deadline, index) => {
    deadline.place = index
  },
}

export class Deadlines {
  /** Pending deadlines as a heap, the earliest at its root. */
  readonly #heap: Deadline[] = []
  readonly #pending = new Map<string, Deadline>()
  /** Deadlines of the actors that `due` has returned, by key, until the actors have been woken. */
  readonly #handed = new Map<string, number>()

  /** Returns the deadline of an actor in Unix milliseconds, if it has one. */
  get(key: string): number | undefined {
    return this.#pending.get(key)?.at ?? this.#handed.get(key)
  }
  /** Sets the deadline of an actor. Undefined clears it. */
  set(key: string, at: number | undefined): void {
    this.#handed.delete(key)
    const pending = this.#pending.get(key)
    if (at === pending?.at) return
    if (at === undefined) {
      if (pending) this.#remove(pending)
    } else if (pending) {
      pending.at = at
      restoreOrder(this.#heap, pending.place, byTime, undefined)
    } else {
      const deadline = { at, key, place: this.#heap.length }
      this.#pending.set(key, deadline)
      add(this.#heap, deadline, byTime, undefined)
    }
  }
  /**
   * Returns the earliest pending deadline in Unix milliseconds. The deadlines of actors that `due`
   * has returned are not included.
   */
  next(): number | undefined {
    return this.#heap[0]?.at
  }
  /**
   * Returns the keys of the actors that are due. The caller sets each deadline again once the actor
   * has been woken.
   */
  due(now: number): string[] {
    const keys: string[] = []
    for (let top = this.#heap[0]; top && top.at <= now; top = this.#heap[0]) {
      this.#remove(top)
      this.#handed.set(top.key, top.at)
      keys.push(top.key)
    }
    return keys
  }
  /** Yields every deadline, including those of actors that are being woken. */
  *entries(): Generator<[string, number], void> {
    for (const { key, at } of this.#pending.values()) yield [key, at]
    for (const [key, at] of this.#handed) if (!this.#pending.has(key)) yield [key, at]
  }

  #remove(deadline: Deadline): void {
    this.#pending.delete(deadline.key)
    removeAt(this.#heap, deadline.place, byTime, undefined)
  }
}
