/**
 * Applies the events of tables, and reads rows by id and identity. When a table is deleted, its
 * rows and their index are deleted later, in small parts. No query finds them.
 */
import { type JsonObject, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { patch } from '../../../protocol/patch.ts'
import { columnOf } from '../../../protocol/tables/definition.ts'
import type { RowFact, StoredRow, TableEvent, TableFacts } from '../../../protocol/tables/events.ts'
import { identityOf } from '../../../protocol/tables/row-data.ts'
import type { TableRow, TableSchema } from '../../../protocol/tables/schema.ts'
import type { Store } from '../../store.ts'
import {
  countCache,
  countsOf,
  type Defined,
  definitionCache,
  missingTable,
  tableOf,
} from './definitions.ts'
import { creationKey } from './keys.ts'
import {
  addFixedOrders,
  changeKeys,
  dropAddedOrders,
  dropOrders,
  type KeySource,
  type Order,
  ordersOf,
} from './orders.ts'
import {
  dataOf,
  deleteRow,
  insertRow,
  type RowRecord,
  type RowTimes,
  readerOf,
  readerOfSeen,
  rowById,
  rowByIdentity,
  rowRecord,
  timesOf,
  updateRow,
} from './rows.ts'

/**
 * Applies an entry of a table. If the first entry of a table was trimmed from the journal, its
 * later entries are ignored.
 */
export function applyTable(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  let orders: readonly Order[] | undefined
  for (const any of entry.events as readonly Event[]) {
    const event = any as TableEvent
    if (event.type === 'table.created') create(store, project, event)
    const defined = tableOf(store, project, entry.id)
    if (!defined) continue
    if ('change' in event)
      applyChange(store, defined, (orders ??= ordersOf(store, defined.n)), event)
    else if (event.type === 'table.updated') update(store, defined, event)
    else if (event.type === 'table.deleted') remove(store, defined)
  }
}

type Of<T extends TableEvent['type']> = Extract<TableEvent, { readonly type: T }>
function create(store: Store, project: number, { id, table }: Of<'table.created'>): void {
  const n = store.insert(
    `INSERT INTO tables (id, project, name, created_at, hides, record)
     VALUES (?, ?, ?, ?, 0, ?)`,
    id,
    project,
    table.name,
    parseTimestamp(table.created_at) ?? 0,
    JSON.stringify(table),
  )
  store.run('INSERT INTO table_counts (tbl, rows, bytes, change) VALUES (?, 0, 0, 0)', n)
  addFixedOrders(store, n, table.schema)
}
/**
 * Whether a new schema only adds columns. In that case, no value becomes hidden, and the existing
 * fields keep their values.
 */
const onlyAdds = (before: TableSchema, after: TableSchema): boolean =>
  !before.open &&
  !after.open &&
  before.columns.every(({ name, type }) => columnOf(after, name)?.type === type)
function update(store: Store, defined: Defined, event: Of<'table.updated'>): void {
  const table = patch(defined.table, event.table)
  const adds = onlyAdds(defined.table.schema, table.schema)
  if (!adds) dropAddedOrders(store, defined.n)
  const hides = countsOf(store, defined).rows > 0 && (defined.hides || !adds)
  definitionCache(store).set(table.id, { ...defined, table, hides })
}
function remove(store: Store, defined: Defined): void {
  const { n, table } = defined
  dropOrders(store, n)
  store.run('DELETE FROM table_counts WHERE tbl = ?', n)
  store.run('INSERT INTO dropped_tables (tbl) VALUES (?)', n)
  definitionCache(store).set(table.id, { ...defined, table: undefined })
}

function applyChange(
  store: Store,
  defined: Defined,
  orders: readonly Order[],
  event: Extract<TableEvent, { readonly change: number }>,
): void {
  const grown = { rows: 0, bytes: 0 }
  if (event.type === 'table.rows_inserted') {
    // The rows of one change have the same times.
    const times = event.rows[0] && timesOf(event.rows[0])
    for (const row of event.rows) insert(store, defined, orders, row, grown, times)
  } else if (event.type === 'table.row_inserted') insert(store, defined, orders, event.row, grown)
  else if (event.type === 'table.row_updated') replace(store, defined, orders, event.row, grown)
  else drop(store, defined, orders, event.row, grown)
  const { rows, bytes } = countsOf(store, defined)
  countCache(store).set(String(defined.n), {
    rows: rows + grown.rows,
    bytes: bytes + grown.bytes,
    change: event.change,
  })
}
interface Growth {
  rows: number
  bytes: number
}
const storedSource = (schema: TableSchema, row: RowRecord): KeySource => ({
  read: readerOf(schema, row),
  creation: creationKey(row.created_at, row.id),
})
const sourceOf = (schema: TableSchema, row: StoredRow, { created_at }: RowTimes): KeySource => ({
  read: readerOfSeen(schema, row),
  creation: creationKey(created_at, row.id),
})
/**
 * Inserts a row and its keys, and adds the row to the counts in `grown`.
 * @param times the times of the row, if the caller has already computed them.
 */
function insert(
  store: Store,
  { n: table, table: { schema } }: Defined,
  orders: readonly Order[],
  row: StoredRow,
  grown: Growth,
  times = timesOf(row),
): void {
  const record = JSON.stringify(row.data)
  grown.rows++
  grown.bytes += Buffer.byteLength(record)
  const n = insertRow(store, table, row, record, times)
  changeKeys(store, orders, n, undefined, sourceOf(schema, row, times))
}
function replace(
  store: Store,
  { n: table, table: { schema } }: Defined,
  orders: readonly Order[],
  row: StoredRow,
  grown: Growth,
): void {
  const old = rowById(store, table, row.id)
  if (!old) return
  const record = JSON.stringify(row.data)
  grown.bytes += Buffer.byteLength(record) - Buffer.byteLength(old.record)
  const times = timesOf(row)
  updateRow(store, table, old.n, row, record, times)
  changeKeys(store, orders, old.n, storedSource(schema, old), sourceOf(schema, row, times))
}
function drop(
  store: Store,
  { n: table, table: { schema } }: Defined,
  orders: readonly Order[],
  row: StoredRow,
  grown: Growth,
): void {
  const old = rowById(store, table, row.id)
  if (!old) return
  grown.rows--
  grown.bytes -= Buffer.byteLength(old.record)
  changeKeys(store, orders, old.n, storedSource(schema, old), undefined)
  deleteRow(store, old.n)
}

/** Returns a row of a table with the values that the schema shows, or `not_found`. */
export function rowGet(
  store: Store,
  project: number,
  { id, row_id }: { readonly id: string; readonly row_id: string },
): TableRow | Refusal {
  const defined = tableOf(store, project, id)
  if (!defined) return missingTable
  const row = rowById(store, defined.n, row_id)
  return row
    ? rowRecord(id, defined.table.schema, row)
    : refuse('not_found', { resource: 'row' }, 'There is no such row in this table.')
}

interface Question {
  readonly id: string
  readonly identities: readonly string[]
  readonly row_ids: readonly string[]
  readonly content: boolean
}
/**
 * Returns the facts that a command needs. To get facts that include a certain change, the caller
 * must request an answer that reflects the whole journal, which contains this change.
 */
export function tableFacts(store: Store, project: number, question: Question): TableFacts {
  const defined = tableOf(store, project, question.id)
  if (!defined) return { through: 0, rows: [] }
  const found = new Map<string, RowRecord>()
  for (const id of question.row_ids) {
    const row = rowById(store, defined.n, id)
    if (row) found.set(row.id, row)
  }
  for (const identity of question.identities) {
    const row = rowByIdentity(store, defined.n, identity)
    if (row) found.set(row.id, row)
  }
  return {
    through: countsOf(store, defined).change,
    rows: [...found.values()].map((row) => factOf(defined, row, question.content)),
  }
}
function factOf({ table: { schema } }: Defined, row: RowRecord, content: boolean): RowFact {
  const data: JsonObject = dataOf(row)
  return {
    id: row.id,
    identity: String(identityOf(schema, data)),
    version: row.version,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
    ...(content && { data }),
  }
}
