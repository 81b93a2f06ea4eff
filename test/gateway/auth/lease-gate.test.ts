/** Requests that arrive while the node's lease is stale. */
import t from 'tap'
import { openLeaseGate } from '../../../gateway/lease-gate.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { ManualClock } from '../../support/memory.ts'

t.test('requests wait for a renewal together, each for at most three seconds', async (t) => {
  const clock = new ManualClock()
  const it = { fresh: false }
  let timers = 0
  const later = (ms: number, run: () => void) => {
    timers++
    return clock.later(ms, run)
  }
  const world = fakeWorld({ fresh: () => it.fresh, later })
  const becomesFresh = openLeaseGate(world)
  const told: string[] = []
  const come = (name: string) =>
    void Promise.resolve(becomesFresh()).then((fresh) => told.push(`${name} ${fresh}`))
  for (let i = 0; i < 100; i++) come('early')
  await clock.advance(1500)
  come('late')
  await clock.advance(1450)
  t.same(told, [])
  await clock.advance(100)
  t.same(
    told,
    Array.from({ length: 100 }, () => 'early false'),
    'the wait is limited',
  )
  t.ok(timers <= 62, `${timers} looks for all of them`)
  it.fresh = true
  await clock.advance(50)
  t.equal(told.at(-1), 'late true')
  const before = timers
  await clock.advance(1000)
  t.equal(becomesFresh(), true, 'no wait while the lease is fresh')
  t.equal(timers, before, 'no checks without waiting requests')
  it.fresh = false
  come('again')
  it.fresh = true
  await clock.advance(50)
  t.equal(told.at(-1), 'again true')
})
