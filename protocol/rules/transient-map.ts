/**
 * A map for entries that are added and removed frequently.
 *
 * V8 replaces the table of a `Map` when the table is full. The old table still references its
 * entries and the new table. If the old table has been promoted to the old generation, only a full
 * garbage collection frees it. Until then, it keeps all later tables of the map in memory, with the
 * values that they contained when they were replaced. Short-lived tables and values are therefore
 * copied and promoted. In a gateway, this took a tenth of its time (bench/HISTORY.md).
 *
 * Invariants:
 * - The table contains holders, and a removed holder is empty. An old table therefore keeps only
 *   keys and empty holders in memory.
 * - After as many removals as the map has entries, the remaining holders move to another `Map`,
 *   whose tables the old ones do not reference. In a large map, this would cost more than it saves.
 */
interface Holder<V> {
  value: V | undefined
}

/** Smallest number of removals after which the holders move. */
const REMOVALS = 128
/** Size above which the holders do not move. */
const LARGE = 4096

/**
 * A map with the semantics of `Map`, for values other than undefined. However, an iteration may
 * leave out entries that are added meanwhile.
 */
export class TransientMap<K, V extends NonNullable<unknown>> {
  #holders = new Map<K, Holder<V>>()
  /** Number of removals since the holders moved. */
  #removals = 0

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
    this.#holders.delete(key)
    this.#removals++
    if (isWorthMoving(this.#removals, this.#holders.size)) this.#move()
    return true
  }
  /** Removes all entries. */
  clear(): void {
    for (const holder of this.#holders.values()) holder.value = undefined
    this.#holders = new Map()
    this.#removals = 0
  }
  *keys(): Generator<K> {
    for (const [key, { value }] of this.#holders) if (value !== undefined) yield key
  }
  *values(): Generator<V> {
    for (const { value } of this.#holders.values()) if (value !== undefined) yield value
  }
  #move(): void {
    this.#holders = copyOf(this.#holders)
    this.#removals = 0
  }
}

/** Whether the entries of a map should move (`copyOf`) after a number of removals. */
export const isWorthMoving = (removals: number, size: number): boolean =>
  removals >= REMOVALS && removals >= size && size <= LARGE

/** Returns a map with the same entries, whose tables the given map does not reference. */
export function copyOf<K, V>(map: ReadonlyMap<K, V>): Map<K, V> {
  const copy = new Map<K, V>()
  for (const [key, value] of map) copy.set(key, value)
  return copy
}
