/** Items that become due after the same delay, against a model: a list of items and times. */
import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { DueInOrder, type Waiting } from '../../nodes/due-in-order.ts'
import { ManualClock } from '../support/memory.ts'

const DELAY = 100
const step = fc.oneof(
  fc.record({ type: fc.constant('add' as const), again: fc.boolean() }),
  fc.record({ type: fc.constant('delete' as const), index: fc.nat(30) }),
  // Even times, because items may run 1 ms early.
  fc.record({ type: fc.constant('pass' as const), ms: fc.nat(80).map((n) => 2 * n) }),
)

t.test('items run once, in order and in time, unless they are deleted', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
    const clock = new ManualClock()
    const ran: number[] = []
    const expected: number[] = []
    const handles: Waiting<number>[] = []
    const left = new Map<number, number>()
    const repeated = new Set<number>()
    const add = () => {
      left.set(handles.length, clock.elapsed() + DELAY)
      handles.push(due.add(handles.length))
    }
    const due = new DueInOrder<number>(clock, DELAY, (item) => {
      ran.push(item)
      if (repeated.has(item)) add()
    })
    for (const given of steps)
      if (given.type === 'add') {
        if (given.again) repeated.add(handles.length)
        add()
      } else if (given.type === 'delete') {
        const handle = handles[given.index]
        if (!handle) continue
        due.delete(handle)
        left.delete(given.index)
      } else {
        const until = clock.elapsed() + given.ms
        await clock.advance(given.ms)
        // The map is in the order of the times. An item that is added meanwhile comes last.
        for (const [item, at] of left) {
          if (at > until) break
          expected.push(item)
          left.delete(item)
        }
      }
    deepEqual(ran, expected)
  })
  await t.resolves(fc.assert(property))
})

t.test('a timer runs only while items wait', (t) => {
  let timers = 0
  const later = () => {
    timers++
    return () => void timers--
  }
  const due = new DueInOrder<number>({ elapsed: () => 0, later }, DELAY, () => {})
  const [first, second] = [due.add(1), due.add(2)]
  t.equal(timers, 1)
  due.delete(first)
  due.delete(first)
  t.equal(timers, 1)
  due.delete(second)
  t.equal(timers, 0)
  t.end()
})
