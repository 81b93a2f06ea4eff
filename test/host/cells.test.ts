/** How actors come into memory: read ahead of the batch that needs them, and never from an older snapshot than the stored one. */
import t from 'tap'
import { notOwner } from '../../nodes/host/deps.ts'
import { settleAll } from '../memory.ts'
import { command, reply, runId, ToyWorld } from './toy.ts'

/** Milliseconds after which an actor that nobody asks for has left memory. */
const IDLE = 70_000

t.test('what waiting commands need is read while others are being committed, and each snapshot once', async (t) => {
  const reads: string[] = []
  let held: (() => void) | undefined
  let hold = false
  const world = new ToyWorld((step) => (step === 'append' && hold ? new Promise<void>((go) => { held = go }) : undefined))
  const get = world.snapshots.get.bind(world.snapshots)
  world.snapshots.get = (partition, key) => {
    if (key.includes('run_')) reads.push(key)
    return get(partition, key)
  }
  const shard = await world.owner()
  for (let i = 0; i < 6; i++) await shard.submit(command(runId(i), 'add', { by: i }))
  await world.clock.advance(IDLE)
  t.equal(shard.cells.size, 0)
  reads.length = 0
  hold = true
  const first = shard.submit(command(runId(0), 'add', { by: 1 }))
  await settleAll()
  t.ok(held, 'its append is under way')
  const others = [1, 2, 3, 4, 5, 1].map((i) => shard.submit(command(runId(i), 'add', { by: 1 })))
  await settleAll()
  t.equal(reads.length, 6, 'one for the first, and one for each of the others before their batch has begun')
  hold = false
  held?.()
  t.same(reply(await first), { count: 1 })
  t.same((await Promise.all(others)).map(reply), [{ count: 2 }, { count: 3 }, { count: 4 }, { count: 5 }, { count: 6 }, { count: 3 }])
  t.equal(reads.length, 6)
})

t.test('what was read ahead is not used once the actor was in memory and has changed', async (t) => {
  let held: (() => void) | undefined
  let hold = false
  const world = new ToyWorld((step) => (step === 'append' && hold ? new Promise<void>((go) => { held = go }) : undefined))
  const shard = await world.owner()
  for (const i of [1, 2]) await shard.submit(command(runId(i), 'add', { by: i }))
  await world.clock.advance(IDLE)
  hold = true
  const first = shard.submit(command(runId(1), 'add', { by: 1 }))
  await settleAll()
  // The next batch changes the second actor by a tell of another one, and then by a command that waited for it.
  const told = shard.submit(command(runId(3), 'add', { by: 1, sibling: runId(2) }))
  const own = shard.submit(command(runId(2), 'add', { by: 10 }))
  await settleAll()
  hold = false
  held?.()
  await Promise.all([first, told])
  t.same(reply(await own), { count: 12 })
  t.match(reply(await shard.ask({ project: 'prj_1', kind: 'run', id: runId(2) }, 'get', undefined)), { count: 12, told: 1 })
})

t.test('a server that does not know the newest snapshot is not believed', async (t) => {
  const lost: string[] = []
  const world = new ToyWorld()
  const shard = await world.owner(0, world.deps(), lost)
  const id = runId(1)
  await shard.submit(command(id, 'add', { by: 1 }))
  await world.clock.advance(5000)
  const [at, older] = [...world.snapshots.values].find(([key]) => key.includes('run_')) ?? []
  if (!at || !older) return t.fail('it was not stored')
  await shard.submit(command(id, 'add', { by: 1 }))
  // It leaves memory, and a moment later somebody wants it.
  while (shard.cells.loaded({ project: 'prj_1', kind: 'run', id })) await world.clock.advance(1000)
  world.snapshots.values.set(at, older)
  t.same(await shard.submit(command(id, 'add', { by: 1 })), notOwner)
  t.equal(lost.length, 1, 'its owner gives the shard up')
  t.equal(shard.open, false)
})
