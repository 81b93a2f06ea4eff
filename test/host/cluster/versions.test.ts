/**
 * Data of other releases. An envelope of a newer version is refused. Snapshots and checkpoints of
 * an unknown version are ignored and recreated.
 */
import t from 'tap'
import { NewerRelease } from '../../../nodes/host/memory/codec.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const raised = (data: Uint8Array): Uint8Array =>
  new TextEncoder().encode(new TextDecoder().decode(data).replace('"v":1', '"v":2'))

t.test('an envelope of a newer version is refused by its version number', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 5 }))
  await shard.stop()
  const last = world.journal.messages.at(-1)
  if (last) last.data = raised(last.data)
  await t.rejects(world.owner(), {
    name: NewerRelease.name,
    message: /version 2.*newer release.*run that release/s,
  })
})

t.test(
  'snapshots and checkpoints of an unknown version are ignored: the journal is replayed',
  async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    for (let n = 1; n <= 3; n++)
      await shard.submit(command(runId(n), 'add', { by: n }, `same-${n}`))
    await shard.stop()
    t.ok(world.snapshots.values.size > 3, 'there are snapshots')
    for (const [key, { data, revision }] of world.snapshots.values)
      world.snapshots.values.set(key, { data: raised(data), revision })
    for (let round = 0; round < 2; round++) {
      const next = await world.owner()
      for (let n = 1; n <= 3; n++)
        t.same(
          reply(await next.submit(command(runId(n), 'add', { by: n }, `same-${n}`))),
          { count: n - 0 },
          `round ${round}: what was answered is answered again`,
        )
      await next.stop()
    }
    const texts = [...world.snapshots.values.values()].map(({ data }) =>
      new TextDecoder().decode(data),
    )
    t.notOk(
      texts.some((text) => text.includes('"v":2')),
      'they are stored again in the form of this release',
    )
  },
)
