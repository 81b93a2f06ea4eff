/**
 * Selects the rows of a page: those that fulfil all conditions, in the order of the sort, after the
 * key of the last row of the previous page.
 *
 * The protocol's `fulfils` decides about every row. The orders of the table (`orders.ts`) only
 * reduce the rows that are read, and never exclude a row that it would accept. There are four ways,
 * from cheap to costly:
 * 1. Rows with certain ids or identities are looked up.
 * 2. A condition that an order begins with leaves few rows. They are read and sorted.
 * 3. An order has the rows in the order of the sort. They are read until the page is full.
 * 4. All rows are read, and the first ones are kept.
 */
import {
  type Condition,
  fulfils,
  type QueryField,
  type RowQueryPlan,
  type SortField,
} from '../../../protocol/tables/query.ts'
import type { InParts } from '../../define-view.ts'
import { CHARACTERS } from '../../page.ts'
import type { Store } from '../../store.ts'
import { countsOf, type Defined } from './definitions.ts'
import {
  after,
  before,
  behind,
  everything,
  isCut,
  type KeyRange,
  keyOf,
  partOf,
  within,
} from './keys.ts'
import { countIn, type Order, ordersOf, rowsIn } from './orders.ts'
import { type Reader, type RowRecord, readerOf, rowById, rowByIdentity } from './rows.ts'

/** A row with its sort key, after which the next page continues. */
export interface Selected extends RowRecord {
  readonly sort: Buffer
}
interface Selection {
  readonly store: Store
  readonly defined: Defined
  readonly conditions: readonly Condition[]
  /** The sort without the fields whose values the conditions determine. */
  readonly sort: readonly SortField[]
  readonly after: Buffer | undefined
  readonly count: number
}
/** The largest number of rows that are read and sorted without looking for an order. */
const FEW = 2000
/** Number of rows that are read in one part, in about 5 ms. */
const PART = 1000

/**
 * Returns the first `count` rows of a plan after a sort key; fewer if they exceed the size of a
 * page.
 */
export function* select(
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
  const found = lookedUp(store, defined, conditions)
  if (found) return chosen(selection, found)
  const orders = ordersOf(store, defined.n).filter(({ reached }) => !reached)
  const sorted = sortedBy(orders, selection.sort, equal)
  if (sorted && sorted.prefix === conditions.length)
    return yield* stream(selection, sorted.order, sorted.prefix)
  const narrow = narrowest(store, orders, conditions)
  if (narrow && narrow.rows <= FEW) return yield* scan(selection, narrow.order, narrow.range)
  if (sorted) return yield* stream(selection, sorted.order, sorted.prefix)
  const [creation] = orders
  if (narrow) return yield* scan(selection, narrow.order, narrow.range)
  return creation ? yield* scan(selection, creation, everything) : []
}

/** Tells a system field from a member of the data with the same name. */
const keyFor = ({ name, system }: QueryField): string =>
  system ? `system ${name}` : `data ${name}`
/** The conditions that determine the value of a field, by field. */
const equalities = (conditions: readonly Condition[]): ReadonlyMap<string, Condition> =>
  new Map(
    conditions.flatMap((one) =>
      one.operator === '$eq' ? [[keyFor(one.field), one] as const] : [],
    ),
  )
const accepts = (conditions: readonly Condition[], reader: Reader): boolean =>
  conditions.every((condition) => fulfils(condition, reader(condition.field)))

