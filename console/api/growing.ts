/**
 * A list that is extended page by page. Copying a long list for each page would make garbage of its
 * whole length, so all lengths of a list share one store.
 *
 * Invariant: a list never changes. Only the longest list of a store extends it; a shorter one is
 * copied first.
 */

/** The part of an array that a view of some of its items needs. */
export type Sequence<T> = Pick<readonly T[], 'length' | 'at' | 'slice'>

interface Store<T> {
  readonly items: T[]
  /** The position of each item that has an id. */
  readonly at: Map<unknown, number>
}
/** Returns the id of an item, if it has one. */
export const idOf = (item: unknown): unknown => (item as { id?: unknown } | undefined)?.id

function storeOf<T>(items: readonly T[]): Store<T> {
  const at = new Map<unknown, number>()
  for (const [index, item] of items.entries()) {
    const id = idOf(item)
    if (id !== undefined) at.set(id, index)
  }
  return { items: [...items], at }
}

/** An immutable list whose extension costs only the new items. */
export class Growing<T> implements Sequence<T> {
  readonly length: number
  #store: Store<T> | undefined
  #all: readonly T[] | undefined

  private constructor(length: number, store: Store<T> | undefined, all: readonly T[] | undefined) {
    this.length = length
    this.#store = store
    this.#all = all
  }
  /** Returns a list of these items. The array must not be changed afterwards. */
  static of<T>(items: readonly T[]): Growing<T> {
    return new Growing(items.length, undefined, items)
  }
  /** All items, as an array that is created once. Its cost grows with the list. */
  get all(): readonly T[] {
    this.#all ??= this.slice(0, this.length)
    return this.#all
  }
  at(index: number): T | undefined {
    const place = index < 0 ? this.length + index : index
    return place < this.length ? (this.#store?.items ?? this.#all)?.[place] : undefined
  }
  slice(start = 0, end = this.length): T[] {
    const to = Math.min(end < 0 ? this.length + end : end, this.length)
    return (this.#store?.items ?? this.#all ?? []).slice(
      start < 0 ? this.length + start : start,
      to,
    )
  }
  /** Returns the position of the item with this id, or -1. */
  indexOf(id: unknown): number {
    const place = id === undefined ? undefined : this.#own().at.get(id)
    return place !== undefined && place < this.length ? place : -1
  }
  /** Returns the list with further items. Items whose id the list already has are omitted. */
  append(items: readonly T[]): Growing<T> {
    const own = this.#own()
    const store = own.items.length === this.length ? own : storeOf(this.all)
    for (const item of items) {
      const id = idOf(item)
      if (id !== undefined) {
        if (store.at.has(id)) continue
        store.at.set(id, store.items.length)
      }
      store.items.push(item)
    }
    return new Growing(store.items.length, store, undefined)
  }
  #own(): Store<T> {
    this.#store ??= storeOf(this.#all ?? [])
    return this.#store
  }
}
