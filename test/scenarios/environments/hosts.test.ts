/**
 * Hosts over a real NATS server, with a provider in memory and a stand-in for the environment
 * actor. Each host has its own connection, and is stopped or killed.
 */
import t, { type Test } from 'tap'
import { Worker } from '../../../client/worker.ts'
import type { WorkerLaunch } from '../../../nodes/hosts/provider.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { service } from '../../support/service.ts'
import { PROJECT } from '../../support/stand-in-environment.ts'
import { startOwner, startTestHost } from '../support/hosts.ts'
import { start } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
const access = { ...s.server.access, prefix: 'hosts-test' }
const owner = await startOwner(access)
t.teardown(() => owner.stop())

const hostOf = async (t: Pick<Test, 'teardown'>, place: MemoryPlace, node: string) => {
  const host = await startTestHost(access, place, node)
  t.teardown(() => host.stop())
  return host
}
const ready = async () => {
  const id = owner.id()
  await owner.send(id, 'environment.use')
  await owner.until(id, ({ status }) => status === 'ready')
  return id
}
const started = async (id: string) => {
  const before = owner.stateOf(id)?.generation ?? 0
  await owner.send(id, 'environment.use')
  return owner.until(id, ({ worker }) => worker === before + 1)
}

t.test(
  'an environment is prepared, its worker does a job and ends, and it is removed',
  async (t) => {
    let worker: Worker | undefined
    const run = ({ variables }: WorkerLaunch, end: (idle: boolean) => void) => {
      worker = new Worker({
        url: s.url,
        key: s.key,
        project: variables['SERVICE_PROJECT'] ?? '',
        // The environments of the stand-in do not exist in the service, so the worker registers a
        // label instead of an id.
        environment_id: 'stand-in',
        actions: { greet: ({ name }) => ({ text: `hello ${name}` }) },
      })
      void worker.start().catch(() => {})
      void worker.ended.then(() => end(true))
      return { kill: () => void worker?.stop() }
    }
    const place = new MemoryPlace('memory/jobs', run)
    await hostOf(t, place, 'jobs')
    const id = await ready()
    t.match(owner.stateOf(id), { place: 'memory/jobs' })
    const { token_hash } = await started(id)
    t.match(token_hash, /^[0-9a-f]{64}$/)
    const record = await start(s, 'greet', {
      environment_id: 'stand-in',
      parameters: { name: 'you' },
    })
    await s.follow('run.events', { id: record['id'] }, () => false)
    t.match(await s.ok('run.get', { id: record['id'] }), { status: 'completed' })
    await worker?.drain()
    const after = await owner.until(id, (state) => state.worker === undefined)
    t.equal(after.idle, true)
    await owner.send(id, 'environment.run_ended')
    await owner.until(id, ({ status }) => status === 'destroyed')
    t.equal(place.environments.size, 0)
  },
)

t.test('a host that was restarted continues with what its provider has', async (t) => {
  const place = new MemoryPlace('memory/restart')
  const first = await hostOf(t, place, 'restart-1')
  const [kept, gone] = [await ready(), await ready()]
  await started(kept)
  await first.stop()
  await owner.send(gone, 'environment.run_ended')
  const unknown = owner.id()
  place.environments.set(unknown, { project: PROJECT })
  await hostOf(t, place, 'restart-2')
  await owner.until(kept, ({ seen_by }) => seen_by === 'restart-2')
  await owner.until(gone, ({ status }) => status === 'destroyed')
  await place.removed(unknown)
  await started(kept)
  t.strictSame([...place.environments.keys()], [kept], 'also what nobody knows is removed')
})

t.test('a place continues without one of its hosts', async (t) => {
  const place = new MemoryPlace('memory/shared')
  const hosts = [await hostOf(t, place, 'shared-1'), await hostOf(t, place, 'shared-2')]
  const id = await ready()
  await started(id)
  await hosts[0]?.kill()
  await started(id)
  t.strictSame(
    place.launches.map(({ generation }) => generation),
    [1, 2],
    'each worker was started once',
  )
  await owner.send(id, 'environment.run_ended')
  await owner.until(id, ({ status }) => status === 'destroyed')
  t.equal(place.environments.size, 0)
})

t.test('another host prepares the environment of a killed host, and nothing is left', async (t) => {
  const [one, other] = [new MemoryPlace('memory/dying'), new MemoryPlace('memory/other')]
  one.holds = true
  const doomed = await hostOf(t, one, 'dying-1')
  const id = owner.id()
  await owner.send(id, 'environment.use')
  await owner.until(id, ({ operation }) => operation?.host === 'dying-1')
  // The state in which the host is killed: the provider has created the environment, but the host
  // has not reported this yet.
  one.environments.set(id, { project: PROJECT })
  await doomed.kill()
  await hostOf(t, other, 'other-1')
  const state = await owner.until(id, ({ status }) => status === 'ready')
  t.match(state, { place: 'memory/other', operations: 2 })
  one.holds = false
  await hostOf(t, one, 'dying-2')
  await one.removed(id)
  t.equal(one.environments.size, 0, 'what the killed host had begun is removed')
  t.ok(other.environments.has(id))
})

t.test('a host that is killed during a start begins again after its restart', async (t) => {
  const place = new MemoryPlace('memory/start')
  const first = await hostOf(t, place, 'start-1')
  const id = await ready()
  place.holds = true
  await owner.send(id, 'environment.use')
  await owner.until(id, ({ operation }) => operation?.host === 'start-1')
  await first.kill()
  place.holds = false
  await hostOf(t, place, 'start-1')
  const state = await owner.until(id, ({ worker }) => worker !== undefined)
  t.equal(state.worker, 2, 'the worker has a number of its own')
  t.equal(place.launches.length, 1)
})
