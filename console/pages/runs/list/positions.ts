/** The positions of runs in a list that grows page by page. It needs no browser. */

/** A list with the position of each run by its id. */
export interface Positions<T> {
  readonly items: readonly T[]
  readonly at: ReadonlyMap<string, number>
}

/**
 * Returns the positions. If the list has only become longer, the map of `before` is extended and
 * must no longer be used. A further page of a long list therefore costs no more than that of a
 * short one.
 */
export function positionsOf<T extends { readonly id: string }>(
  items: readonly T[],
  before: Positions<T>,
): Positions<T> {
  const { length } = before.items
  if (items === before.items) return before
  const isLonger =
    length <= items.length &&
    items[0] === before.items[0] &&
    items[length - 1] === before.items[length - 1]
  const at = isLonger ? (before.at as Map<string, number>) : new Map<string, number>()
  for (let index = isLonger ? length : 0; index < items.length; index++)
    at.set(items[index]?.id ?? '', index)
  return { items, at }
}
