/**
 * Maintenance of tables in small parts, between queries: it deletes data that no query can find,
 * and adds and fills the orders that queries need.
 *
 * An order is added once the queries that lacked it have read at least as many rows as its creation
 * reads. Therefore, its creation costs at most as much as those queries.
 */
import type { SortField } from '../../../protocol/tables/query.ts'
import type { Store } from '../../store.ts'
import { schemaOf } from './definitions.ts'
import { addOrder, buildOrder, DROPPED, deleteKeys, dropOrder, ordersOf } from './orders.ts'
import { deleteSomeRows, forgetStamps, hasDeadStamps } from './rows.ts'

/** Maximum number of stored sort orders that a table has in addition to its fixed orders. */
const MAX_ADDED_PER_TABLE = 8
/** Maximum number of additional orders of all tables of a view. */
const MAX_ADDED = 64

/** Performs one small part of the maintenance, if any is due. */
export function maintainTables(store: Store): void {
  const left = store.one<{ n: number; tbl: number; state: number }>(
    'SELECT n, tbl, state FROM table_orders WHERE state > 0 ORDER BY state DESC LIMIT 1',
  )
  const table = store.one<{ tbl: number }>('SELECT tbl FROM dropped_tables LIMIT 1')?.tbl
  if (left?.state === DROPPED) deleteKeys(store, left.n)
  else if (table !== undefined) {
    if (deleteSomeRows(store, table)) store.run('DELETE FROM dropped_tables WHERE tbl = ?', table)
  } else if (hasDeadStamps(store)) forgetStamps(store)
  else if (left) build(store, left.tbl)
  else {
    const wish = store.demand.take()
    if (wish) add(store, wish.table, wish.fields)
  }
}
/** Whether maintenance is due. */
export const needsMaintenance = (store: Store): boolean =>
  store.demand.isDue() ||
  hasDeadStamps(store) ||
  store.one(
    'SELECT 1 FROM table_orders WHERE state > 0 UNION ALL SELECT 1 FROM dropped_tables LIMIT 1',
  ) !== undefined

function build(store: Store, table: number): void {
  const orders = ordersOf(store, table)
  const [first] = orders
  const order = orders.find(({ reached }) => reached)
  const schema = schemaOf(store, table)
  if (first && order && schema) buildOrder(store, order, first, schema)
}
function add(store: Store, table: number, fields: readonly SortField[]): void {
  if (!schemaOf(store, table)) return
  const added = store.all<{ n: number; tbl: number }>(
    'SELECT n, tbl FROM table_orders WHERE fixed = 0 ORDER BY n',
  )
  const ofTable = added.filter(({ tbl }) => tbl === table)
  const full =
    ofTable.length >= MAX_ADDED_PER_TABLE ? ofTable : added.length >= MAX_ADDED ? added : []
  const oldest = store.demand.leastUsed(full.map(({ n }) => n))
  if (oldest !== undefined) dropOrder(store, oldest)
  addOrder(store, table, fields)
}
