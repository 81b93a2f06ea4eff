/**
 * The vectors of rows, and the rows that wait to be embedded.
 *
 * X1. Vectors exist only for tables that have been searched semantically. Such a table has a row in
 *     `vector_indexes`, which a search adds.
 * X2. `vector_queue` contains the rows whose vectors are missing or may be outdated. `change` is
 *     the last change to the row. `since` is the first change that the row's vector may not
 *     reflect. While `reached` is set, rows with greater ids may be missing from the queue.
 * X3. A search that begins at the change T may be answered if `reached` is not set and no queued
 *     row has `since` <= T. Then every row that existed at T is ranked by a text that it had at T
 *     or later.
 * X4. The vector of a deleted row is deleted with the row. The vectors of a deleted table are
 *     deleted later, in parts.
 * X5. All vectors of a ready index have `dimensions` dimensions.
 */
import type { Store } from '../../../store.ts'

export const vectorTables = `
CREATE TABLE vector_indexes (
  tbl INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  dimensions INTEGER,
  dropped INTEGER NOT NULL,
  reached TEXT,
  used_at INTEGER NOT NULL,
  fault TEXT
);
CREATE TABLE vector_queue (
  tbl INTEGER NOT NULL,
  id TEXT NOT NULL,
  since INTEGER NOT NULL,
  change INTEGER NOT NULL,
  PRIMARY KEY (tbl, id)
) WITHOUT ROWID;
CREATE INDEX vector_queue_since ON vector_queue (tbl, since);
CREATE TABLE row_vectors (
  n INTEGER PRIMARY KEY,
  tbl INTEGER NOT NULL,
  id TEXT NOT NULL,
  hash BLOB NOT NULL,
  vector BLOB NOT NULL
);
CREATE UNIQUE INDEX row_vectors_id ON row_vectors (tbl, id);
`

export interface VectorIndex {
  readonly tbl: number
  /** Id of the embedding model. */
  readonly model: string
  /** Number of dimensions of the vectors; null until a vector is stored. */
  readonly dimensions: number | null
  /** While all rows are being queued, the last id that was queued; otherwise null. */
  readonly reached: string | null
  /** The time of the last search in Unix milliseconds, too early by at most `USED_STEP_MS`. */
  readonly used_at: number
  /** The reason for the latest failure to embed rows; null once all rows can be embedded again. */
  readonly fault: string | null
}
const COLUMNS = 'tbl, model, dimensions, reached, used_at, fault'

/** Returns the index of a table; undefined if the table has no index, or if it is dropped. */
export const indexOf = (store: Store, table: number): VectorIndex | undefined =>
  store.one<VectorIndex>(
    `SELECT ${COLUMNS} FROM vector_indexes WHERE tbl = ? AND dropped = 0`,
    table,
  )
/** Minimum number of milliseconds between two updates of `used_at`. */
const USED_STEP_MS = 3_600_000
/**
 * Returns the index of a table for a model. Adds the index if it does not exist, and restarts it if
 * it is for another model.
 */
export function useIndex(store: Store, table: number, model: string, now: number): VectorIndex {
  const index = indexOf(store, table)
  if (index?.model === model) {
    if (now - index.used_at > USED_STEP_MS)
      store.run('UPDATE vector_indexes SET used_at = ? WHERE tbl = ?', now, table)
    return index
  }
  store.run(
    `INSERT INTO vector_indexes (tbl, model, dimensions, dropped, reached, used_at, fault)
     VALUES (?, ?, NULL, 0, '', ?, NULL)
     ON CONFLICT (tbl) DO UPDATE SET model = excluded.model, dimensions = NULL, dropped = 0,
       reached = '', used_at = excluded.used_at, fault = NULL`,
    table,
    model,
    now,
  )
  return { tbl: table, model, dimensions: null, reached: '', used_at: now, fault: null }
}
/** Whether a search that must reflect all changes up to `through` may be answered (X3). */
export const isReady = (store: Store, { tbl, reached }: VectorIndex, through: number): boolean =>
  reached === null &&
  store.one('SELECT 1 FROM vector_queue WHERE tbl = ? AND since <= ? LIMIT 1', tbl, through) ===
    undefined
