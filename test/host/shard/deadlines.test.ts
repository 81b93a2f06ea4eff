/**
 * The index of deadlines returns the earliest deadline, just as a search of all deadlines would.
 * Actors are woken at their deadlines, also when the system clock was set.
 */
import fc from 'fast-check'
import t from 'tap'
import { Deadlines } from '../../../nodes/host/effects/deadlines.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

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

t.test('a timer that starts after the clock was set back ends after its duration', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  world.clock.setBy(3_600_000)
  await shard.submit(command(runId(0), 'add', { by: 1 }))
  world.clock.setBy(-3_600_000)
  await shard.submit(command(runId(1), 'nap_for', { ms: 5000 }))
  await world.clock.advance(6000)
  const to = { project: 'prj_1', kind: 'run', id: runId(1) } as const
  t.match(reply(await shard.ask(to, 'get', undefined)), { count: 1000 })
})

t.test('a deadline that passed while the machine was suspended is noticed soon', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'nap', { at: world.clock.now() + 1_800_000 }))
  world.clock.setBy(3_600_000)
  await world.clock.advance(11_000)
  const to = { project: 'prj_1', kind: 'run', id: runId(1) } as const
  t.match(reply(await shard.ask(to, 'get', undefined)), { count: 1000 })
})
