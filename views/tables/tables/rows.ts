/**
 * The rows of tables and their words. One SQLite table contains the rows of all tables, and one
 * full-text index contains their tokens.
 *
 * R1. The tokens of a row are the tokens that the protocol defines (`rowTokens`). Each token is
 *     preceded by the code of its table, so that a search reads no entries of other tables. The
 *     tokenizer of the index splits only at the spaces between tokens: `ascii` treats every
 *     character that is not ASCII as part of a token, and ASCII tokens consist of lower-case
 *     letters and digits.
 * R2. A row's number in the full-text index is its `stamp`: the time of its last change, followed
 *     by 20 bits that distinguish changes within one millisecond. The index therefore yields rows
 *     by their latest change, newest first, without sorting. Stamps exceed the safe integers of
 *     JavaScript, so only SQL computes them.
 * R3. When a row is changed or deleted, its former stamp is dead: no row has it, so no search finds
 *     it. Dead stamps are removed from the index later, in ascending batches. An immediate deletion
 *     took 1.5 ms if it was between two insertions, because the index flushes its pending entries
 *     before it deletes.
 * R4. Insertions use `VALUES` without `RETURNING`. Other forms begin a savepoint, at which the
 *     full-text index flushes its pending entries. An insertion then took five times as long.
 */