/** Returns the number of rows of a table whose vectors are current. */
export const countIndexed = (store: Store, table: number): number =>
  store.one<{ count: number }>(
    `SELECT count(*) AS count FROM row_vectors v
     WHERE v.tbl = ?
       AND NOT EXISTS (SELECT 1 FROM vector_queue q WHERE q.tbl = v.tbl AND q.id = v.id)`,
    table,
  )?.count ?? 0

/**
 * Queues all rows of a table again. Their vectors are outdated if a new schema shows other values.
 */
export const requeueAll = (store: Store, table: number): void =>
  store.run("UPDATE vector_indexes SET reached = '' WHERE tbl = ?", table)
/** Queues a row that was inserted or updated. */
export const queueRow = (store: Store, table: number, id: string, change: number): void =>
  store.run(
    `INSERT INTO vector_queue (tbl, id, since, change) VALUES (?, ?, ?, ?)
     ON CONFLICT (tbl, id) DO UPDATE SET change = excluded.change`,
    table,
    id,
    change,
    change,
  )
const unqueueRow = (store: Store, table: number, id: string): void =>
  store.run('DELETE FROM vector_queue WHERE tbl = ? AND id = ?', table, id)
/** Deletes the vector and the queue entry of a row. */
export function forgetRow(store: Store, table: number, id: string): void {
  unqueueRow(store, table, id)
  store.run('DELETE FROM row_vectors WHERE tbl = ? AND id = ?', table, id)
}

/** Number of rows that are queued in one batch, which takes about 3 ms. */
const QUEUED_AT_ONCE = 500
/**
 * Queues some rows of an index whose rows are still being queued.
 * @returns whether there was such an index.
 */
export function queueSomeRows(store: Store, model: string): boolean {
  const index = store.one<{ tbl: number; reached: string }>(
    `SELECT tbl, reached FROM vector_indexes
     WHERE dropped = 0 AND reached IS NOT NULL AND model = ? LIMIT 1`,
    model,
  )
  if (!index) return false
  const rows = store.all<{ id: string }>(
    'SELECT id FROM table_rows WHERE tbl = ? AND id > ? ORDER BY id LIMIT ?',
    index.tbl,
    index.reached,
    QUEUED_AT_ONCE,
  )
  for (const { id } of rows)
    store.run(
      `INSERT INTO vector_queue (tbl, id, since, change) VALUES (?, ?, 0, 0)
       ON CONFLICT (tbl, id) DO UPDATE SET since = 0`,
      index.tbl,
      id,
    )
  store.run(
    'UPDATE vector_indexes SET reached = ? WHERE tbl = ?',
    rows.length < QUEUED_AT_ONCE ? null : (rows.at(-1)?.id ?? null),
    index.tbl,
  )
  return true
}
/**
 * Returns the next table after `table`, in round-robin order, that has queued rows and an index of
 * the model. Returns undefined if no table has them.
 */
export function nextQueued(store: Store, model: string, table: number): number | undefined {
  const next = (from: number) =>
    store.one<{ tbl: number }>(
      `SELECT i.tbl FROM vector_indexes i
       WHERE i.tbl > ? AND i.dropped = 0 AND i.model = ?
         AND EXISTS (SELECT 1 FROM vector_queue q WHERE q.tbl = i.tbl)
       ORDER BY i.tbl LIMIT 1`,
      from,
      model,
    )?.tbl
  return next(table) ?? next(-1)
}
/** Whether any rows are waiting to be queued or embedded for the indexes of a model. */
export const hasWork = (store: Store, model: string): boolean =>
  store.one(
    `SELECT 1 FROM vector_indexes i
     WHERE i.dropped = 0 AND i.model = ?
       AND (i.reached IS NOT NULL OR EXISTS (SELECT 1 FROM vector_queue q WHERE q.tbl = i.tbl))
     LIMIT 1`,
    model,
  ) !== undefined

