/**
 * Keeps the items of a long list as text. A list of 100,000 objects has a million values, which
 * each garbage collection visits or copies. The text of a block of items is only one value.
 *
 * Invariant: an item is the same object each time it is read, while its block is among the last
 * `MAX_READ` blocks that were read.
 */

/** Number of items in a block. */
const BLOCK = 128
/** Maximum number of blocks whose items are also kept as objects. */
const MAX_READ = 16

/** Converts items to values that JSON can represent, and back. */
export interface Packing<T> {
  pack(item: T): unknown
  unpack(value: unknown): T
}
/**
 * Returns a packing of objects that have exactly these members. Their values are strings, numbers,
 * booleans or undefined.
 */
export const packingOf = <T extends object>(members: readonly (keyof T)[]): Packing<T> => ({
  pack: (item) => members.map((member) => item[member]),
  unpack: (values) => {
    const item: Partial<T> = {}
    for (const [index, member] of members.entries())
      item[member] = ((values as unknown[])[index] ?? undefined) as T[keyof T]
    return item as T
  },
})
/** The members of an array that the store of a list needs. */
export interface Items<T> {
  readonly length: number
  at(index: number): T | undefined
  slice(start: number, end: number): T[]
  push(item: T): void
}

/** A store that keeps items as text. Negative indexes are not supported. */
export class PackedItems<T> implements Items<T> {
  readonly #packing: Packing<T>
  readonly #blocks: string[] = []
  /** The items after the last block. */
  #tail: T[] = []
  /** The items of recently read blocks, by the index of the block. The most recent one is last. */
  readonly #read = new Map<number, readonly T[]>()

  constructor(packing: Packing<T>) {
    this.#packing = packing
  }
  get length(): number {
    return this.#blocks.length * BLOCK + this.#tail.length
  }
  at(index: number): T | undefined {
    const block = Math.floor(index / BLOCK)
    return block < this.#blocks.length
      ? this.#blockOf(block)[index % BLOCK]
      : this.#tail[index - this.#blocks.length * BLOCK]
  }
  slice(start: number, end: number): T[] {
    const items: T[] = []
    for (let index = start; index < Math.min(end, this.length); index++)
      items.push(this.at(index) as T)
    return items
  }
  push(item: T): void {
    this.#tail.push(item)
    if (this.#tail.length < BLOCK) return
    this.#keep(this.#blocks.length, this.#tail)
    this.#blocks.push(JSON.stringify(this.#tail.map((one) => this.#packing.pack(one))))
    this.#tail = []
  }
  #blockOf(block: number): readonly T[] {
    const known = this.#read.get(block)
    this.#read.delete(block)
    const items =
      known ??
      (JSON.parse(this.#blocks[block] as string) as unknown[]).map((one) =>
        this.#packing.unpack(one),
      )
    this.#keep(block, items)
    return items
  }
  #keep(block: number, items: readonly T[]): void {
    this.#read.set(block, items)
    const [oldest] = this.#read.keys()
    if (this.#read.size > MAX_READ && oldest !== undefined) this.#read.delete(oldest)
  }
}
