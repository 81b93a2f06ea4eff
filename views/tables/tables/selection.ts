/**
 * Selects the rows of a page: the rows that satisfy all conditions, in the order of the sort, after
 * the key of the last row of the previous page.
 *
 * `satisfiesCondition` of the protocol decides whether a row matches. The orders of the table
 * (`orders.ts`) only reduce the number of rows that are read. They never exclude a row that
 * `satisfiesCondition` would accept. There are four strategies, from cheap to expensive:
 * 1. Rows that a condition identifies by id or identity are looked up.
 * 2. If an order has few rows that fulfil the conditions on its first fields, these rows are read
 *    and sorted, unless strategy 3 would read only matching rows.
 * 3. If an order has the rows in the order of the sort, or has the newest rows at its end when
 *    these are wanted first, its rows are read until the page is full.
 * 4. Otherwise, all rows of an order that fulfil the conditions on its first fields are read,
 *    regardless of their number. If no order has such conditions, all rows of the table are read.
 *    The first rows in the order of the sort are kept.
 */
import type { Condition, RowQueryPlan, SortField } from '../../../protocol/tables/query.ts'
import type { InParts } from '../../define-view.ts'
import { MAX_PAGE_CHARACTERS } from '../../page.ts'
import type { Store } from '../../store.ts'
import { countsOf, type Defined } from './definitions.ts'
import { everything, intersectRanges, type KeyRange, keyAfter, keyOf } from './keys.ts'
import { isNewestFirst, readNewest } from './newest.ts'
import { countIn, creation, type Order, ordersOf, rowsIn } from './orders.ts'
import {
  equalities,
  keyFor,
  prefixOf,
  rangeOf,
  type Selected,
  type Selection,
  satisfiesAll,
} from './ranges.ts'
import { type RowRecord, readerOf, rowById, rowByIdentity } from './rows.ts'

/** Maximum number of rows that strategy 2 reads. No order is added for queries that read so few. */
const MAX_SORTED = 2000
/** Number of rows that are read in one part, which takes about 5 ms. */
const PART = 1000

/**
 * Returns the first `count` rows of a plan after a sort key; fewer if they exceed the size of a
 * page.
 */
export function* selectRows(
  store: Store,
  defined: Defined,
  { conditions, sort }: RowQueryPlan,
  count: number,
  after?: Buffer,
): InParts<readonly Selected[]> {
  const equal = equalities(conditions)
  const selection: Selection = {
    store,
    defined,
    conditions,
    sort: sort.filter(({ field }) => !equal.has(keyFor(field))),
    after,
    count,
  }
  const found = rowsByKey(store, defined, conditions)
  if (found) return chosen(selection, found)
  const orders = ordersOf(store, defined.n).filter(({ reached }) => !reached)
  const sorted = sortedBy(orders, selection.sort, equal)
  const newest =
    sorted || !isNewestFirst(selection.sort) ? undefined : sortedBy(orders, creation, equal)
  const inOrder = sorted
    ? stream(selection, sorted.order, sorted.prefix)
    : newest && newestFirst(selection, newest.order, newest.prefix)
  if (inOrder && (sorted ?? newest)?.prefix === conditions.length) return yield* inOrder
  const narrow = findNarrowest(store, orders, conditions)
  if (narrow && narrow.rows <= MAX_SORTED) return yield* scan(selection, narrow.order, narrow.range)
  if (inOrder) return yield* inOrder
  const [all] = orders
  if (narrow) return yield* scan(selection, narrow.order, narrow.range)
  return all ? yield* scan(selection, all, everything) : []
}

/**
 * Returns the rows that a condition identifies by id or identity; undefined if no condition
 * identifies rows in this way.
 */
export function rowsByKey(
  store: Store,
  { n, table: { schema } }: Defined,
  conditions: readonly Condition[],
): readonly RowRecord[] | undefined {
  for (const { field, operator, value } of conditions) {
    if (operator !== '$eq' && operator !== '$in') continue
    const values = (operator === '$in' ? (value as readonly unknown[]) : [value]).filter(
      (one) => typeof one === 'string',
    )
    const find =
      field.system === 'id'
        ? rowById
        : !field.system && field.name === schema.identity_column
          ? rowByIdentity
          : undefined
    if (find) return [...new Set(values)].flatMap((one) => find(store, n, one) ?? [])
  }
  return undefined
}

const sameField = (a: SortField, b: SortField): boolean =>
  a.field.name === b.field.name &&
  a.field.system === b.field.system &&
  a.field.type === b.field.type
const sameSort = (a: readonly SortField[], b: readonly SortField[]): boolean =>
  a.length === b.length &&
  a.every((one, i) => {
    const other = b[i]
    return other !== undefined && sameField(one, other) && one.descending === other.descending
  })
/**
 * Returns the order that consists of fields whose values the conditions determine, followed by the
 * fields of the sort. If there are several, returns the order with the most determined fields.
 * Returns undefined if no order fits.
 */
function sortedBy(
  orders: readonly Order[],
  sort: readonly SortField[],
  equal: ReadonlyMap<string, Condition>,
): { readonly order: Order; readonly prefix: number } | undefined {
  const fits = orders.flatMap((order) => {
    const prefix = order.fields.length - sort.length
    return prefix >= 0 &&
      sameSort(order.fields.slice(prefix), sort) &&
      order.fields.slice(0, prefix).every(({ field }) => equal.has(keyFor(field)))
      ? [{ order, prefix }]
      : []
  })
  return fits.sort((a, b) => b.prefix - a.prefix)[0]
}
interface Narrow {
  readonly order: Order
  readonly range: KeyRange
  /** The number of rows in the range, counted up to `MAX_SORTED` + 1. */
  readonly rows: number
}
/**
 * Finds the order with the smallest range of keys. The conditions on the first fields of an order
 * limit its range. Returns the order, the range and its number of rows; undefined if the conditions
 * limit the range of no order.
 */
