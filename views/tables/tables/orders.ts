/**
 * The index of rows: for each order of a table, the sort keys of its rows (`keys.ts`). An order is
 * a list of fields. Each table has the order of creation and, if it has a secondary key column, an
 * order that begins with that column. Other orders are added when queries need them (`demand.ts`).
 *
 * O1. An order that is ready has exactly one key for each row. An order that is being built has the
 *     keys of the rows up to `reached` in the order of creation. The position of a row in that
 *     order never changes.
 * O2. The set of orders affects only the speed of queries. It may differ between replicas of a
 *     view.
 */
import { ascending, type SortField } from '../../../protocol/tables/query.ts'
import type { TableSchema } from '../../../protocol/tables/schema.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { everything, type KeyRange, keyAfter, keyOf } from './keys.ts'
import { COLUMNS, type Reader, type RowRecord, readerOf } from './rows.ts'

/** States of an order. */
const READY = 0
const BUILDING = 1
export const DROPPED = 2

export interface Order {
  readonly n: number
  readonly fields: readonly SortField[]
  /** Whether every table with this schema has the order. */
  readonly fixed: boolean
  /** While the order is being built, the creation key of the last row that was added to it. */
  readonly reached?: Buffer
}
/** The data from which the keys of a row are computed. */
export interface KeySource {
  readonly read: Reader
  /** The key in the order of creation, with which the keys of fixed orders end. */
  readonly creation: Buffer
}
/** The fields of the order of creation. */
export const creation: readonly SortField[] = [ascending('created_at'), ascending('id')]
const keyIn = ({ fields, fixed }: Order, { read, creation: end }: KeySource): Buffer => {
  if (!fixed) return keyOf(fields, read)
  return fields.length === creation.length
    ? end
    : Buffer.concat([keyOf(fields.slice(0, -creation.length), read), end])
}

interface OrderRow {
  readonly n: number
  readonly fields: string
  readonly fixed: number
  readonly reached: Buffer | null
}
/** Returns the cache of the stored orders, by table number. */
const known = (store: Store): WriteBackCache<readonly Order[]> =>
  store.cacheOf(
    'table_orders',
    () =>
      new WriteBackCache<readonly Order[]>(
        (table) => readOrders(store, Number(table)),
        () => undefined,
      ),
  )
/** Returns the orders of a table that have not been dropped. The first is the order of creation. */
export const ordersOf = (store: Store, table: number): readonly Order[] =>
  known(store).get(String(table)) ?? []
/** Changes the stored orders, and clears their cache. */
function change(store: Store, sql: string, ...values: (string | number | Buffer | null)[]): void {
  store.run(sql, ...values)
  known(store).forget()
}
const readOrders = (store: Store, table: number): readonly Order[] =>
  store
    .all<OrderRow>(
      `SELECT n, fields, fixed, reached FROM table_orders WHERE tbl = ? AND state < ${DROPPED} ORDER BY n`,
      table,
    )
    .map(({ n, fields, fixed, reached }) => ({
      n,
      fields: JSON.parse(fields) as SortField[],
      fixed: fixed === 1,
      ...(reached !== null && { reached }),
    }))

const bySecondaryKey = (name: string): SortField => ({
  field: { name, type: 'string' },
  descending: false,
})
/** Adds the fixed orders of a new table. */
export function addFixedOrders(store: Store, table: number, schema: TableSchema): void {
  const { secondary_key_column: secondary } = schema
  const lists = [
    creation,
    ...(secondary === undefined ? [] : [[bySecondaryKey(secondary), ...creation]]),
  ]
  for (const fields of lists)
    change(
      store,
      `INSERT INTO table_orders (tbl, fields, fixed, state) VALUES (?, ?, 1, ${READY})`,
      table,
      JSON.stringify(fields),
    )
}
/** Adds an order, which `buildOrder` then fills. */
export const addOrder = (store: Store, table: number, fields: readonly SortField[]): void =>
  change(
    store,
    `INSERT INTO table_orders (tbl, fields, fixed, state, reached) VALUES (?, ?, 0, ${BUILDING}, x'')`,
    table,
    JSON.stringify(fields),
  )
/** Drops an order. Queries no longer use it, and `deleteKeys` deletes its keys later. */
export const dropOrder = (store: Store, n: number): void =>
  change(store, `UPDATE table_orders SET state = ${DROPPED} WHERE n = ?`, n)
/**
 * Drops the orders of a table that were added for queries. Called when a new schema changes which
 * stored values are visible, because the keys are then outdated.
 */
export const dropAddedOrders = (store: Store, table: number): void =>
  change(store, `UPDATE table_orders SET state = ${DROPPED} WHERE tbl = ? AND fixed = 0`, table)
