/**
 * Keyset pages: a page starts after the sort keys of the last item of the page before, never at an offset, so rows that
 * come or go between two pages make no other row appear twice or not at all.
 */
import type { Value } from './store.ts'

/** What a view answers for a list. `position`: sort keys of the last item, present exactly when more items follow; the edge seals it as `next_cursor`. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly position?: readonly Value[]
}
/** What a list question carries of paging: `after` is the opened cursor. */
export interface Paging {
  readonly limit?: number
  readonly after?: readonly Value[]
}

const DEFAULT_LIMIT = 20

/** Rows to answer at most. */
export const limitOf = (input: Paging): number => input.limit ?? DEFAULT_LIMIT

/** The page of rows that were asked for with one more than the limit. */
export function page<R, T>(rows: readonly R[], input: Paging, item: (row: R) => T, keys: (row: R) => readonly Value[]): Page<T> {
  const limit = limitOf(input)
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown.map(item), ...(rows.length > limit && last !== undefined && { position: keys(last) }) }
}

/** SQL condition and values that continue after a position: `columns` sorted in one direction. */
export function beyond(columns: readonly string[], direction: 'ASC' | 'DESC', after: readonly Value[] | undefined): { sql: string; values: readonly Value[] } {
  if (!after || after.length !== columns.length) return { sql: '', values: [] }
  return { sql: ` AND (${columns.join(', ')}) ${direction === 'ASC' ? '>' : '<'} (${columns.map(() => '?').join(', ')})`, values: after }
}
