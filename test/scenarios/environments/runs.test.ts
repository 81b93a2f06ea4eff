/**
 * Runs that use environments: a real service, a host with a provider in memory, and workers with
 * the credential of their environment.
 */
import t from 'tap'
import { Worker } from '../../../client/worker.ts'
import type { WorkerLaunch } from '../../../nodes/hosts/provider.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { service } from '../../support/service.ts'
import { ended, type Found, fieldsOf, listOf, sleeping, until } from '../support/given.ts'
import { startTestHost } from '../support/hosts.ts'

const s = await service()
t.teardown(() => s.stop())
// A node that is alone in its cluster sends messages only within its own process, so they would not
// reach the test host, which has a separate NATS connection. Therefore, a second node is added.
await s.add({ BATON_ROLES: 'executor' })

/** The default number of shards of a service. */
const SHARDS = 4
/** The actions that workers executed, with their parameters, in order. */
const done: [action: string, parameters: Record<string, unknown>][] = []
const act = (name: string) => (parameters: Record<string, unknown>) => {
  done.push([name, parameters])
  return { dir: parameters['dest'] ?? null }
}
const startWorker = ({ variables }: WorkerLaunch, end: (idle: boolean) => void) => {
  const worker = new Worker({
    url: s.url,
    key: variables['SERVICE_API_KEY'] ?? '',
    project: variables['SERVICE_PROJECT'] ?? '',
    environment_id: variables['SERVICE_WORKER_ENVIRONMENT_ID'] ?? '',
    actions: {
      'environment.bash': act('bash'),
      'environment.git.clone': act('clone'),
    },
  })
  void worker.start().catch(() => {})
  void worker.ended.then(() => end(true))
  return { kill: () => void worker.stop() }
}
/** An in-memory place of the default provider, `local`. */
class LocalPlace extends MemoryPlace {
  override provider() {
    return { ...super.provider(), name: 'local' }
  }
}
const place = new LocalPlace('memory/runs', startWorker)
const host = await startTestHost(s.server.access, place, 'runs-host', undefined, SHARDS)
t.teardown(() => host.stop())

const bash = (id: string, more: object = {}) => ({
  id,
  kind: 'action',
  config: { action_name: 'environment.bash', parameters: { command: id }, ...more },
})
const defaults = { environment: { provider: 'local', retention_policy: 'destroy_on_success' } }
const environmentOf = async (run_id: unknown) =>
  listOf(await s.ok('environment.list', { run_id, include_destroyed: true }))[0]
const gone = (run_id: unknown) =>
  until(
    () => environmentOf(run_id),
    (environment) => environment?.['status'] === 'destroyed',
  )

t.test('the steps of a run share its environment, which ends with the run', async (t) => {
  done.length = 0
  const { id } = await s.ok('run.start', { spec: { steps: [bash('a'), bash('b')], defaults } })
  t.match(await ended(s, id), { status: 'completed' })
  t.same(done, [
    ['bash', { command: 'a' }],
    ['bash', { command: 'b' }],
  ])
  const environment = await environmentOf(id)
  t.match(environment, { run_id: id, mode: 'run', lifetime: 'run', provider: 'local' })
  await gone(id)
  t.equal(place.environments.size, 0, 'nothing is left')
})

t.test('the repositories of a loop are cloned before its first step', async (t) => {
  done.length = 0
  const loop = await s.ok('loop.create', {
    name: 'build',
    repositories: [{ full_name: 'shop/orders', ref: 'main' }, { full_name: 'shop/docs' }],
    steps: [bash('a', { parameters: { dir: '${{ steps.prepare_repository_2.output.dir }}' } })],
    defaults,
  })
  const { id } = await s.ok('loop.start', { id: loop['id'] })
  t.match(await ended(s, id), { status: 'completed' })
  t.same(done, [
    ['clone', { repo_full_name: 'shop/orders', dest: 'orders', branch: 'main' }],
    ['clone', { repo_full_name: 'shop/docs', dest: 'docs' }],
    ['bash', { dir: 'docs' }],
  ])
  t.same((await environmentOf(id))?.['repositories'], [
    { full_name: 'shop/orders', push: false },
    { full_name: 'shop/docs', push: false },
  ])
  await gone(id)
})

t.test('a job waits for its environment; a cancelled run gives the environment up', async (t) => {
  place.holds = true
  const { id } = await s.ok('run.start', { spec: { steps: [bash('a')], defaults } })
  await until(
    async () => place.held.length,
    (count) => count > 0,
  )
  const { items } = await s.ok('run.jobs', { id, include: 'waiting_on' })
  t.match(items, [
    {
      status: 'queued',
      waiting_on: { reason: /^waiting until its environment env_\w+ admits it/ },
    },
  ])
  await s.ok('run.cancel', { id })
  t.match(await ended(s, id), { status: 'cancelled' })
  place.holds = false
  for (const held of place.held.splice(0)) held.finish()
  await gone(id)
  t.equal(place.environments.size, 0)
})

t.test('environments that clients create for a run end with the run', async (t) => {
  const { id: run_id } = await s.ok('run.start', { spec: sleeping() })
  const ofRun = { mode: 'run', run_id }
  const other = await s.ok('run.start', { spec: sleeping() })
  const made = [
    await s.ok('environment.create', ofRun),
    await s.ok('environment.create', { ...ofRun, name: 'beside' }),
    (await s.ok('environment.acquire_matching', { mode: 'run', run_id: other['id'] }))[
      'environment'
    ],
  ] as unknown as Found[]
  const kept = await s.ok('environment.create', { ...ofRun, name: 'kept', lifetime: 'explicit' })
  const get = (environment: Found) => s.ok('environment.get', { environment_id: environment['id'] })
  for (const environment of [...made, kept])
    await until(
      () => get(environment),
      ({ status }) => status === 'ready',
    )
  for (const id of [run_id, other['id']]) await s.ok('run.cancel', { id })
  for (const environment of made)
    await until(
      () => get(environment),
      ({ status }) => status === 'destroyed',
    )
  t.match(await get(kept), { status: 'ready' })
  await s.ok('environment.delete', { environment_id: kept['id'] })
  await until(
    async () => place.environments.size,
    (count) => count === 0,
  )
})

t.test('a direct call of an environment action names the environment', async (t) => {
  const call = { action_name: 'environment.bash', input: { command: 'ls' } }
  t.same(fieldsOf(await s.refused('action.invoke', call, 400, 'bad_request')), ['environment_id'])
  const made = await s.ok('environment.create', { provider: 'local' })
  const environment_id = made['id']
  await s.ok('environment.acquire', { environment_id })
  t.match(
    await s.ok('action.invoke', { ...call, environment_id }),
    { status: 'completed' },
    'the caller has leased the environment',
  )
  await s.ok('environment.delete', { environment_id })
  await until(
    async () => place.environments.size,
    (count) => count === 0,
  )
})

t.test('a job for an environment that does not exist fails', async (t) => {
  const environment_id = 'env_01AAAAAAAAAAAAAAAAAAAAAA0C'
  const { id } = await s.ok('run.start', { spec: { steps: [bash('a', { environment_id })] } })
  t.match(await ended(s, id), { status: 'failed', error_type: 'not_found' })
})
