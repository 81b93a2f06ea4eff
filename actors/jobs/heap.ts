/**
 * A binary heap in a plain array. Its owner is told where each item comes to stand, so any item can be removed or
 * re-ordered in O(log n) and nothing stale ever stays inside. What items are compared by lives with the owner, whom each
 * function gets as `owner`: orders are constants, and the busy paths build no functions.
 */

export interface Order<O, T> {
  /** Whether `a` comes strictly before `b`: a total order. */
  before(owner: O, a: T, b: T): boolean
  /** The item now stands at this index. */
  placed(owner: O, item: T, index: number): void
}

function up<O, T>(heap: T[], start: number, order: Order<O, T>, owner: O): void {
  const item = heap[start] as T
  let i = start
  while (i > 0) {
    const parent = (i - 1) >> 1
    const above = heap[parent] as T
    if (!order.before(owner, item, above)) break
    heap[i] = above
    order.placed(owner, above, i)
    i = parent
  }
  heap[i] = item
  order.placed(owner, item, i)
}

function down<O, T>(heap: T[], start: number, order: Order<O, T>, owner: O): void {
  const item = heap[start] as T
  let i = start
  for (;;) {
    let child = 2 * i + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && order.before(owner, heap[child + 1] as T, heap[child] as T))
      child++
    const below = heap[child] as T
    if (!order.before(owner, below, item)) break
    heap[i] = below
    order.placed(owner, below, i)
    i = child
  }
  heap[i] = item
  order.placed(owner, item, i)
}

/** Add an item. */
export function add<O, T>(heap: T[], item: T, order: Order<O, T>, owner: O): void {
  heap.push(item)
  up(heap, heap.length - 1, order, owner)
}

/** Restore the order after the item at this index became earlier or later. */
export function moved<O, T>(heap: T[], index: number, order: Order<O, T>, owner: O): void {
  const parent = (index - 1) >> 1
  if (index > 0 && order.before(owner, heap[index] as T, heap[parent] as T))
    up(heap, index, order, owner)
  else down(heap, index, order, owner)
}

/** Remove the item at this index. */
export function removeAt<O, T>(heap: T[], index: number, order: Order<O, T>, owner: O): void {
  const last = heap.pop() as T
  if (index === heap.length) return
  heap[index] = last
  moved(heap, index, order, owner)
}

/** The items in order, without changing the heap; the first k cost O(k log k). */
export function* inOrder<O, T>(
  heap: readonly T[],
  order: Order<O, T>,
  owner: O,
): Generator<T, void> {
  const view: View<O, T> = { heap, order, owner }
  const frontier: number[] = heap.length > 0 ? [0] : []
  while (frontier.length > 0) {
    const index = frontier[0] as number
    removeAt(frontier, 0, byItem as Order<View<O, T>, number>, view)
    yield heap[index] as T
    for (let child = 2 * index + 1; child <= 2 * index + 2 && child < heap.length; child++)
      add(frontier, child, byItem as Order<View<O, T>, number>, view)
  }
}
interface View<O, T> {
  readonly heap: readonly T[]
  readonly order: Order<O, T>
  readonly owner: O
}
/** Order of indexes into another heap: by the items there. */
const byItem: Order<View<unknown, unknown>, number> = {
  before: ({ heap, order, owner }, a, b) => order.before(owner, heap[a], heap[b]),
  placed: () => {},
}
