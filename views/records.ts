/**
 * A write-back cache of JSON records by id, based on the cache of `store.ts`. A record is changed
 * in memory any number of times and written by the next flush. A deleted record is cached without
 * `record`, and removed from the table by the next flush.
 */
import type { Store } from './store.ts'
import { WriteBackCache } from './write-back.ts'

/**
 * A cached record. `record` is undefined after its deletion. `stored`: whether the table contains
 * the record.
 */
export interface RecordRow<T> {
  readonly project: number
  /** The time at which the record was created, in Unix milliseconds. */
  readonly created_at: number
  readonly record: T | undefined
  stored: boolean
}
/** The statements that write a table's rows. */
interface Writing<T> {
  insert(id: string, row: RecordRow<T>, record: T): void
  update(id: string, record: T): void
  remove(id: string, row: RecordRow<T>): void
}

/** Returns the record cache of a table with the columns id, project, created_at and record. */
export const recordCache = <T>(
  store: Store,
  table: string,
  writing: () => Writing<T>,
): WriteBackCache<RecordRow<T>> =>
  store.cacheOf(table, () => {
    const { insert, update, remove } = writing()
    return new WriteBackCache<RecordRow<T>>(
      (id) => {
        const row = store.one<{ project: number; created_at: number; record: string }>(
          `SELECT project, created_at, record FROM ${table} WHERE id = ?`,
          id,
        )
        return row && { ...row, record: JSON.parse(row.record) as T, stored: true }
      },
      (row, id) => {
        const { record, stored } = row
        if (record === undefined) {
          if (stored) remove(id, row)
        } else if (stored) update(id, record)
        else insert(id, row, record)
        row.stored = record !== undefined
      },
    )
  })

/**
 * Changes a project's record, or deletes it if `next` returns undefined. The call has no effect if
 * the project has no such record.
 */
export function changeRecord<T>(
  rows: WriteBackCache<RecordRow<T>>,
  project: number,
  id: string,
  next: (record: T) => T | undefined,
): void {
  const known = rows.get(id)
  if (known?.record !== undefined && known.project === project)
    rows.set(id, { ...known, record: next(known.record) })
}