export function findNarrowest(
  store: Store,
  orders: readonly Order[],
  conditions: readonly Condition[],
): Narrow | undefined {
  const equal = equalities(conditions)
  let best: Narrow | undefined
  for (const order of orders) {
    const fixed = order.fields.findIndex(({ field }) => !equal.has(keyFor(field)))
    const next = order.fields[fixed]
    if (!next) continue
    const range = rangeOf(prefixOf(order, fixed, equal), next, conditions)
    if (range.from.length === 0 && range.to === everything.to) continue
    const rows = countIn(store, order, range, MAX_SORTED + 1)
    if (!best || rows < best.rows) best = { order, range, rows }
  }
  return best
}

/** Returns the given rows that belong on the page. */
function chosen(selection: Selection, rows: Iterable<RowRecord>): readonly Selected[] {
  const best = new Best(selection)
  for (const row of rows) best.offer(row)
  return best.rows
}
/** Collects the first rows of a selection in its order, after the key of the previous page. */
class Best {
  readonly rows: Selected[] = []
  readonly #of: Selection
  constructor(selection: Selection) {
    this.#of = selection
  }
  offer(row: RowRecord): void {
    const { defined, conditions, sort, after, count } = this.#of
    const reader = readerOf(defined.table.schema, row)
    if (!satisfiesAll(conditions, reader)) return
    const key = keyOf(sort, reader)
    if (after && key.compare(after) <= 0) return
    const last = this.rows.at(-1)
    if (this.rows.length === count && last && last.sort.compare(key) < 0) return
    let [low, high] = [0, this.rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.rows[middle] as Selected).sort.compare(key) < 0) low = middle + 1
      else high = middle
    }
    this.rows.splice(low, 0, { ...row, sort: key })
    if (this.rows.length > count) this.rows.pop()
  }
}
/** Reads all rows of a range, and keeps the first rows in the order of the sort. */
function* scan(selection: Selection, order: Order, range: KeyRange): InParts<readonly Selected[]> {
  const { store } = selection
  const best = new Best(selection)
  let read = 0
  let { from } = range
  for (;;) {
    const rows = rowsIn(store, order, { ...range, from }, PART)
    for (const row of rows) best.offer(row)
    read += rows.length
    const last = rows.at(-1)
    if (!last) break
    from = keyAfter(last.key)
    yield
  }
  wish(selection, read)
  store.demand.used(order.n)
  return best.rows
}
/** Collects rows in the order of the sort until the page is full. */
class Filling {
  readonly rows: Selected[] = []
  read = 0
  #size = 0
  readonly #of: Selection
  constructor(selection: Selection) {
    this.#of = selection
  }
  /**
   * Adds the row if it satisfies the conditions.
   * @returns whether the page is full.
   */
  add(row: RowRecord, sort: Buffer): boolean {
    const { defined, conditions, count } = this.#of
    this.read++
    if (!satisfiesAll(conditions, readerOf(defined.table.schema, row))) return false
    this.rows.push({ ...row, sort })
    this.#size += row.record.length
    return this.rows.length === count || (this.#size > MAX_PAGE_CHARACTERS && this.rows.length > 1)
  }
}
function* newestFirst(
  selection: Selection,
  order: Order,
  fixed: number,
): InParts<readonly Selected[]> {
  const filling = new Filling(selection)
  selection.store.demand.used(order.n)
  yield* readNewest(selection, order, fixed, (row, sort) => filling.add(row, sort))
  wish(selection, filling.read)
  return filling.rows
}
/** Reads rows in the order of the sort until the page is full. */
function* stream(selection: Selection, order: Order, fixed: number): InParts<readonly Selected[]> {
  const { store, conditions, sort, count } = selection
  const prefix = prefixOf(order, fixed, equalities(conditions))
  const [first] = sort
  let range = first ? rangeOf(prefix, first, conditions) : everything
  if (selection.after)
    range = intersectRanges(range, {
      ...everything,
      from: keyAfter(Buffer.concat([prefix, selection.after])),
    })
  const filling = new Filling(selection)
  store.demand.used(order.n)
  for (let part = count; ; part = Math.min(2 * part, PART)) {
    const rows = rowsIn(store, order, range, part)
    const full = rows.some((row) => filling.add(row, row.key.subarray(prefix.length)))
    const last = rows.at(-1)
    if (full || !last) break
    range = { ...range, from: keyAfter(last.key) }
    yield
  }
  wish(selection, filling.read)
  return filling.rows
}

const ascending = ({ field }: Condition): SortField => ({ field, descending: false })
const byName = (a: Condition, b: Condition) => (a.field.name < b.field.name ? -1 : 1)
/** Records the missing order, if any, with which a query would have read far fewer rows. */
function wish({ store, defined, conditions, sort, count }: Selection, read: number): void {
  if (read <= MAX_SORTED || read < 10 * count) return
  const equal = [...equalities(conditions).values()].sort(byName)
  const id = sort.at(-1)
  const ranges = conditions.filter(
    ({ field, operator }) =>
      operator !== '$eq' &&
      operator !== '$ne' &&
      operator !== '$in' &&
      field.type !== 'object' &&
      field.type !== 'array',
  )
  const useful = [
    [...equal.map(ascending), ...sort],
    ...ranges.map((one) => [ascending(one), ...(id ? [id] : [])]),
  ]
  const known = ordersOf(store, defined.n)
  const missing = useful.find((fields) => !known.some((order) => sameSort(order.fields, fields)))
  if (missing) store.demand.note(defined.n, missing, read, countsOf(store, defined).rows)
}
