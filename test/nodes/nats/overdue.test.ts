/** The table of items with time limits, against a model: a map. */
import { deepEqual, equal } from 'node:assert/strict'
import { mock } from 'node:test'
import fc from 'fast-check'
import t from 'tap'
import { Overdue } from '../../../nodes/nats/journal/overdue.ts'

const byValue = (a: number, b: number) => a - b
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('add' as const), late: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('take' as const), index: fc.nat(300) }) },
  { weight: 1, arbitrary: fc.constantFrom({ type: 'look' as const }, { type: 'end' as const }) },
)

t.test('each item is taken or expires once', (t) => {
  const property = fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const items = new Overdue<{ until: number; over: () => void }>()
      const numbers: number[] = []
      const left = new Map<number, boolean>()
      const expired: number[] = []
      const expire = (which: (late: boolean) => boolean) => {
        const wanted = [...left].filter(([, late]) => which(late)).map(([index]) => index)
        for (const index of wanted) left.delete(index)
        deepEqual(expired.splice(0).sort(byValue), wanted.sort(byValue))
      }
      for (const given of steps)
        if (given.type === 'add') {
          const index = numbers.length
          const over = () => void expired.push(index)
          numbers.push(items.add({ until: given.late ? -1 : Infinity, over }))
          left.set(index, given.late)
        } else if (given.type === 'take') {
          const number = numbers[given.index] ?? -1
          equal(items.has(number), left.has(given.index))
          equal(items.take(number) !== undefined, left.delete(given.index))
        } else if (given.type === 'look') {
          mock.timers.tick(50)
          expire((late) => late)
        } else {
          items.end()
          expire(() => true)
        }
      equal(new Set(numbers).size, numbers.length, 'numbers are unique')
    } finally {
      mock.timers.reset()
    }
  })
  t.doesNotThrow(() => fc.assert(property))
  t.end()
})

t.test('the table grows when the next places are occupied', (t) => {
  const items = new Overdue<{ until: number; over: () => void }>()
  const item = () => ({ until: Infinity, over: () => {} })
  const kept = Array.from({ length: 20 }, () => items.add(item()))
  for (let n = 0; n < 200; n++) t.ok(items.take(items.add(item())))
  const more = Array.from({ length: 100 }, () => items.add(item()))
  t.same(
    [...kept, ...more].filter((number) => !items.has(number)),
    [],
  )
  items.end()
  t.end()
})
