/** A heap yields its items in order and tracks their positions. */
import fc from 'fast-check'
import t from 'tap'
import { add, inOrder, type Order, removeAt, restoreOrder } from '../../actors/heap.ts'

interface Items {
  readonly weight: Map<string, number>
  readonly place: Map<string, number>
}
const order: Order<Items, string> = {
  before: ({ weight }, a, b) =>
    weight.get(a) === weight.get(b) ? a < b : (weight.get(a) ?? 0) < (weight.get(b) ?? 0),
  placed: ({ place }, item, index) => {
    place.set(item, index)
  },
}
const change = fc.record({
  do: fc.constantFrom('add', 'remove', 'move'),
  item: fc.integer({ min: 0, max: 30 }).map(String),
  weight: fc.nat(20),
})

t.test(
  'a heap yields its items in order and tracks their positions through additions, removals and moves',
  async (t) => {
    void fc.assert(
      fc.property(fc.array(change, { maxLength: 120, size: 'max' }), (changes) => {
        const items: Items = { weight: new Map(), place: new Map() }
        const heap: string[] = []
        for (const { do: what, item, weight } of changes) {
          const known = items.weight.has(item)
          if (what === 'remove' && known) {
            removeAt(heap, items.place.get(item) ?? -1, order, items)
            items.weight.delete(item)
          } else if (what === 'move' && known) {
            items.weight.set(item, weight)
            restoreOrder(heap, items.place.get(item) ?? -1, order, items)
          } else if (what === 'add' && !known) {
            items.weight.set(item, weight)
            add(heap, item, order, items)
          }
          const sorted = [...items.weight.keys()].sort((a, b) =>
            order.before(items, a, b) ? -1 : 1,
          )
          if ([...inOrder(heap, order, items)].join() !== sorted.join())
            throw new Error('out of order')
          if (heap.some((held, index) => items.place.get(held) !== index))
            throw new Error('an item is not where it was said to be')
        }
      }),
      { numRuns: 300 },
    )
    t.pass()
  },
)
