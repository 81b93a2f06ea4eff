/** Joins the pages of a list that changes while it is read. */
import type { ApiError } from './client.ts'
import { Growing, idOf } from './growing.ts'

/** A page of a list. */
export interface PageOf<T> {
  readonly items: readonly T[]
  readonly has_more?: boolean
  readonly next_cursor?: string
}
/** The end of a page in the list: the id of its last item, and the cursor of the next page. */
interface PageEnd {
  readonly id: unknown
  readonly next: string
}
/** The loaded items, and the cursor of the next page. */
export interface Known<T> {
  readonly items: Growing<T>
  readonly next: string | undefined
  readonly loading: boolean
  readonly error?: ApiError
  /** Number of items that were requested. More items are kept only up to the next end of a page. */
  readonly wanted: number
  /** The known ends of pages, in the order of the items. */
  readonly ends: readonly PageEnd[]
}
/** The list before its first page has arrived. */
export const nothingKnown: Known<never> = {
  items: Growing.of<never>([]),
  next: undefined,
  loading: false,
  wanted: 0,
  ends: [],
}
const endOf = ({ items, next_cursor: next }: PageOf<unknown>): readonly PageEnd[] =>
  next === undefined ? [] : [{ id: idOf(items.at(-1)), next }]

/**
 * Returns the list after its first page was loaded again. It consists of the page and of the known
 * items that follow the page's last item. If that item was not known, there may be a gap, so the
 * known items are dropped. A list that gains items at the top is cut at the end of a page, so that
 * it does not grow without limit. It is not cut while the next page is being loaded.
 */
export function mergeFirst<T>(known: Known<T>, page: PageOf<T>): Known<T> {
  const last = idOf(page.items.at(-1))
  const at = known.items.indexOf(last)
  const first: Known<T> = {
    items: known.items.replacedBy(page.items),
    next: page.next_cursor,
    loading: false,
    wanted: page.items.length,
    ends: endOf(page),
  }
  if (at < 0 || first.ends.length === 0) return first
  const wanted = Math.max(known.wanted, page.items.length)
  const ends = [...first.ends, ...known.ends.filter(({ id }) => id !== last)]
  const place = known.loading ? -1 : cutOf(known.items, at, wanted - page.items.length, ends)
  const end = ends[place]
  const items = first.items.append(
    known.items.slice(at + 1, end ? known.items.indexOf(end.id) + 1 : known.items.length),
  )
  return end
    ? { ...known, items, next: end.next, wanted, ends: ends.slice(0, place + 1) }
    : { ...known, items, wanted, ends }
}
/**
 * Returns the index of the first page end at which the list can be cut; -1 if it cannot be cut.
 * @param at position of the item that ends the first page.
 * @param more number of items after that item that the list must keep.
 */
function cutOf(
  items: Growing<unknown>,
  at: number,
  more: number,
  ends: readonly PageEnd[],
): number {
  return ends.findIndex(({ id }) => {
    const place = items.indexOf(id)
    return place >= at + more && place < items.length - 1
  })
}

/**
 * Appends a page to the list. An item that moved between pages while they were read is listed once.
 */
export function addPage<T>(known: Known<T>, page: PageOf<T>): Known<T> {
  const items = known.items.append(page.items)
  return {
    items,
    next: page.next_cursor,
    loading: false,
    wanted: items.length,
    ends: [...known.ends, ...endOf(page)],
  }
}
