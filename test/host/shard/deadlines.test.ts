/**
 * The index of deadlines returns the earliest deadline, just as a search of all deadlines would.
 */
import fc from 'fast-check'
import t from 'tap'
import { Deadlines } from '../../../nodes/host/effects/deadlines.ts'

const key = fc.integer({ min: 0, max: 8 }).map(String)
const at = fc.nat(20)
const step = fc.oneof(
  fc.record({ set: key, at: fc.option(at, { nil: undefined }) }),
  fc.record({ due: at }),
)

t.test('deadlines behave like a map that is searched for the earliest time', async (t) => {
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      const deadlines = new Deadlines()
      const pending = new Map<string, number>()
      const handed = new Map<string, number>()
      const same = (what: string, got: unknown, expected: unknown) => {
        const [a, b] = [JSON.stringify(got), JSON.stringify(expected)]
        if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`)
      }
      for (const one of steps) {
        if ('due' in one) {
          const due = [...pending].filter(([, time]) => time <= one.due)
          const keys = deadlines.due(one.due)
          const times = keys.map((name) => pending.get(name) ?? 0)
          same(
            'order',
            times,
            [...times].sort((a, b) => a - b),
          )
          same('due', [...keys].sort(), due.map(([name]) => name).sort())
          for (const [name, time] of due) {
            pending.delete(name)
            handed.set(name, time)
          }
        } else {
          deadlines.set(one.set, one.at)
          handed.delete(one.set)
          if (one.at === undefined) pending.delete(one.set)
          else pending.set(one.set, one.at)
          same('get', deadlines.get(one.set), one.at)
        }
        same('next', deadlines.next() ?? null, pending.size ? Math.min(...pending.values()) : null)
        same('entries', [...deadlines.entries()].sort(), [...pending, ...handed].sort())
      }
    }),
    { numRuns: 300 },
  )
  t.pass()
})
