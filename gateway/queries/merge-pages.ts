/** Merges the pages that the views of all partitions return for one list. */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'

/** A page of one partition. `position` is present only when more items follow in the partition. */
interface Page<I> {
  readonly items: readonly I[]
  readonly position?: unknown
}
/**
 * The first `limit` items across all partitions. If more items follow, `last` is the last of these
 * items, after which the next page begins. Otherwise, `last` is absent.
 */
interface Merged<I, P> {
  readonly items: readonly I[]
  readonly last?: I
  /** The pages as the partitions returned them. */
  readonly pages: readonly P[]
}

/**
 * Merges pages into one. Returns the first refusal if a partition refused.
 * @param order compares two items, like the argument of `Array.prototype.sort`. The items of each
 * page have this order.
 */
export function mergePages<I, P extends Page<I>>(
  answers: readonly ((P & Page<I>) | Refusal)[],
  limit: number,
  order: (a: I, b: I) => number,
): Merged<I, P> | Refusal {
  const pages: P[] = []
  for (const answer of answers) {
    if (isRefusal(answer)) return answer
    pages.push(answer)
  }
  const all = pages.flatMap((page): readonly I[] => page.items).sort(order)
  const items = all.slice(0, limit)
  const last = items.at(-1)
  const more = all.length > items.length || pages.some(({ position }) => position !== undefined)
  return { items, pages, ...(more && last !== undefined && { last }) }
}
