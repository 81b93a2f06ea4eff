/** A job that was leased reaches its gateway, also when its owner cannot read for a moment. */
import t from 'tap'
import { MemoryBus } from '../memory.ts'
import { command, runId, ToyWorld } from './toy.ts'

t.test('a push whose content cannot be read while the own lease is stale is made when it is fresh again', async (t) => {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const delivered: unknown[] = []
  bus.subscribe('gateway.g1', (message) => { delivered.push(message); return { ok: true } })
  let fresh = true
  const base = world.deps(bus)
  const run = base.kinds.run
  /** Every count is pushed with the state of another run, which is not in memory after the takeover. */
  const pushing = { ...run, react: { counted: (() => [{ push: { gateway: 'g1', message: { type: 'assign', job: { id: 'job_1', lease_token: 't' } }, spec: { kind: 'run', id: runId(2), ask: 'get', input: {} } } }]) as never } }
  const quiet = await world.owner(0, { ...base, kinds: { ...base.kinds, run: { ...run, react: {} } } })
  await quiet.submit(command(runId(2), 'add', { by: 7 }))
  await quiet.stop()

  const shard = await world.owner(0, { ...base, kinds: { ...base.kinds, run: pushing }, fresh: () => fresh })
  fresh = false
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(1000)
  t.strictSame(delivered, [], 'nothing is read from memory that may be old')
  fresh = true
  await world.clock.advance(2000)
  t.match(delivered, [{ type: 'assign', job: { id: 'job_1', spec: { count: 7 } } }])
  t.equal(delivered.length, 1)
  await shard.stop()
})
