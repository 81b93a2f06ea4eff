/**
 * A map for entries that are added and removed frequently.
 *
 * V8 replaces the table of a `Map` when the table is full. The old table still references its
 * entries and the new table. If the old table has been promoted to the old generation, only a full
 * garbage collection frees it. Until then, it keeps all later tables of the map in memory, with the
 * values that they contained when they were replaced. Short-lived values are therefore copied and
 * promoted.
 *
 * Invariant: the table contains holders, and a removed holder is empty. An old table therefore
 * keeps only keys and empty holders in memory.
 */
interface Holder<V> {
  value: V | undefined
}

/**
 * A map with the semantics of `Map`, including additions and removals during an iteration. No
 * iteration may be in progress when `clear` is called.
 */
export class TransientMap<K, V> {
  #holders = new Map<K, Holder<V>>()

  get size(): number {
    return this.#holders.size
  }
  has(key: K): boolean {
    return this.#holders.has(key)
  }
  get(key: K): V | undefined {
    return this.#holders.get(key)?.value
  }
  set(key: K, value: V): void {
    const holder = this.#holders.get(key)
    if (holder) holder.value = value
    else this.#holders.set(key, { value })
  }
  /** Removes an entry. Returns whether the map contained the entry. */
  delete(key: K): boolean {
    const holder = this.#holders.get(key)
    if (!holder) return false
    holder.value = undefined
    return this.#holders.delete(key)
  }
  /** Removes all entries. */
  clear(): void {
    for (const holder of this.#holders.values()) holder.value = undefined
    this.#holders = new Map()
  }
  keys(): IterableIterator<K> {
    return this.#holders.keys()
  }
  *values(): Generator<V, void> {
    for (const { value } of this.#holders.values()) yield value as V
  }
}
