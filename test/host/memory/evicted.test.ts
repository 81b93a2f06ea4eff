/** The memory of recently evicted actors. */
import t from 'tap'
import { EvictedActors } from '../../../nodes/host/memory/evicted.ts'

t.test('an actor is remembered for at least the given time, with its latest revision', (t) => {
  const evicted = new EvictedActors(100)
  t.equal(evicted.revisionOf('a'), undefined)
  evicted.add('a', 1, 0)
  evicted.add('b', 0, 99)
  t.same([evicted.revisionOf('a'), evicted.revisionOf('b')], [1, 0])
  evicted.add('c', 3, 100)
  evicted.add('a', 2, 150)
  t.same([evicted.revisionOf('a'), evicted.revisionOf('b')], [2, 0])
  evicted.add('d', 4, 199)
  t.equal(evicted.revisionOf('b'), 0)
  evicted.add('e', 5, 200)
  t.same(
    ['a', 'b', 'c', 'd', 'e'].map((key) => evicted.revisionOf(key)),
    [2, undefined, 3, 4, 5],
  )
  evicted.add('e', 6, 1000)
  evicted.add('f', 7, 1100)
  t.same(
    ['a', 'd', 'e', 'f'].map((key) => evicted.revisionOf(key)),
    [undefined, undefined, 6, 7],
  )
  t.end()
})
