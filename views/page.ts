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
/** The additions that a question asks for (`protocol/additions.ts`). */
export interface Including {
  readonly include?: readonly string[]
}
/** Whether an addition is asked for: what is costly to work out is left out otherwise. */
export const wants = ({ include }: Including, name: string): boolean =>
  include?.includes(name) === true

/** What a list question carries of paging: `after` is the opened cursor. */
export interface Paging {
  readonly limit?: number
  readonly after?: readonly Value[]
}

const DEFAULT_LIMIT = 20

/** Rows to answer at most. */
export const limitOf = (input: Paging): number => input.limit ?? DEFAULT_LIMIT

/** Characters of a page, but for its first item: what comes out must be sent as one message. */
export const CHARACTERS = 1_000_000
/** As many of the first items as a page has room for, one at least. @param size of an item, in characters. */
export function fitting<T>(
  items: readonly T[],
  limit: number,
  size: (item: T) => number,
): readonly T[] {
  let left = CHARACTERS
  const end = items.findIndex(
    (item, index) => index === limit || ((left -= size(item)) < 0 && index > 0),
  )
  return end < 0 ? items : items.slice(0, end)
}
/** Columns that hold JSON of any length. */
interface Sized {
  readonly record?: unknown
  readonly spec?: unknown
  readonly events?: unknown
}
const lengthOf = (text: unknown): number => (typeof text === 'string' ? text.length : 0)
/** Characters of the JSON of a row. */
export const sizeOf = ({ record, spec, events }: Sized): number =>
  lengthOf(record) + lengthOf(spec) + lengthOf(events)

/** The page of rows that were asked for with one more than the limit. It is shorter when what is kept of them as `record` is long. */
export function page<R extends object, T>(
  rows: readonly R[],
  input: Paging,
  item: (row: R) => T,
  keys: (row: R) => readonly Value[],
): Page<T> {
  const shown = fitting(rows, limitOf(input), sizeOf)
  const last = shown.at(-1)
  return {
    items: shown.map(item),
    ...(rows.length > shown.length && last !== undefined && { position: keys(last) }),
  }
}

/** SQL condition and values that continue after a position: `columns` sorted in one direction. */
export function beyond(
  columns: readonly string[],
  direction: 'ASC' | 'DESC',
  after: readonly Value[] | undefined,
): { sql: string; values: readonly Value[] } {
  if (!after || after.length !== columns.length) return { sql: '', values: [] }
  return {
    sql: ` AND (${columns.join(', ')}) ${direction === 'ASC' ? '>' : '<'} (${columns.map(() => '?').join(', ')})`,
    values: after,
  }
}
