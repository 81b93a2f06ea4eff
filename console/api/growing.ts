/**
 * A list that is extended page by page. Copying a long list for each page would leave the previous
 * copy as garbage, so a list and its extensions share one store.
 *
 * Invariant: a list never changes. Only the longest list of a store can be extended within the
 * store. A shorter list is copied to a new store first.
 */

import { type Items, PackedItems, type Packing } from './packed.ts'

/** The members of an array that a component needs to show some of the items. */
export type Sequence<T> = Pick<readonly T[], 'length' | 'at' | 'slice'>

/**
 * Maximum number of ids in a map of the index. When a map is full, it doubles its capacity and
 * moves all of its entries. On a machine of 2026, this takes 2 ms for 32,768 entries and 11 ms for
 * 65,536.
 */
const MAX_IDS = 4096

/** The positions of items by their ids, in maps of limited size. */
class Index {
  readonly #maps: Map<unknown, number>[] = []
  get(id: unknown): number | undefined {
    return this.#maps.findLast((map) => map.has(id))?.get(id)
  }
  /** Sets the position of an id. */
  set(id: unknown, position: number): void {
    const last = this.#maps.at(-1)
    if (last && last.size < MAX_IDS) last.set(id, position)
    else this.#maps.push(new Map([[id, position]]))
  }
}

interface Store<T> {
  readonly items: Items<T>
  /** The position of each item that has an id. */
  readonly at: Index
}
/** Returns the id of an item; undefined if it has none. */
export const idOf = (item: unknown): unknown => (item as { id?: unknown } | undefined)?.id

function storeOf<T>(items: readonly T[], packing: Packing<T> | undefined): Store<T> {
  const at = new Index()
  for (const [index, item] of items.entries()) {
    const id = idOf(item)
    if (id !== undefined) at.set(id, index)
  }
  if (!packing) return { items: [...items], at }
  const packed = new PackedItems(packing)
  for (const item of items) packed.push(item)
  return { items: packed, at }
}

/** An immutable list whose extension costs only the new items. */
export class Growing<T> implements Sequence<T> {
  readonly length: number
  #store: Store<T> | undefined
  #all: readonly T[] | undefined
  readonly #packing: Packing<T> | undefined

  private constructor(
    length: number,
    packing: Packing<T> | undefined,
    { store, all }: { readonly store?: Store<T>; readonly all?: readonly T[] },
  ) {
    this.length = length
    this.#packing = packing
    this.#store = store
    this.#all = all
  }
  /**
   * Returns a list of these items. The array must not be changed afterwards.
   * @param packing if given, the items of the list's extensions are kept as text.
   */
  static of<T>(items: readonly T[], packing?: Packing<T>): Growing<T> {
    return new Growing(items.length, packing, { all: items })
  }
  /** Returns a list of other items, with the same packing for its extensions. */
  replacedBy(items: readonly T[]): Growing<T> {
    return Growing.of(items, this.#packing)
  }
  /** All items as an array. The first read creates it, at a cost that grows with the list. */
  get all(): readonly T[] {
    this.#all ??= this.slice(0, this.length)
    return this.#all
  }
  at(index: number): T | undefined {
    const place = index < 0 ? this.length + index : index
    return place >= 0 && place < this.length
      ? (this.#store?.items ?? this.#all)?.at(place)
      : undefined
  }
  slice(start = 0, end = this.length): T[] {
    const to = Math.min(end < 0 ? this.length + end : end, this.length)
    const from = start < 0 ? this.length + start : start
    return (this.#store?.items ?? this.#all ?? []).slice(from, to)
  }
  /** Returns the position of the item with this id, or -1. */
  indexOf(id: unknown): number {
    const place = id === undefined ? undefined : this.#own().at.get(id)
    return place !== undefined && place < this.length ? place : -1
  }
  /** Returns the list with additional items, except those whose id the list already has. */
  append(items: readonly T[]): Growing<T> {
    const own = this.#own()
    const store = own.items.length === this.length ? own : storeOf(this.all, this.#packing)
    for (const item of items) {
      const id = idOf(item)
      if (id !== undefined) {
        if (store.at.get(id) !== undefined) continue
        store.at.set(id, store.items.length)
      }
      store.items.push(item)
    }
    return new Growing(store.items.length, this.#packing, { store })
  }
  #own(): Store<T> {
    this.#store ??= storeOf(this.#all ?? [], this.#packing)
    return this.#store
  }
}
