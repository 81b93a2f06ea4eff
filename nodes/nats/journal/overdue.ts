/**
 * Items with time limits, by number. One timer watches all limits. A limit expires at most about
 * `CHECK_EVERY_MS` late, and never early, except when `end` is called.
 *
 * Invariants:
 * O1. An item is taken once, or expires once.
 * O2. The items are in a table, at the lowest bits of their numbers. At most half of the table is
 *     occupied. Most items are taken soon, and a table does without the hashing and the garbage of
 *     a map: a gateway adds and takes three items for each run.
 */

/** Milliseconds between two checks for expired limits. */
const CHECK_EVERY_MS = 50
/** Numbers are below this bound, so that V8 does not allocate memory for them. */
const NUMBERS = 2 ** 30
const SMALLEST_TABLE = 64

/** An item with a time limit. */
export interface Limited {
  /** When the limit expires, in milliseconds on the clock of `performance.now()`. */
  readonly until: number
  /** Called once, when the limit expires or at `end`, unless the item was taken first. */
  over(): void
}
interface Entry<T> {
  readonly number: number
  readonly item: T
}

export class Overdue<T extends Limited> {
  #table: (Entry<T> | undefined)[] = newTable(SMALLEST_TABLE)
  #size = 0
  #last = 0
  #looking: NodeJS.Timeout | undefined

  /** Adds an item and returns its number. */
  add(item: T): number {
    if (this.#size * 2 >= this.#table.length) this.#grow()
    const mask = this.#table.length - 1
    do this.#last = (this.#last + 1) % NUMBERS
    while (this.#table[this.#last & mask])
    this.#table[this.#last & mask] = { number: this.#last, item }
    this.#size++
    this.#looking ??= setTimeout(this.#look, CHECK_EVERY_MS)
    return this.#last
  }
  /** Whether the item with this number was neither taken nor has expired. */
  has(number: number): boolean {
    return this.#table[number & (this.#table.length - 1)]?.number === number
  }
  /** Removes the item with this number and returns it; undefined if it was taken or has expired. */
  take(number: number): T | undefined {
    const index = number & (this.#table.length - 1)
    const entry = this.#table[index]
    if (entry?.number !== number) return undefined
    this.#table[index] = undefined
    this.#size--
    return entry.item
  }
  /** Removes the items that fulfil the condition and returns them. */
  takeIf(condition: (item: T) => boolean): T[] {
    return this.#table.flatMap((entry) =>
      entry && condition(entry.item) ? (this.take(entry.number) ?? []) : [],
    )
  }
  /** Expires all items now. */
  end(): void {
    for (const item of this.takeIf(() => true)) item.over()
  }
  readonly #look = (): void => {
    this.#looking = undefined
    const now = performance.now()
    for (const item of this.takeIf(({ until }) => until <= now)) item.over()
    if (this.#size > 0) this.#looking ??= setTimeout(this.#look, CHECK_EVERY_MS)
  }
  #grow(): void {
    const table = newTable<T>(this.#table.length * 2)
    for (const entry of this.#table) if (entry) table[entry.number & (table.length - 1)] = entry
    this.#table = table
  }
}

/** Returns an empty table. Its length is a power of two. */
const newTable = <T>(length: number): (Entry<T> | undefined)[] =>
  new Array<Entry<T> | undefined>(length).fill(undefined)
