/**
 * Keyset pagination: a page starts after the sort keys of the previous page's last item, never at
 * an offset. So rows that are inserted or deleted between two pages make no other row appear twice
 * or not at all.
 */
import type { Value } from './store.ts'

/**
 * The answer of a view to a list query. `position`: sort keys of the last item, present exactly
 * when more items follow; the gateway seals it as `next_cursor`.
 */
export interface Page<T> {
  readonly items: readonly T[]
  readonly position?: readonly Value[]
}
/** The additions that a query requests (`protocol/additions.ts`). */
export interface Including {
  readonly include?: readonly string[]
}
/** Whether an addition is requested; costly members are left out otherwise. */
export const wants = ({ include }: Including, name: string): boolean =>
  include?.includes(name) === true

/** The paging parameters of a list query; `after` is the opened cursor. */
export interface Paging {
  readonly limit?: number
  readonly after?: readonly Value[]
}

const DEFAULT_LIMIT = 20

/** Maximum number of rows to return. */
export const limitOf = (input: Paging): number => input.limit ?? DEFAULT_LIMIT

/** Maximum characters of a page, except for its first item: a page must be sent as one message. */
export const CHARACTERS = 1_000_000
/**
 * As many of the first items as fit in a page, at least one.
 * @param size of an item, in characters.
 */
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

/**
 * The page of rows that were read with a limit one higher than the requested one. It is shorter
 * when the JSON of the rows is long.
 */
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

/**
 * SQL condition and values that continue after a position; all `columns` are sorted in one
 * direction.
 */
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
