/** A ring gives turns in the same order as a plain list. */
import fc from 'fast-check'
import t from 'tap'
import {
  emptyRing,
  isEmpty,
  join,
  leave,
  member,
  moveToBack,
  turns,
} from '../../../actors/jobs/ring.ts'

const change = fc.record({
  do: fc.constantFrom('add', 'remove', 'move'),
  item: fc.integer({ min: 0, max: 30 }).map(String),
})

t.test('a ring gives turns as a plain list would', async (t) => {
  void fc.assert(
    fc.property(fc.array(change, { maxLength: 80, size: 'max' }), (changes) => {
      const ring = emptyRing<string>()
      let list: string[] = []
      for (const { do: what, item } of changes) {
        const known = list.includes(item)
        if ((member(ring, item) !== undefined) !== known) throw new Error('membership differs')
        if (what === 'add' && !known) join(ring, item, item)
        if (what === 'remove') leave(ring, item)
        if (what === 'move') moveToBack(ring, item)
        const others = list.filter((other) => other !== item)
        if (what === 'remove') list = others
        else if (what === 'add' ? !known : known) list = [...others, item]
        if ([...turns(ring)].join() !== list.join() || isEmpty(ring) !== (list.length === 0))
          throw new Error('turns differ')
      }
    }),
    { numRuns: 300 },
  )
  t.pass()
})