/** The few rows that the conditions name by id or identity; undefined if they do not. */
export function lookedUp(
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

/** The range of the keys in which a field, with a given beginning, fulfils its conditions. */
function rangeOf(prefix: Buffer, sorted: SortField, conditions: readonly Condition[]): KeyRange {
  let range: KeyRange =
    prefix.length === 0 ? everything : { from: before(prefix), to: behind(prefix) }
  const missing = Buffer.concat([prefix, partOf(sorted, undefined)])
  for (const { field, operator, value } of conditions) {
    if (keyFor(field) !== keyFor(sorted.field)) continue
    if (operator === '$exists')
      range = within(
        range,
        value ? { ...everything, to: before(missing) } : { ...everything, from: before(missing) },
      )
    if (!(operator in mirrored)) continue
    const key = Buffer.concat([prefix, partOf(sorted, value === null ? undefined : value)])
    const direction = sorted.descending ? mirrored[operator as keyof typeof mirrored] : operator
    // A text that is cut has the key of other texts, so it is included.
    const cut = isCut(value)
    if (direction === '$eq') range = within(range, { from: before(key), to: behind(key) })
    if (direction === '$gt' || direction === '$gte')
      range = within(range, {
        ...everything,
        from: direction === '$gt' && !cut ? behind(key) : before(key),
      })
    if (direction === '$lt' || direction === '$lte')
      range = within(range, {
        ...everything,
        to: direction === '$lt' && !cut ? before(key) : behind(key),
      })
  }
  return range
}
/** The operators that bound a range, with those that bound it in the opposite direction. */
const mirrored = { $eq: '$eq', $gt: '$lt', $gte: '$lte', $lt: '$gt', $lte: '$gte' } as const

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
 * The order that begins with the most fields whose values are determined, and then has the fields
 * of the sort.
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
/** The key of the first fields of an order, whose values the conditions determine. */
const prefixOf = (
  { fields }: Order,
  length: number,
  equal: ReadonlyMap<string, Condition>,
): Buffer =>
  Buffer.concat(
    fields.slice(0, length).map((field) => {
      const value = equal.get(keyFor(field.field))?.value
      return partOf(field, value === null ? undefined : value)
    }),
  )
interface Narrow {
  readonly order: Order
  readonly range: KeyRange
  /** The number of rows in the range, counted up to `FEW` + 1. */
  readonly rows: number
}
/** The order in whose first fields the conditions leave the fewest rows. */
export function narrowest(
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
    const rows = countIn(store, order, range, FEW + 1)
    if (!best || rows < best.rows) best = { order, range, rows }
  }
  return best
}

/** Of some rows, those on the page. */
function chosen(selection: Selection, rows: Iterable<RowRecord>): readonly Selected[] {
  const best = new Best(selection)
  for (const row of rows) best.offer(row)
  return best.rows
}
/** Collects the first rows after a key. */
class Best {
  readonly rows: Selected[] = []
  readonly #of: Selection
  constructor(selection: Selection) {
    this.#of = selection
  }
  offer(row: RowRecord): void {
    const { defined, conditions, sort, after, count } = this.#of
    const reader = readerOf(defined.table.schema, row)
    if (!accepts(conditions, reader)) return
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
/** Reads all rows of a range, and keeps the first ones of the sort. */
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
    from = after(last.key)
    yield
  }
  wish(selection, read)
  store.demand.used(order.n)
  return best.rows
}
/** Reads rows in the order of the sort until the page is full. */
function* stream(selection: Selection, order: Order, fixed: number): InParts<readonly Selected[]> {
  const { store, defined, conditions, sort, count } = selection
  const prefix = prefixOf(order, fixed, equalities(conditions))
  const [first] = sort
  let range = first ? rangeOf(prefix, first, conditions) : everything
  if (selection.after)
    range = within(range, { ...everything, from: after(Buffer.concat([prefix, selection.after])) })
  const selected: Selected[] = []
  let size = 0
  let read = 0
  store.demand.used(order.n)
  for (let part = count; ; part = Math.min(2 * part, PART)) {
    const rows = rowsIn(store, order, range, part)
    for (const row of rows) {
      read++
      if (!accepts(conditions, readerOf(defined.table.schema, row))) continue
      selected.push({ ...row, sort: row.key.subarray(prefix.length) })
      size += row.record.length
      if (selected.length === count || (size > CHARACTERS && selected.length > 1)) {
        wish(selection, read)
        return selected
      }
    }
    const last = rows.at(-1)
    if (!last) break
    range = { ...range, from: after(last.key) }
    yield
  }
  wish(selection, read)
  return selected
}

const ascending = ({ field }: Condition): SortField => ({ field, descending: false })
const byName = (a: Condition, b: Condition) => (a.field.name < b.field.name ? -1 : 1)
/** Notes the order that would have saved a query from reading many rows. */
function wish({ store, defined, conditions, sort, count }: Selection, read: number): void {
  if (read <= FEW || read < 10 * count) return
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
