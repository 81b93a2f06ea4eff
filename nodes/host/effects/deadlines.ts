/**
 * The deadlines of a shard's actors: a binary heap with lazy deletion. `set` replaces an actor's
 * deadline; a heap item whose time no longer equals the actor's current deadline is dropped when it
 * reaches the top. A deadline that was due is retained until it is set again, because a checkpoint
 * made before the actor was woken must still contain it.
 */
export class Deadlines {
  #heap: { readonly at: number; readonly key: string }[] = []
  #current = new Map<string, number>()
  /** Deadlines that `due` has returned, until their actors have been woken. */
  readonly #handed = new Map<string, number>()

  /** Number of actors with a pending deadline. */
  get size(): number {
    return this.#current.size
  }
  /** The deadline of an actor in Unix milliseconds. */
  get(key: string): number | undefined {
    return this.#current.get(key) ?? this.#handed.get(key)
  }
  /** Sets the deadline of an actor; undefined clears it. */
  set(key: string, at: number | undefined): void {
    this.#handed.delete(key)
    if (at === this.#current.get(key)) return
    if (at === undefined) {
      this.#current.delete(key)
      return
    }
    this.#current.set(key, at)
    this.#push({ at, key })
  }
  /** The earliest deadline. */
  next(): number | undefined {
    this.#tidy()
    return this.#heap[0]?.at
  }
  /**
   * Returns the keys of the actors that are due. The caller sets each deadline again once the actor
   * has been woken.
   */
  due(now: number): string[] {
    const keys: string[] = []
    for (this.#tidy(); this.#heap[0] && this.#heap[0].at <= now; this.#tidy()) {
      const { key, at } = this.#heap[0]
      this.#current.delete(key)
      this.#handed.set(key, at)
      keys.push(key)
    }
    return keys
  }
  /** Every deadline, including those of actors that are being woken. */
  *entries(): Generator<[string, number], void> {
    yield* this.#current
    for (const [key, at] of this.#handed) if (!this.#current.has(key)) yield [key, at]
  }

  #tidy(): void {
    for (let top = this.#heap[0]; top && this.#current.get(top.key) !== top.at; top = this.#heap[0])
      this.#pop()
  }
  #push(item: { at: number; key: string }): void {
    const heap = this.#heap
    let i = heap.push(item) - 1
    for (
      let parent = (i - 1) >> 1;
      i > 0 && (heap[parent]?.at ?? 0) > item.at;
      i = parent, parent = (i - 1) >> 1
    )
      heap[i] = heap[parent] as typeof item
    heap[i] = item
  }
  #pop(): void {
    const heap = this.#heap
    const item = heap.pop()
    if (!item || heap.length === 0) return
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && (heap[child + 1]?.at ?? 0) < (heap[child]?.at ?? 0)) child++
      if ((heap[child]?.at ?? 0) >= item.at) break
      heap[i] = heap[child] as typeof item
      i = child
    }
    heap[i] = item
  }
}