import { type JsonObject, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { StoredRow } from '../../../protocol/tables/events.ts'
import { fieldValue, type QueryField } from '../../../protocol/tables/query.ts'
import { visibleData } from '../../../protocol/tables/row-data.ts'
import type { TableRow, TableSchema } from '../../../protocol/tables/schema.ts'
import { rowTokens } from '../../../protocol/tables/search.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { textBytes } from './keys.ts'

/** A stored row. `n`: its number in the view's file; times are Unix milliseconds. */
export interface RowRecord {
  readonly n: number
  readonly id: string
  readonly version: number
  readonly created_at: number
  readonly updated_at: number
  /** The data as JSON, including values that the schema hides. */
  readonly record: string
}
/** The columns of `RowRecord`, selected from `table_rows` with the alias `r`. */
export const COLUMNS = 'r.n, r.id, r.version, r.created_at, r.updated_at, r.record'

/** Returns the value of a row's field as queries see it; undefined if the value is missing. */
export type Reader = (field: QueryField) => unknown
export type Seen = Omit<TableRow, 'table_id'>

const storedRow = (row: RowRecord): Seen => ({
  id: row.id,
  data: JSON.parse(row.record) as JsonObject,
  version: row.version,
  // The times are formatted on demand, because many rows are read and few queries use their times.
  get created_at() {
    return timestamp(row.created_at)
  },
  get updated_at() {
    return timestamp(row.updated_at)
  },
})
export const readerOf = (schema: TableSchema, row: RowRecord): Reader =>
  readerOfSeen(schema, storedRow(row))
export const readerOfSeen =
  (schema: TableSchema, row: Seen): Reader =>
  (field) =>
    fieldValue(schema, row, field)

/** Returns the API record of a row. */
export function rowRecord(table_id: string, schema: TableSchema, row: RowRecord): TableRow {
  const { id, data, version, created_at, updated_at } = storedRow(row)
  return { id, table_id, data: visibleData(schema, data), version, created_at, updated_at }
}
/** Returns the data of a row, including values that the schema hides. */
export const dataOf = ({ record }: RowRecord): JsonObject => JSON.parse(record) as JsonObject

const ROW_BY_ID = `SELECT ${COLUMNS} FROM table_rows r WHERE r.tbl = ? AND r.id = ?`
const ROW_BY_IDENTITY = `SELECT ${COLUMNS} FROM table_rows r WHERE r.tbl = ? AND r.identity = ?`
export const rowById = (store: Store, table: number, id: string): RowRecord | undefined =>
  store.one<RowRecord>(ROW_BY_ID, table, id)
export const rowByIdentity = (
  store: Store,
  table: number,
  identity: string,
): RowRecord | undefined => store.one<RowRecord>(ROW_BY_IDENTITY, table, textBytes(identity))

/** Number of bits in a stamp that distinguish changes within one millisecond. */
const BITS = 20
/** The first stamp of a millisecond, as an expression with one parameter. */
export const FIRST_STAMP = `(CAST(? AS INTEGER) << ${BITS})`
const lastStamp = (table: string): string =>
  `(SELECT stamp + 1 - ${FIRST_STAMP} FROM ${table}
    WHERE stamp >= ${FIRST_STAMP} AND stamp < ${FIRST_STAMP} + ${2 ** BITS}
    ORDER BY stamp DESC LIMIT 1)`
const NEXT_INDEX = `SELECT max(
  ifnull(${lastStamp('table_rows')}, 0),
  ifnull(${lastStamp('dead_stamps')}, 0)) AS next`

/** A stamp as an expression with two parameters, see `Stamp`. */
const STAMP = `(${FIRST_STAMP} + CAST(? AS INTEGER))`
/** A stamp: the time of the change, and the number of the change in this millisecond. */
type Stamp = readonly [at: number, index: number]

/**
 * Returns the cache of the number of the next change in each millisecond. The tables contain all
 * stamps, so only the latest milliseconds are cached.
 */
const nextIndexes = (store: Store): WriteBackCache<number> =>
  store.cacheOf('stamps', () => {
    const load = (at: string) =>
      store.one<{ next: number }>(NEXT_INDEX, ...new Array<number>(6).fill(Number(at)))?.next ?? 0
    return new WriteBackCache<number>(load, () => undefined, { most: 100 })
  })
/** Allocates the next stamp of a millisecond. */
function nextStamp(store: Store, at: number): Stamp {
  const indexes = nextIndexes(store)
  const key = String(at)
  const index = indexes.get(key) ?? 0
  indexes.set(key, index + 1)
  return [at, index]
}

/**
 * Returns the code of a table in the full-text index. All codes have the same length, because the
 * index stores prefixes of fixed lengths: the code and up to `PREFIX_LENGTH` more characters.
 */
export const codeOf = (table: number): string => table.toString(36).padStart(CODE_LENGTH, '0')
/** Length of the code of a table in characters. */
export const CODE_LENGTH = 6
/**
 * Maximum length in characters of the word prefixes that the full-text index stores. For a longer
 * prefix, a search first reads all entries of all words with the prefix.
 */
export const PREFIX_LENGTH = 6

/**
 * Adds the words of a row to the full-text index, and the table's code alone, which matches every
 * row.
 */
function addWords(store: Store, table: number, stamp: Stamp, data: JsonObject): void {
  const code = codeOf(table)
  let words = code
  for (const token of new Set(rowTokens(data))) words += ` ${code}${token}`
  store.run(ADD_WORDS, ...stamp, words)
}
const ADD_WORDS = `INSERT INTO table_words (rowid, words) VALUES (${STAMP}, ?)`
/** Marks the stamp of a row as dead, because the row gets another stamp or is deleted. */
const dropStamp = (store: Store, row: number): void =>
  store.run(
    'INSERT INTO dead_stamps (stamp) VALUES ((SELECT stamp FROM table_rows WHERE n = ?))',
    row,
  )
/** Number of dead stamps that are removed from the index in one batch. */
const FORGOTTEN_AT_ONCE = 200
/** Whether the index has entries with dead stamps. */
export const hasDeadStamps = (store: Store): boolean =>
  store.one('SELECT 1 FROM dead_stamps LIMIT 1') !== undefined
/** Removes some entries with dead stamps from the full-text index. */
export function forgetStamps(store: Store): void {
  const stamps = store.all<{ stamp: string }>(
    'SELECT CAST(stamp AS TEXT) AS stamp FROM dead_stamps ORDER BY dead_stamps.stamp LIMIT ?',
    FORGOTTEN_AT_ONCE,
  )
  for (const { stamp } of stamps) {
    store.run('DELETE FROM table_words WHERE rowid = CAST(? AS INTEGER)', stamp)
    store.run('DELETE FROM dead_stamps WHERE stamp = CAST(? AS INTEGER)', stamp)
  }
}

/** The times of a row in Unix milliseconds. */
export type RowTimes = Pick<RowRecord, 'created_at' | 'updated_at'>
export function timesOf({ created_at, updated_at }: StoredRow): RowTimes {
  const at = parseTimestamp(updated_at) ?? 0
  return {
    created_at: created_at === updated_at ? at : (parseTimestamp(created_at) ?? 0),
    updated_at: at,
  }
}

const INSERT_ROW = `INSERT INTO table_rows
  (tbl, id, identity, version, created_at, updated_at, stamp, record)
  VALUES (?, ?, ?, ?, ?, ?, ${STAMP}, ?)`
/** Adds a row, and returns its number. */
export function insertRow(
  store: Store,
  table: number,
  row: StoredRow,
  record: string,
  { created_at, updated_at }: RowTimes,
): number {
  const stamp = nextStamp(store, updated_at)
  const n = store.insert(
    INSERT_ROW,
    table,
    row.id,
    textBytes(row.identity),
    row.version,
    created_at,
    updated_at,
    ...stamp,
    record,
  )
  addWords(store, table, stamp, row.data)
  return n
}
const UPDATE_ROW = `UPDATE table_rows
  SET identity = ?, version = ?, updated_at = ?, stamp = ${STAMP}, record = ?
  WHERE n = ?`
/** Replaces a row. The row gets a new stamp, and its words are indexed again. */
export function updateRow(
  store: Store,
  table: number,
  n: number,
  row: StoredRow,
  record: string,
  { updated_at }: RowTimes,
): void {
  const stamp = nextStamp(store, updated_at)
  dropStamp(store, n)
  store.run(UPDATE_ROW, textBytes(row.identity), row.version, updated_at, ...stamp, record, n)
  addWords(store, table, stamp, row.data)
}
export function deleteRow(store: Store, n: number): void {
  dropStamp(store, n)
  store.run('DELETE FROM table_rows WHERE n = ?', n)
}
/**
 * Returns the time at which a row of a table was last inserted or updated, in Unix milliseconds.
 * Deleted rows are ignored. Returns undefined if the table has no rows.
 */
export const lastChange = (store: Store, table: number): number | undefined =>
  store.one<{ at: number }>(
    `SELECT r.updated_at AS at
     FROM table_words
     CROSS JOIN table_rows r ON r.stamp = table_words.rowid
     WHERE table_words MATCH ?
     ORDER BY table_words.rowid DESC LIMIT 1`,
    `"${codeOf(table)}"`,
  )?.at

/** Number of rows of a deleted table that are deleted in one batch, which takes about 10 ms. */
const DELETED_AT_ONCE = 200
/**
 * Deletes some rows of a deleted table.
 * @returns whether these were the last rows.
 */
export function deleteSomeRows(store: Store, table: number): boolean {
  const rows = store.all<{ n: number }>(
    'SELECT n FROM table_rows WHERE tbl = ? LIMIT ?',
    table,
    DELETED_AT_ONCE,
  )
  for (const { n } of rows) deleteRow(store, n)
  return rows.length < DELETED_AT_ONCE
}
