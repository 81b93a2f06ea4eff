/**
 * What queries needed: the orders that would have saved them from reading rows, and the orders that
 * they used. It is kept in memory only, because it affects only how fast queries are answered.
 */
import type { SortField } from '../../../protocol/tables/query.ts'

export interface Wish {
  /** The number of the table. */
  readonly table: number
  readonly fields: readonly SortField[]
}
/** Maximum number of different wishes that are remembered. */
const WISHES = 1000
/** An order is not added before so many rows were read in vain, however small the table is. */
const LEAST = 20_000

export class OrderDemand {
  readonly #wishes = new Map<string, Wish & { read: number; due: boolean }>()
  readonly #uses = new Map<number, number>()
  #now = 0
  #due = 0

  /**
   * Notes that a query read rows that it would not have read with an order.
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
  /** Whether an order has paid for itself. */
  isDue(): boolean {
    return this.#due > 0
  }
  /** Returns such an order, and forgets the wish for it. */
  take(): Wish | undefined {
    for (const [key, wish] of this.#wishes) {
      if (!wish.due) continue
      this.#wishes.delete(key)
      this.#due--
      return wish
    }
    return undefined
  }
  /** Notes that a query used an order. */
  used(order: number): void {
    this.#uses.set(order, ++this.#now)
  }
  /** Of some orders, the one whose last use is longest ago. */
  leastUsed(orders: readonly number[]): number | undefined {
    const at = (order: number) => this.#uses.get(order) ?? 0
    return [...orders].sort((a, b) => at(a) - at(b))[0]
  }
  #clear(): void {
    this.#wishes.clear()
    this.#due = 0
  }
}
