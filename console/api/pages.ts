/** Joins the pages of a list that changes while it is read. */
import type { ApiError } from './client.ts'

/** A page of a list. */
export interface PageOf<T> {
  readonly items: readonly T[]
  readonly has_more?: boolean
  readonly next_cursor?: string
}
/** The items that are known, and the cursor of the next page. */
export interface Known<T> {
  readonly items: readonly T[]
  readonly next: string | undefined
  readonly loading: boolean
  readonly error?: ApiError
}
/** The list before its first page has arrived. */
export const nothingKnown: Known<never> = { items: [], next: undefined, loading: false }
/** Returns the id of an item, if it has one. */
export const idOf = (item: unknown): unknown => (item as { id?: unknown } | undefined)?.id

/**
 * Returns the list after its first page was loaded again: the page, and the known items after the
 * page's last item. If that item was not known, the known items may be far away, so they are
 * dropped.
 */
export function mergeFirst<T>(known: Known<T>, page: PageOf<T>): Known<T> {
  const last = idOf(page.items.at(-1))
  const at = last === undefined ? -1 : known.items.findIndex((item) => idOf(item) === last)
  return at < 0 || page.next_cursor === undefined
    ? { items: page.items, next: page.next_cursor, loading: false }
    : { ...known, items: [...page.items, ...known.items.slice(at + 1)] }
}
