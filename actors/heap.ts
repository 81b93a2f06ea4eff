/**
 * A binary heap in a plain array, for actors and the shard host. The owner of a heap is the object
 * that stores the sort keys of its items. It is passed to each function as `owner`, so an `Order`
 * can be a constant, and hot paths need no closures. `Order.placed` reports each new index of an
 * item to the owner. Any item can therefore be removed or reordered in O(log n), and no stale
 * entries remain.
 */

export interface Order<O, T> {
  /** Whether `a` comes strictly before `b`. Two items are tied if neither is before the other. */
  before(owner: O, a: T, b: T): boolean
  /** Called when the item has moved to this index. */
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

/**
 * Moves an item down with the bottom-up method (Wegener 1993). It follows the path of the earlier
 * children to a leaf, then searches for the item's position on that path from the leaf upward. Most
 * items that move down belong near a leaf, so the method needs about half the comparisons of a
 * search from the top.
 */
function down<O, T>(heap: T[], start: number, order: Order<O, T>, owner: O): void {
  const item = heap[start] as T
  let end = start
  for (let child = 2 * end + 1; child < heap.length; child = 2 * end + 1) {
    const right = child + 1
    end =
      right < heap.length && order.before(owner, heap[right] as T, heap[child] as T) ? right : child
  }
  while (end > start && order.before(owner, item, heap[end] as T)) end = (end - 1) >> 1
  let carried = item
  for (let i = end; i >= start; i = (i - 1) >> 1) {
    const above = heap[i] as T
    heap[i] = carried
    order.placed(owner, carried, i)
    carried = above
  }
}

/** Adds an item, which must not be in the heap yet. */
export function add<O, T>(heap: T[], item: T, order: Order<O, T>, owner: O): void {
  heap.push(item)
  up(heap, heap.length - 1, order, owner)
}

/** Restores the heap order after the sort key of the item at this index has changed. */
export function restoreOrder<O, T>(heap: T[], index: number, order: Order<O, T>, owner: O): void {
  const parent = (index - 1) >> 1
  if (index > 0 && order.before(owner, heap[index] as T, heap[parent] as T))
    up(heap, index, order, owner)
  else down(heap, index, order, owner)
}

/** Removes the item at this index. */
export function removeAt<O, T>(heap: T[], index: number, order: Order<O, T>, owner: O): void {
  const last = heap.pop() as T
  if (index === heap.length) return
  heap[index] = last
  restoreOrder(heap, index, order, owner)
}

/** Yields the items in order without changing the heap. The first k items cost O(k log k). */
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
/** Orders the indexes of another heap by the items at these indexes. */
const byItem: Order<View<unknown, unknown>, number> = {
  before: ({ heap, order, owner }, a, b) => order.before(owner, heap[a], heap[b]),
  placed: () => {},
}