/** Drops all orders of a deleted table. */
export const dropOrders = (store: Store, table: number): void =>
  change(store, `UPDATE table_orders SET state = ${DROPPED} WHERE tbl = ?`, table)

/** Returns the orders that have a key for a row. An order that is being built may lack the row. */
const covering = (orders: readonly Order[], { creation: key }: KeySource): readonly Order[] =>
  orders.filter(({ reached }) => !reached || key.compare(reached) <= 0)

const ADD_KEY = 'INSERT INTO table_keys (ordering, key, row) VALUES (?, ?, ?)'
/**
 * Changes the keys of a row.
 * @param was the row before the change; undefined if it is new.
 * @param is the row after the change; undefined if it was deleted.
 */
export function changeKeys(
  store: Store,
  orders: readonly Order[],
  row: number,
  was: KeySource | undefined,
  is: KeySource | undefined,
): void {
  const either = is ?? was
  if (!either) return
  for (const order of covering(orders, either)) {
    const old = was && keyIn(order, was)
    const key = is && keyIn(order, is)
    if (old && key && old.equals(key)) continue
    if (old) store.run('DELETE FROM table_keys WHERE ordering = ? AND key = ?', order.n, old)
    if (key) store.run(ADD_KEY, order.n, key, row)
  }
}

export interface KeyedRow extends RowRecord {
  readonly key: Buffer
}
const ROWS_IN = `SELECT k.key, ${COLUMNS}
  FROM table_keys k
  CROSS JOIN table_rows r ON r.n = k.row
  WHERE k.ordering = ? AND k.key >= ? AND k.key < ?
  ORDER BY k.key`
/**
 * Returns the first rows of an order whose keys are in a range, sorted by key. It returns at most
 * `limit` rows, and fewer if their data exceeds the size of a page.
 * @param direction with `backward`, the last rows are returned instead, sorted by descending key.
 */
export const rowsIn = (
  store: Store,
  { n }: Order,
  { from, to }: KeyRange,
  limit: number,
  direction: 'forward' | 'backward' = 'forward',
): KeyedRow[] =>
  store.upToPage<KeyedRow>(
    `${ROWS_IN}${direction === 'backward' ? ' DESC' : ''} LIMIT ?`,
    n,
    from,
    to,
    limit,
  )
/**
 * Yields all rows of an order whose keys are in a range, sorted by key, in parts of at most `part`
 * rows. Parts with large rows are smaller.
 */
export function* rowsThrough(
  store: Store,
  order: Order,
  { from, to }: KeyRange,
  part: number,
): Generator<readonly KeyedRow[]> {
  let next = from
  for (;;) {
    const rows = rowsIn(store, order, { from: next, to }, part)
    const last = rows.at(-1)
    if (!last) return
    yield rows
    next = keyAfter(last.key)
  }
}
/** Returns the number of keys of an order in a range, counted up to a limit. */
export const countIn = (
  store: Store,
  { n }: Order,
  { from, to }: KeyRange,
  limit: number,
): number =>
  store.one<{ count: number }>(
    `SELECT count(*) AS count
     FROM (SELECT 1 FROM table_keys WHERE ordering = ? AND key >= ? AND key < ? LIMIT ?)`,
    n,
    from,
    to,
    limit,
  )?.count ?? 0

/** Number of rows whose keys are added in one batch, which takes about 10 ms. */
const BUILT_AT_ONCE = 1000
/** Number of keys that are deleted in one batch. */
const DELETED_AT_ONCE = 2000

/**
 * Adds the keys of the next rows to an order that is being built. The order is ready when no rows
 * are left.
 */
export function buildOrder(store: Store, order: Order, first: Order, schema: TableSchema): void {
  const { n, fields, reached = Buffer.alloc(0) } = order
  const rows = rowsIn(store, first, { ...everything, from: keyAfter(reached) }, BUILT_AT_ONCE)
  for (const row of rows) store.run(ADD_KEY, n, keyOf(fields, readerOf(schema, row)), row.n)
  const last = rows.at(-1)
  change(
    store,
    'UPDATE table_orders SET state = ?, reached = ? WHERE n = ?',
    last ? BUILDING : READY,
    last ? last.key : null,
    n,
  )
}
/** Deletes some keys of a dropped order. Deletes the order too if no keys are left. */
export function deleteKeys(store: Store, n: number): void {
  const keys = store.all<{ key: Buffer }>(
    'SELECT key FROM table_keys WHERE ordering = ? LIMIT ?',
    n,
    DELETED_AT_ONCE,
  )
  for (const { key } of keys)
    store.run('DELETE FROM table_keys WHERE ordering = ? AND key = ?', n, key)
  if (keys.length < DELETED_AT_ONCE) change(store, 'DELETE FROM table_orders WHERE n = ?', n)
}
