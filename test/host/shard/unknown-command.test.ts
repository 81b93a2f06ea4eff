/** Commands of a newer release, which the owner does not support. */
import t from 'tap'
import { command, endingKinds, reply, runId, ToyWorld } from '../support/toy.ts'

t.test('a command of a newer release waits for an owner that knows it', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  const before = world.journal.messages.length
  for (const name of ['add_all', 'toString'])
    t.same(await shard.submit(command(runId(1), name, { by: 1 })), { not_owner: true })
  t.equal(world.journal.messages.length, before, 'nothing is stored')
  t.same(reply(await shard.submit(command(runId(1), 'add', { by: 1 }))), { count: 1 })
})

t.test('effects that follow an effect of a newer release are not applied before it', async (t) => {
  const world = new ToyWorld()
  const effects = [
    command(runId(1), 'end', {}, 'e:0.1:5000.0'),
    command(runId(1), 'add', { by: 1 }, 'e:0.1:5000.1'),
  ]
  const older = await world.owner()
  const answers = await Promise.all(effects.map((effect) => older.submit(effect)))
  t.same(answers, [{ not_owner: true }, { not_owner: true }])
  const others = [
    command(runId(1), 'add', { by: 1 }, 'e:0.0:9000.0'),
    command(runId(2), 'add', { by: 1 }, 'e:0.1:5000.2'),
    command(runId(1), 'add', { by: 1 }),
  ]
  const counts = await Promise.all(others.map(async (one) => reply(await older.submit(one))))
  t.same(counts, [{ count: 1 }, { count: 1 }, { count: 2 }], 'no other command waits')
  const newer = await world.owner(0, { ...world.deps(), kinds: endingKinds })
  const replies = await Promise.all(effects.map(async (one) => reply(await newer.submit(one))))
  t.same(replies, [{ end: 2 }, { count: 3 }])
})