/** The vector of the text that a row had after a change. */
export interface NewVector {
  readonly tbl: number
  readonly id: string
  readonly change: number
  readonly hash: Uint8Array
  readonly vector: Uint8Array
}
/**
 * Stores the vector of a row, unless the row is no longer queued, or its table has no index of the
 * model.
 * @returns false only if the vector was rejected, because its number of dimensions differs from
 * that of the index; otherwise true, even if nothing was stored.
 */
export function storeVector(store: Store, model: string, row: NewVector): boolean {
  const { tbl, id, change, hash, vector } = row
  const index = indexOf(store, tbl)
  if (index?.model !== model) return true
  const queued = store.one<{ change: number }>(
    'SELECT change FROM vector_queue WHERE tbl = ? AND id = ?',
    tbl,
    id,
  )
  if (!queued) return true
  const dimensions = vector.length / 4
  if (index.dimensions === null)
    store.run('UPDATE vector_indexes SET dimensions = ? WHERE tbl = ?', dimensions, tbl)
  else if (index.dimensions !== dimensions) return false
  store.run(
    `INSERT INTO row_vectors (tbl, id, hash, vector) VALUES (?, ?, ?, ?)
     ON CONFLICT (tbl, id) DO UPDATE SET hash = excluded.hash, vector = excluded.vector`,
    tbl,
    id,
    hash,
    vector,
  )
  settleRow(store, tbl, id, change, queued.change)
  return true
}
/**
 * Records that the vector of a row reflects its text after `change`.
 * @param last the last change to the row.
 */
export function settleRow(
  store: Store,
  table: number,
  id: string,
  change: number,
  last: number,
): void {
  if (change === last) unqueueRow(store, table, id)
  else
    store.run('UPDATE vector_queue SET since = ? WHERE tbl = ? AND id = ?', change + 1, table, id)
}
/** Stores the reason why rows of a model's indexes cannot be embedded; null if they can. */
export const setFault = (store: Store, model: string, fault: string | null): void =>
  store.run(
    'UPDATE vector_indexes SET fault = ? WHERE model = ? AND fault IS NOT ?',
    fault,
    model,
    fault,
  )
/** Stores the reason why rows of one table cannot be embedded; null if they can. */
export const setTableFault = (store: Store, table: number, fault: string | null): void =>
  store.run('UPDATE vector_indexes SET fault = ? WHERE tbl = ?', fault, table)

/** Marks the index of a table as dropped. `deleteSomeVectors` later deletes its vectors. */
export const dropIndex = (store: Store, table: number): void =>
  store.run('UPDATE vector_indexes SET dropped = 1 WHERE tbl = ?', table)
/** Drops the indexes whose `used_at` is before a time, in Unix milliseconds. */
export const dropUnused = (store: Store, before: number): void =>
  store.run('UPDATE vector_indexes SET dropped = 1 WHERE used_at < ?', before)
/** Whether a dropped index has not been deleted yet. */
export const hasDropped = (store: Store): boolean =>
  store.one('SELECT 1 FROM vector_indexes WHERE dropped = 1 LIMIT 1') !== undefined
/** Number of rows that are deleted in one batch. */
const DELETED_AT_ONCE = 500
/** Deletes some rows of a dropped index, or the index itself if it has no rows left. */
export function deleteSomeVectors(store: Store): void {
  const index = store.one<{ tbl: number }>(
    'SELECT tbl FROM vector_indexes WHERE dropped = 1 LIMIT 1',
  )
  if (!index) return
  const some = (table: string) =>
    store.all<{ id: string }>(
      `SELECT id FROM ${table} WHERE tbl = ? LIMIT ?`,
      index.tbl,
      DELETED_AT_ONCE,
    )
  const rows = [...some('row_vectors'), ...some('vector_queue')]
  for (const { id } of rows) forgetRow(store, index.tbl, id)
  if (rows.length === 0) store.run('DELETE FROM vector_indexes WHERE tbl = ?', index.tbl)
}
