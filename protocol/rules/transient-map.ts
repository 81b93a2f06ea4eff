/**
 * A map whose entries are added and removed all the time.
 *
 * A `Map` of V8 moves to a new table when its table is full. The old table keeps its entries and a
 * reference to the new one. If it is in the old generation by then, only a full collection deletes
 * it, and until then it keeps all later tables of the map in memory, with the values that they
 * contained at their end. Values that would be young garbage are thus copied and promoted.
 *
 * Invariant: the table contains cells, and a removed cell is empty. Therefore an old table keeps
 * only keys and empty cells in memory.
 */
interface Cell<V> {
  value: V | undefined
}

/** A map with the semantics of `Map`, including changes during an iteration. */
export class TransientMap<K, V> {
  #cells = new Map<K, Cell<V>>()

  get size(): number {
    return this.#cells.size
  }
  has(key: K): boolean {
    return this.#cells.has(key)
  }
  get(key: K): V | undefined {
    return this.#cells.get(key)?.value
  }
  set(key: K, value: V): void {
    const cell = this.#cells.get(key)
    if (cell) cell.value = value
    else this.#cells.set(key, { value })
  }
  /** Removes an entry. Returns whether there was one. */
  delete(key: K): boolean {
    const cell = this.#cells.get(key)
    if (!cell) return false
    cell.value = undefined
    return this.#cells.delete(key)
  }
  /** Removes all entries. */
  clear(): void {
    for (const cell of this.#cells.values()) cell.value = undefined
    this.#cells = new Map()
  }
  keys(): IterableIterator<K> {
    return this.#cells.keys()
  }
  *values(): Generator<V, void> {
    for (const { value } of this.#cells.values()) yield value as V
  }
}
