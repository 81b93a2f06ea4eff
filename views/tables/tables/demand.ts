/**
 * Statistics about the orders that queries need: the orders with which they would have read fewer
 * rows, and the orders that they used. The statistics are kept in memory only, because they affect
 * only the speed of queries.
 */
import type { SortField } from '../../../protocol/tables/query.ts'

export interface Wish {
  /** The number of the table. */
  readonly table: number
  readonly fields: readonly SortField[]
}
/** Maximum number of distinct wishes in memory. */
const WISHES = 1000
/**
 * Minimum number of rows that queries must have read without an order before it is added, even for
 * a small table.
 */
const LEAST = 20_000

export class OrderDemand {
  readonly #wishes = new Map<string, Wish & { read: number; due: boolean }>()
  readonly #uses = new Map<number, number>()
  #now = 0
  #due = 0

  /**
   * Records that a query read `read` rows, most of which it would not have read with the order
   * `fields`.
   * @param size the number of rows of the table.
   */
  note(table: number, fields: readonly SortField[], read: number, size: number): void {
    const key = JSON.stringify([table, fields])
    let wish = this.#wishes.get(key)
    if (!wish) {
      if (this.#wishes.size >= WISHES) this.#clear()
      this.#wishes.set(key, (wish = { table, fields, read: 0, due: false }))
    }
    wish.read += read
    if (wish.due || wish.read < Math.max(size, LEAST)) return
    wish.due = true
    this.#due++
  }
  /** Whether an order should be added, because queries have read enough rows without it. */
  isDue(): boolean {
    return this.#due > 0
  }
  /** Returns an order that should be added, and removes its wish. */
  take(): Wish | undefined {
    for (const [key, wish] of this.#wishes) {
      if (!wish.due) continue
      this.#wishes.delete(key)
      this.#due--
      return wish
    }
    return undefined
  }
  /** Records that a query used an order. */
  used(order: number): void {
    this.#uses.set(order, ++this.#now)
  }
  /** Returns the least recently used of the given orders. */
  leastUsed(orders: readonly number[]): number | undefined {
    const at = (order: number) => this.#uses.get(order) ?? 0
    return [...orders].sort((a, b) => at(a) - at(b))[0]
  }
  #clear(): void {
    this.#wishes.clear()
    this.#due = 0
  }
}
