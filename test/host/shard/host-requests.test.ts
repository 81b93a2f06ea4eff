/** The effect that requests work from hosts. */
import t from 'tap'
import type { AnyActor, Effect } from '../../../actors/actor.ts'
import type { HostRequest } from '../../../protocol/environments/commands.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { command, counter, kinds, runId, ToyWorld } from '../support/toy.ts'

const request: HostRequest = {
  project: 'prj_1',
  environment_id: 'env_1',
  operation: 1,
  kind: 'provision',
}
/**
 * An actor that requests an operation with each event: from any host of the provider if the count
 * is one, and otherwise from the hosts of a place.
 */
const requesting: AnyActor = {
  ...counter,
  react: {
    counted: ((event: { by: number }): readonly Effect[] => [
      {
        host: {
          provider: 'local',
          ...(event.by > 1 && { place: 'local/a.b' }),
          request: { ...request, operation: event.by },
        },
      },
    ]) as never,
  },
}

t.test('a request is published once, to the provider or to the place', async (t) => {
  const world = new ToyWorld(undefined, { ...kinds, run: requesting })
  const bus = new MemoryBus()
  const received: [string, unknown][] = []
  for (const subject of ['hosts.provider.*', 'hosts.place.*'])
    bus.subscribe(subject, (message, on) => void received.push([on, message]))
  const shard = await world.owner(0, world.deps(bus))
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await shard.submit(command(runId(1), 'add', { by: 2 }))
  await settleAll()
  await world.clock.advance(60_000)
  t.strictSame(received, [
    [subjects.hostsOf('local'), { ...request, operation: 1 }],
    [subjects.hostsAt('local/a.b'), { ...request, operation: 2 }],
  ])
  t.equal(subjects.hostsAt('local/a.b').split('.').length, 3, 'a place is one token')
})
