/**
 * Keyset pagination: a page starts after the sort keys of the previous page's last item, never at
 * an offset. Therefore, if rows are inserted or deleted between two pages, no other row is repeated
 * or skipped.
 */
import { allOf, type Condition, placeholders } from './conditions.ts'
import type { Store, Value } from './store.ts'

/**
 * The reply to a list query. `position`: the sort keys after which the next page begins, absent
 * when no more items follow; the gateway seals them as `next_cursor`.
 */
export interface Page<T> {
  readonly items: readonly T[]
  readonly position?: readonly Value[]
}
/** The additions that a query requests (`protocol/additions.ts`). */
export interface IncludeQuery {
  readonly include?: readonly string[]
}
/** Whether the query requests an addition. */
export const wantsAddition = ({ include }: IncludeQuery, name: string): boolean =>
  include?.includes(name) === true

/**
 * The paging parameters of a list query. `after`: the sort keys that the unsealed cursor contains.
 */
export interface Paging {
  readonly limit?: number
  readonly after?: readonly Value[]
}

/** Default number of items of a page. */
const DEFAULT_LIMIT = 20

/** Returns the maximum number of items on the requested page. */
export const limitOf = (input: Paging): number => input.limit ?? DEFAULT_LIMIT

/**
 * Maximum number of characters on a page, because a page is sent as one NATS message. If the first
 * item is larger, it is returned alone. A page of the feed ends with the event whose frames reach
 * this number.
 */
export const MAX_PAGE_CHARACTERS = 1_000_000
/**
 * Returns as many of the first items as fit in a page: at least one, at most `limit`.
 * @param size returns the size of an item in characters.
 */
export function itemsThatFit<T>(
  items: readonly T[],
  limit: number,
  size: (item: T) => number,
): readonly T[] {
  let left = MAX_PAGE_CHARACTERS
  const end = items.findIndex(
    (item, index) => index === limit || ((left -= size(item)) < 0 && index > 0),
  )
  return end < 0 ? items : items.slice(0, end)
}
/** Columns that contain JSON of any length. */
interface Sized {
  readonly record?: unknown
  readonly spec?: unknown
  readonly events?: unknown
}
const lengthOf = (text: unknown): number => (typeof text === 'string' ? text.length : 0)
/** Returns the number of characters in the JSON columns of a row. */
export const sizeOf = ({ record, spec, events }: Sized): number =>
  lengthOf(record) + lengthOf(spec) + lengthOf(events)

/**
 * Builds a page from rows that were read with a limit of one more than requested. The page has
 * fewer items than requested when the JSON of the rows exceeds `MAX_PAGE_CHARACTERS`.
 */
export function page<R extends object, T>(
  rows: readonly R[],
  input: Paging,
  item: (row: R) => T,
  keys: (row: R) => readonly Value[],
): Page<T> {
  const shown = itemsThatFit(rows, limitOf(input), sizeOf)
  const last = shown.at(-1)
  return {
    items: shown.map(item),
    ...(rows.length > shown.length && last !== undefined && { position: keys(last) }),
  }
}

/**
 * Returns the SQL condition that makes a statement continue after a position. All `columns` are
 * sorted in the same direction. There is no condition if there is no position, or if the position
 * does not match `columns`.
 */
export const positionCondition = (
  columns: readonly string[],
  direction: Direction,
  after: readonly Value[] | undefined,
): readonly Condition[] =>
  after?.length === columns.length
    ? [
        [
          `(${columns.join(', ')}) ${direction === 'ASC' ? '>' : '<'} (${placeholders(columns)})`,
          ...after,
        ],
      ]
    : []

export type Direction = 'ASC' | 'DESC'
/** A list that one statement reads in the order of its pages. */
export interface Listing {
  /** The statement up to `FROM`, with the tables that follow. */
  readonly select: string
  readonly conditions: readonly Condition[]
  /**
   * The columns by which the list is sorted. Together they identify a row. They are selected under
   * the same names, without the table (`i.id` as `id`).
   */
  readonly order: readonly string[]
  readonly direction: Direction
}
/** A statement that reads one row more than a page has. */
export interface PageStatement {
  readonly sql: string
  readonly values: readonly Value[]
}
/** Returns the statement that reads the requested page of a list. */
export function planPage(
  { select, conditions, order, direction }: Listing,
  input: Paging,
): PageStatement {
  const where = allOf([...conditions, ...positionCondition(order, direction, input.after)])
  const sorted = order.map((column) => `${column} ${direction}`).join(', ')
  return {
    sql: `${select} WHERE ${where.sql} ORDER BY ${sorted} LIMIT ?`,
    values: [...where.values, limitOf(input) + 1],
  }
}
/** Reads the requested page of a list. */
export function readPage<R extends object, T>(
  store: Store,
  listing: Listing,
  input: Paging,
  item: (row: R) => T,
): Page<T> {
  const { sql, values } = planPage(listing, input)
  const keys = listing.order.map((column) => column.slice(column.indexOf('.') + 1))
  return page(store.upToPage<R>(sql, ...values), input, item, (row) =>
    keys.map((key) => (row as Readonly<Record<string, Value>>)[key] ?? null),
  )
}

/** The columns by which most lists are sorted. */
export interface Dated {
  readonly id: string
  readonly created_at: number
}
/**
 * Reads the requested page of a list that several statements read together. Each statement reads its
 * rows sorted by `created_at` and `id`, in the direction of the list. Several may read the same row.
 */
export function readMergedPage<R extends Dated, T>(
  store: Store,
  statements: readonly PageStatement[],
  input: Paging,
  item: (row: R) => T,
  direction: Direction = 'DESC',
): Page<T> {
  const lists = statements.map(({ sql, values }) => store.upToPage<R>(sql, ...values))
  const rows =
    lists.length === 1
      ? (lists[0] ?? [])
      : [...new Map(lists.flat().map((row) => [row.id, row])).values()].sort(
          direction === 'DESC' ? newestFirst : (a, b) => newestFirst(b, a),
        )
  return page(rows, input, item, (row) => [row.created_at, row.id])
}
const newestFirst = (a: Dated, b: Dated): number =>
  b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
