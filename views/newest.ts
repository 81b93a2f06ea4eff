/**
 * Reads records of a project from tables with the columns id, project, created_at and record, where
 * `record` is JSON. Reads pages of a list, newest first, and the record with a given id.
 */
import { limitOf, type Page, type Paging, page, positionCondition } from './page.ts'
import type { Store, Value } from './store.ts'

/** A condition on the rows of a list, in SQL, and the values of its parameters. */
export type Condition = readonly [sql: string, ...values: Value[]]

/**
 * Returns one equality condition per column. A column whose value is undefined is not restricted.
 */
export const equalityConditions = (
  wanted: Readonly<Record<string, Value | undefined>>,
): Condition[] =>
  Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [[`${column} = ?`, value] as const],
  )

/**
 * Returns the SQL statement of a list, and its parameters.
 * @param table the table, with the index to use if SQLite should not choose.
 */
export function planNewest(
  table: string,
  project: number,
  conditions: readonly Condition[],
  input: Paging,
): { readonly sql: string; readonly values: readonly Value[] } {
  const after = positionCondition(['created_at', 'id'], 'DESC', input.after)
  return {
    sql: `SELECT id, created_at, record
          FROM ${table}
          WHERE project = ?${conditions.map(([sql]) => ` AND ${sql}`).join('')}${after.sql}
          ORDER BY created_at DESC, id DESC LIMIT ?`,
    values: [
      project,
      ...conditions.flatMap(([, ...values]) => values),
      ...after.values,
      limitOf(input) + 1,
    ],
  }
}

/** Reads the list that `planNewest` selects, as a page of records. */
export function newest<T>(
  store: Store,
  table: string,
  project: number,
  conditions: readonly Condition[],
  input: Paging,
): Page<T> {
  const { sql, values } = planNewest(table, project, conditions, input)
  return page(
    store.upToPage<{ id: string; created_at: number; record: string }>(sql, ...values),
    input,
    (row) => JSON.parse(row.record) as T,
    (row) => [row.created_at, row.id],
  )
}

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
): Ids => ({
  items: store
    .upToPage<{ id: string }>(
      `SELECT id FROM ${table}
       WHERE project = ? AND id > ?${conditions.map(([sql]) => ` AND ${sql}`).join('')}
       ORDER BY id LIMIT ?`,
      project,
      after,
      ...conditions.flatMap(([, ...values]) => values),
      limit,
    )
    .map(({ id }) => id),
})
