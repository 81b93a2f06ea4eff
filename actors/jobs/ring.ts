/**
 * Round-robin scheduling of named members, as plain JSON. A member moves to the back after its
 * turn, and new members join at the back. Between two turns of one member, every other existing
 * member therefore has one turn. Adding, removing and moving a member are O(1). The values of
 * members are opaque to the ring.
 */

export interface Ring<T> {
  /** Name of the first member; empty if the ring is empty. */
  first: string
  /** Name of the last member; empty if the ring is empty. */
  last: string
  readonly members: Record<string, { before: string; after: string; readonly value: T }>
}

export const emptyRing = <T>(): Ring<T> => ({ first: '', last: '', members: {} })
export const isEmpty = (ring: Ring<unknown>): boolean => ring.first === ''
/** Returns the value of a member, or undefined if there is no such member. */
export const member = <T>(ring: Ring<T>, name: string): T | undefined =>
  Object.hasOwn(ring.members, name) ? ring.members[name]?.value : undefined

/**
 * Adds a member at the back.
 * @param name must not be empty, `__proto__`, or already in the ring.
 */
export function join<T>(ring: Ring<T>, name: string, value: T): T {
  const last = ring.members[ring.last]
  ring.members[name] = { before: ring.last, after: '', value }
  if (last) last.after = name
  else ring.first = name
  ring.last = name
  return value
}

/** Removes a member. An unknown name changes nothing. */
export function leave<T>(ring: Ring<T>, name: string): void {
  const link = ring.members[name]
  if (!link) return
  const before = ring.members[link.before]
  const after = ring.members[link.after]
  if (before) before.after = link.after
  else ring.first = link.after
  if (after) after.before = link.before
  else ring.last = link.before
  delete ring.members[name]
}

/** Moves a member to the back after its turn. */
export function moveToBack<T>(ring: Ring<T>, name: string): void {
  const link = ring.members[name]
  if (!link || ring.last === name) return
  leave(ring, name)
  join(ring, name, link.value)
}

/** Yields the values of the members in the order of their turns. */
export function* turns<T>(ring: Ring<T>): Generator<T, void> {
  for (let link = ring.members[ring.first]; link; link = ring.members[link.after]) yield link.value
}

/**
 * Interleaves the sources: yields the first item of each source, then the second item of each
 * source, until all sources are exhausted. A source is opened at its first turn.
 */
export function* alternate<T, S>(
  sources: Iterable<S>,
  open: (source: S) => Iterator<T, void>,
): Generator<T, void> {
  let taking: Iterator<T, void>[] = []
  for (const source of sources) {
    const items = open(source)
    const item = items.next()
    if (item.done) continue
    taking.push(items)
    yield item.value
  }
  while (taking.length > 0) {
    const left: Iterator<T, void>[] = []
    for (const items of taking) {
      const item = items.next()
      if (item.done) continue
      left.push(items)
      yield item.value
    }
    taking = left
  }
}
