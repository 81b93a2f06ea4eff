/** Stores and lists the definitions of tables, and computes statistics about their rows. */
import { timestamp } from '../../../protocol/common.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import type { Table, TableSchema, TableStats } from '../../../protocol/tables/schema.ts'
import { equalityConditions } from '../../conditions.ts'
import { newestRecords } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { everything } from './keys.ts'
import { ordersOf, rowsIn } from './orders.ts'
import { lastChange } from './rows.ts'

export interface Definition {
  /** The number of the table in the view's file. It is not reused after a deletion. */
  readonly n: number
  readonly project: number
  /** The record of the table; undefined after the table was deleted. */
  readonly table: Table | undefined
  /**
   * True if an earlier schema may have shown other values, so that the stored data may contain
   * values that are now hidden.
   */
  readonly hides: boolean
}
interface DefinitionRow {
  readonly n: number
  readonly project: number
  readonly hides: number
  readonly record: string
}
export const definitionCache = (store: Store): WriteBackCache<Definition> =>
  store.cacheOf('tables', () => {
    return new WriteBackCache<Definition>(
      (id) => {
        const row = store.one<DefinitionRow>(
          'SELECT n, project, hides, record FROM tables WHERE id = ?',
          id,
        )
        return (
          row && {
            n: row.n,
            project: row.project,
            table: JSON.parse(row.record) as Table,
            hides: row.hides === 1,
          }
        )
      },
      ({ n, table, hides }) =>
        table
          ? store.run(
              'UPDATE tables SET name = ?, hides = ?, record = ? WHERE n = ?',
              table.name,
              hides ? 1 : 0,
              JSON.stringify(table),
              n,
            )
          : store.run('DELETE FROM tables WHERE n = ?', n),
    )
  })

/** A definition of a table that exists. */
export type Defined = Definition & { readonly table: Table }
const isDefined = (definition: Definition | undefined): definition is Defined =>
  definition?.table !== undefined

/** Returns the table with this id; undefined if the project does not have such a table. */
export function tableOf(store: Store, project: number, id: string): Defined | undefined {
  const definition = definitionCache(store).get(id)
  return isDefined(definition) && definition.project === project ? definition : undefined
}
/** Returns the schema of a table by its number; undefined if there is no such table. */
export function schemaOf(store: Store, n: number): TableSchema | undefined {
  const id = store.one<{ id: string }>('SELECT id FROM tables WHERE n = ?', n)?.id
  return id === undefined ? undefined : definitionCache(store).get(id)?.table?.schema
}
/** The refusal for a table that the project does not have. */
export const missingTable: Refusal = refuse(
  'not_found',
  { resource: 'table' },
  'There is no such table in this project.',
)

/**
 * The number of rows of a table, the size of their data as JSON, in bytes, and the number of the
 * last change.
 */
export interface Counts {
  readonly rows: number
  readonly bytes: number
  readonly change: number
}
/** Returns the cache of the counts by table number. */
export const countCache = (store: Store): WriteBackCache<Counts> =>
  store.cacheOf(
    'table_counts',
    () =>
      new WriteBackCache<Counts>(
        (n) =>
          store.one<Counts>(
            'SELECT rows, bytes, change FROM table_counts WHERE tbl = ?',
            Number(n),
          ),
        ({ rows, bytes, change }, n) =>
          store.run(
            'UPDATE table_counts SET rows = ?, bytes = ?, change = ? WHERE tbl = ?',
            rows,
            bytes,
            change,
            Number(n),
          ),
      ),
  )
export const countsOf = (store: Store, { n }: Definition): Counts =>
  countCache(store).get(String(n)) ?? { rows: 0, bytes: 0, change: 0 }

/** Returns tables of a project, newest first. */
export const tableList = (
  store: Store,
  project: number,
  input: Paging & { readonly name?: string },
): Page<Table> =>
  newestRecords(store, 'tables', project, equalityConditions({ name: input.name }), input)

/** Approximate size, in bytes, of the key of a row in one order. */
const KEY_BYTES = 80
/**
 * Approximate size, in bytes, of all other index entries (id, identity, stamp and words) of a row
 * of 250 bytes.
 */
const INDEX_BYTES = 300
/**
 * Returns the number, size and age of the rows of a table, or `not_found` if the project has no
 * such table.
 * @param now Unix milliseconds.
 */
export function tableStats(
  store: Store,
  project: number,
  id: string,
  now: number,
): TableStats | Refusal {
  const defined = tableOf(store, project, id)
  if (!defined) return missingTable
  const { rows, bytes } = countsOf(store, defined)
  const orders = ordersOf(store, defined.n)
  const { secondary_key_column, indexes } = defined.table.schema
  const oldest = orders[0] && rowsIn(store, orders[0], everything, 1)[0]
  const newest = lastChange(store, defined.n)
  return {
    table_id: id,
    row_count: rows,
    approx_data_bytes: bytes,
    approx_index_bytes: rows * (INDEX_BYTES + KEY_BYTES * orders.length),
    indexed_column_count: secondary_key_column === undefined ? 0 : 1,
    declared_index_count: indexes?.length ?? 0,
    search_index_present: true,
    generated_at: timestamp(now),
    ...(oldest && { oldest_row_created_at: timestamp(oldest.created_at) }),
    ...(newest !== undefined && { newest_row_updated_at: timestamp(newest) }),
  }
}
