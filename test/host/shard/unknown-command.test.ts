/** Commands of a newer release, which the owner does not support. */
import t from 'tap'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

t.test('a command of a newer release waits for an owner that knows it', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  const before = world.journal.messages.length
  for (const name of ['add_all', 'toString'])
    t.same(await shard.submit(command(runId(1), name, { by: 1 })), { not_owner: true })
  t.equal(world.journal.messages.length, before, 'nothing is stored')
  t.same(reply(await shard.submit(command(runId(1), 'add', { by: 1 }))), { count: 1 })
})
