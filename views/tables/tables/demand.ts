/**
 * Statistics about the orders that queries need: the orders with which they would have read fewer
 * rows, and the orders that they used. The statistics are kept in memory only, because they affect
 * only the speed of queries.
 */
import type { SortField } from '../../../protocol/tables/query.ts'

/** An order with which queries would have read fewer rows. */
export interface MissingOrder {
  /** The number of the table. */
  readonly table: number
  readonly fields: readonly SortField[]
}
/** Maximum number of missing orders in memory. */
const MAX_MISSING = 1000
/**
 * Minimum number of rows that queries must have read without an order before it is added, even for
 * a small table.
 */
const MIN_ROWS_READ = 20_000

export class OrderDemand {
  readonly #missing = new Map<string, MissingOrder & { read: number; due: boolean }>()
  readonly #uses = new Map<number, number>()
  #now = 0
  #due = 0

  /**
   * Records that a query read `read` rows. With an index in the order `fields`, the query would not
   * have read most of these rows.
   * @param size the number of rows of the table.
   */
  note(table: number, fields: readonly SortField[], read: number, size: number): void {
    const key = JSON.stringify([table, fields])
    let missing = this.#missing.get(key)
    if (!missing) {
      if (this.#missing.size >= MAX_MISSING) this.#clear()
      this.#missing.set(key, (missing = { table, fields, read: 0, due: false }))
    }
    missing.read += read
    if (missing.due || missing.read < Math.max(size, MIN_ROWS_READ)) return
    missing.due = true
    this.#due++
  }
  /** Whether an order should be added, because queries have read enough rows without it. */
  isDue(): boolean {
    return this.#due > 0
  }
  /**
   * Returns a missing order that should be added, and removes it from the missing orders. Returns
   * undefined if no order should be added.
   */
  take(): MissingOrder | undefined {
    for (const [key, missing] of this.#missing) {
      if (!missing.due) continue
      this.#missing.delete(key)
      this.#due--
      return missing
    }
    return undefined
  }
  /** Records that a query used an order. */
  used(order: number): void {
    this.#uses.set(order, ++this.#now)
  }
  /** Returns the least recently used of the given orders; undefined if the list is empty. */
  leastUsed(orders: readonly number[]): number | undefined {
    const at = (order: number) => this.#uses.get(order) ?? 0
    return [...orders].sort((a, b) => at(a) - at(b))[0]
  }
  #clear(): void {
    this.#missing.clear()
    this.#due = 0
  }
}
