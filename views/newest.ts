/**
 * Reads records of a project from tables with the columns id, project, created_at and record, where
 * `record` is JSON. Reads pages of a list, newest first, and the record with a given id.
 */
import { allOf, type Condition } from './conditions.ts'
import { type Listing, type Page, type Paging, readPage } from './page.ts'
import type { Store } from './store.ts'

/** Returns the list of a project's records in a table that match conditions, newest first. */
export const newestListing = (
  table: string,
  project: number,
  conditions: readonly Condition[],
): Listing => ({
  select: `SELECT id, created_at, record FROM ${table}`,
  conditions: [['project = ?', project], ...conditions],
  order: ['created_at', 'id'],
  direction: 'DESC',
})

/**
 * Reads a page of a project's records in a table that match conditions, newest first.
 * @param table the table, with the index to use if SQLite should not choose.
 */
export const newestRecords = <T>(
  store: Store,
  table: string,
  project: number,
  conditions: readonly Condition[],
  input: Paging,
): Page<T> =>
  readPage<{ readonly record: string }, T>(
    store,
    newestListing(table, project, conditions),
    input,
    ({ record }) => JSON.parse(record) as T,
  )

/** Returns the project's record with this id from a table; undefined for an unknown id. */
export function recordWith<T>(
  store: Store,
  table: string,
  project: number,
  id: string,
): T | undefined {
  const row = store.one<{ record: string }>(
    `SELECT record FROM ${table} WHERE id = ? AND project = ?`,
    id,
    project,
  )
  return row && (JSON.parse(row.record) as T)
}

/** The id after which a list of ids continues, and the maximum number of ids. */
export interface Position {
  readonly after: string
  readonly limit: number
}
export interface Ids {
  readonly items: readonly string[]
}
/** Returns a page of the ids in a project, in ascending order, beginning after the id `after`. */
export const idsAfter = (
  store: Store,
  table: string,
  project: number,
  conditions: readonly Condition[],
  { after, limit }: Position,
): Ids => {
  const where = allOf([['project = ?', project], ['id > ?', after], ...conditions])
  const rows = store.upToPage<{ id: string }>(
    `SELECT id FROM ${table} WHERE ${where.sql} ORDER BY id LIMIT ?`,
    ...where.values,
    limit,
  )
  return { items: rows.map(({ id }) => id) }
}
