/** Takeover of a shard after an operator deleted the beginning of its journal. */
import t from 'tap'
import { notOwner } from '../../../nodes/host/deps.ts'
import type { Shard } from '../../../nodes/host/shard.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const countOf = async (shard: Shard, n: number): Promise<unknown> =>
  reply(await shard.ask({ project: 'prj_1', kind: 'run', id: runId(n) }, 'get', undefined))

/** Deletes the first entries of the journal. */
function trim({ journal }: ToyWorld, entries: number): void {
  journal.messages.splice(0, entries)
  journal.first += entries
}

t.test('a shard all of whose entries were deleted continues from its stored state', async (t) => {
  const world = new ToyWorld()
  const shards = [await world.owner(), await world.owner(1)]
  await shards[0]?.submit(command(runId(1), 'add', { by: 7 }))
  await world.clock.advance(5000)
  for (const shard of shards) await shard.stop()
  // The ownership records are lost with the servers' memory, so the epochs begin with 1 again.
  const [third, other] = [await world.owner(), await world.owner(1)]
  await world.clock.advance(5000)
  t.equal(third.position.epoch, 2)
  third.drop()
  await other.submit(command(runId(2, 1), 'add', { by: 1 }))
  trim(world, world.journal.messages.length - 1)
  const last = await world.owner()
  t.equal(last.position.epoch, 3, 'the epoch follows that of the stored state')
  t.match(await countOf(last, 1), { count: 7 })
  t.match(reply(await last.submit(command(runId(1), 'add', { by: 1 }))), { count: 8 })
  await world.clock.advance(5000)
  t.equal(last.open, true)
  for (const shard of [last, other]) shard.drop()

  world.snapshots.values.clear()
  const without = await world.owner()
  t.match(await countOf(without, 1), { refused: 'journal_damaged' }, 'not without that state')
  without.drop()
})

t.test('an owner whose entries are deleted while it is idle is followed by another', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(), lost)
  await shard.submit(command(runId(1), 'add', { by: 7 }))
  await world.clock.advance(5000)
  trim(world, world.journal.messages.length)
  t.same(await shard.submit(command(runId(1), 'add', { by: 1 }, 'again')), notOwner)
  t.same(lost, ['another node owns the shard'])
  const next = await world.owner()
  t.match(reply(await next.submit(command(runId(1), 'add', { by: 1 }, 'again'))), { count: 8 })
  next.drop()
})

t.test('a shard is not served without the stored state of its deleted entries', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  for (const n of [1, 2]) await shard.submit(command(runId(n), 'add', { by: n }))
  await world.clock.advance(5000)
  await shard.submit(command(runId(2), 'add', { by: 1 }))
  shard.drop()
  trim(world, 2)
  world.snapshots.values.clear()
  const damages: string[] = []
  const deps = {
    ...world.deps(),
    damaged: (_: number, reason: string) => void damages.push(reason),
  }
  const next = await world.owner(0, deps)
  const refused = { refused: 'journal_damaged' }
  t.match(await next.submit(command(runId(1), 'add', { by: 1 })), refused)
  t.match(await countOf(next, 1), refused, 'its entries are not silently absent')
  t.same(damages, [
    'the journal begins at 3, and no stored state covers the entries of shard 0.0 before it',
  ])
  next.drop()
})

t.test('stored state that cannot be read is not replaced', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  shard.drop()
  trim(world, 2)
  const { values } = world.snapshots
  const stored = new Map(values)
  const checkpoint = () => Buffer.from(values.get('0/_/0/checkpoint')?.data ?? []).toString()
  const before = checkpoint()
  const refuses = async () => {
    const taken = world.owner()
    await world.clock.advance(10_000)
    const owner = await taken
    t.match(await countOf(owner, 1), { refused: 'journal_damaged' })
    owner.drop()
  }
  const newer = JSON.stringify({ ...JSON.parse(before), v: 9 })
  values.set('0/_/0/checkpoint', { data: Buffer.from(newer), revision: values.size })
  await refuses()
  t.equal(checkpoint(), newer, 'a record of a newer release')

  for (const [name, value] of stored) values.set(name, value)
  for (const name of values.keys()) if (name.includes(runId(1))) values.delete(name)
  await refuses()
  t.match(JSON.parse(checkpoint()), { state: JSON.parse(before).state }, 'a missing snapshot')
  for (const [name, value] of stored) values.set(name, value)
  const next = await world.owner()
  t.match(await countOf(next, 1), { count: 2 })
  next.drop()
})
