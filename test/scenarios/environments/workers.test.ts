/**
 * Workers of environments over real sockets: their credential, their registration, and workers that
 * attach their workspace.
 */
import t from 'tap'
import type { WorkerLaunch } from '../../../nodes/hosts/provider.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { service, type TestWorker } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { startTestHost } from '../support/hosts.ts'
import { claim, jobOf, type Received, seen, start } from '../support/sockets.ts'

// The test host requires this number of shards.
const s = await service({ BATON_SHARDS: '2' })
t.teardown(() => s.stop())
// A node that is alone in its cluster sends messages only within its own process, so they would not
// reach the test host, which has a separate NATS connection. Therefore, a second node is added.
await s.add({ BATON_ROLES: 'gateway' })

/**
 * An in-memory place of the provider `local`. It starts no processes: the tests connect in place of
 * its workers.
 */
class LocalPlace extends MemoryPlace {
  override provider() {
    return { ...super.provider(), name: 'local' }
  }
}
const place = new LocalPlace('memory/workers')
const host = await startTestHost(s.server.access, place, 'workers-host')
t.teardown(() => host.stop())

const get = (environment_id: string) =>
  s.ok('environment.get', { environment_id, include: 'worker_state' })
let names = 0
/**
 * Creates an environment and requests its worker, which the host starts. Returns the id of the
 * environment, the launch and the worker's key.
 */
async function started(): Promise<{ id: string; launch: WorkerLaunch; key: string }> {
  const { id } = (await s.ok('environment.create', { name: `desk-${++names}` })) as unknown as {
    id: string
  }
  await until(
    () => get(id),
    ({ status }) => status === 'ready',
  )
  return { id, ...(await startAgain(id)) }
}
async function startAgain(id: string) {
  const before = place.launches.length
  await s.ok('environment.start_worker', { environment_id: id })
  await until(
    async () => place.launches.length,
    (count) => count > before,
  )
  const launch = place.launches.at(-1) as WorkerLaunch
  return { launch, key: launch.variables['SERVICE_API_KEY'] ?? '' }
}
const register = async (key: string, frame: Record<string, unknown>): Promise<TestWorker> => {
  const worker = await s.worker(frame, { key })
  t.teardown(() => worker.close())
  return worker
}
const errorOf = async (worker: TestWorker) =>
  ((await seen(worker, 'error'))['error'] as unknown as { code: string }).code
const stateOf = (id: string, state: string) =>
  until(
    () => get(id),
    ({ worker_state }) => worker_state === state,
  )

t.test('the worker of an environment takes exactly the jobs of its environment', async (t) => {
  const { id, key } = await started()
  const worker = await register(key, { worker_instance_id: `w-${id}`, action_names: ['build'] })
  await seen(worker, 'worker.registered')
  const record = await stateOf(id, 'connected')
  t.match(record['current_worker_session_id'], /^wst_/)
  const other = await start(s, 'build')
  const run = await start(s, 'build', { environment_id: id })
  const job = await worker.job()
  t.equal(job['run_id'], run['id'])
  t.equal(job['environment_id'], id)
  await worker.report(job)
  t.equal((await jobOf(s, other))['status'], 'queued', 'no worker takes it')
})

t.test('the worker of an environment may call only the rows that permit it', async (t) => {
  const { id, key } = await started()
  const other = await started()
  t.match(await s.ok('environment.get', { environment_id: id }, { key }), { id })
  for (const [name, input] of [
    ['environment.get', { environment_id: other.id }],
    ['environment.list', {}],
    ['environment.delete', { environment_id: id }],
    ['project.get', {}],
    ['me.get', {}],
    ['run.start', { spec: { steps: [] } }],
    ['artifact.list', {}],
    ['worker.list', {}],
  ] as const)
    await s.refused(name, input, 403, 'permission_denied', { key })
  const form = new FormData()
  form.set('name', 'a.txt')
  form.set('file', new Blob(['a']))
  const upload = await fetch(`${s.url}/v1/projects/default/artifacts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: form,
  })
  t.equal(upload.status, 403, 'an artifact needs a lease')
  await s.refused('environment.get', { environment_id: id }, 401, 'unauthorized', {
    key: key.replace(/_[0-9a-f]{40}/, `_${'0'.repeat(40)}`),
  })
})

t.test('two live workers never serve one environment', async (t) => {
  const { id, key } = await started()
  const first = await register(key, { worker_instance_id: `a-${id}` })
  const { worker_session_token } = await seen(first, 'worker.registered')
  const second = await register(key, { worker_instance_id: `b-${id}` })
  t.equal(await errorOf(second), 'environment_conflict')
  await second.closed
  first.close()
  await first.closed
  const again = await register(key, { worker_instance_id: `a-${id}`, worker_session_token })
  t.equal(
    (await seen(again, 'worker.registered'))['worker_session_token'],
    worker_session_token,
    'the same process keeps its place',
  )
})

t.test('a worker of a higher number supersedes the one before', async (t) => {
  const { id, launch, key } = await started()
  const first = await register(key, { worker_instance_id: `a-${id}` })
  await seen(first, 'worker.registered')
  await stateOf(id, 'connected')
  place.exit(id)
  await stateOf(id, 'stopped')
  const next = await startAgain(id)
  t.ok(next.launch.generation > launch.generation)
  await until(
    () => s.call('environment.get', { environment_id: id }, { key }),
    ({ status }) => status === 401,
  )
  const second = await register(next.key, { worker_instance_id: `b-${id}` })
  await seen(second, 'worker.registered')
  t.equal(await errorOf(first), 'invalid_actor', 'its credential is checked again')
})

t.test('other credentials cannot register for an environment of a host', async (t) => {
  const { id } = await started()
  const worker = await s.worker({ worker_instance_id: 'stranger', environment_id: id })
  t.equal(await errorOf(worker), 'environment_forbidden')
  const label = await s.worker({ worker_instance_id: 'labelled', environment_id: 'gpu-box' })
  await seen(label, 'worker.registered')
  label.close()
})

t.test('a worker attaches again after its environment was destroyed', async (t) => {
  const worker = await s.worker({ worker_instance_id: 'again', action_names: ['greet'] })
  await seen(worker, 'worker.registered')
  const attach = (name: string) =>
    s.call('environment.attach', { name, worker_instance_id: 'again' })
  const first = await attach('again')
  t.equal(first.status, 201)
  let id = String(first.body['id'])
  for (const name of ['again', 'renamed']) {
    await s.ok('environment.delete', { environment_id: id })
    const { status, body } = await attach(name)
    t.equal(status, 201)
    t.match(body, { name, status: 'ready' })
    t.not(body['id'], id)
    id = String(body['id'])
  }
  t.equal((await attach('renamed')).status, 200)
  t.equal((await attach('again')).status, 409, 'it serves one environment')
  const own = listOf(await s.ok('environment.list', { limit: 200 })).filter(({ name }) =>
    ['again', 'renamed'].includes(String(name)),
  )
  t.strictSame(
    own.filter(({ status }) => status !== 'destroyed').map((one) => one['id']),
    [id],
    'no other environment was created',
  )
  const run = await start(s, 'greet', { environment_id: id })
  const job = await worker.job()
  t.equal(job['run_id'], run['id'])
  await worker.report(job)
  worker.close()
})

t.test('a connected worker attaches its workspace, and then takes its jobs', async (t) => {
  const worker = await s.worker({ worker_instance_id: 'laptop', action_names: ['greet'] })
  const { worker_session_token } = await seen(worker, 'worker.registered')
  const attach = (more: object = {}) =>
    s.call('environment.attach', { name: 'laptop', worker_instance_id: 'laptop', ...more })
  const made = await attach({ tags: { a: 'b' } })
  t.equal(made.status, 201)
  t.match(made.body, {
    provider: 'worker',
    lifetime: 'explicit',
    status: 'ready',
    tags: { a: 'b' },
  })
  t.match(made.body['current_worker_session_id'], /^wst_/)
  const again = await attach({ worker_session_token })
  t.equal(again.status, 200)
  t.equal(again.body['id'], made.body['id'])
  t.equal((await attach({ worker_session_token: 'wrong' })).status, 404)
  t.equal((await attach({ name: 'other' })).status, 409, 'it serves one environment')
  const id = String(made.body['id'])
  const run = await start(s, 'greet', { environment_id: id })
  const job = await worker.job()
  t.equal(job['run_id'], run['id'])
  await worker.report(job)

  const rival = await s.worker({ worker_instance_id: 'rival' })
  await seen(rival, 'worker.registered')
  const refused = await attach({ worker_instance_id: 'rival' })
  t.match(refused, { status: 409, body: { error: { code: 'environment_worker_conflict' } } })

  worker.close()
  const back = await s.worker({
    worker_instance_id: 'laptop',
    worker_session_token,
    action_names: ['greet'],
  })
  await seen(back, 'worker.registered')
  const next = await start(s, 'greet', { environment_id: id })
  const [second = {} as Received] = await claim(back, { available_slots: 1 })
  t.equal(second['run_id'], next['id'], 'after a reconnect, too')
  await back.report(second)
  back.send({ type: 'worker.draining' })
  await seen(back, 'worker.draining.ack')
  back.close()
  await until(
    () => get(id),
    ({ status }) => status === 'orphaned',
  )
  t.equal((await attach({ worker_instance_id: 'rival' })).status, 200)
  t.match(await get(id), { status: 'ready', worker_state: 'connected' } as unknown as Received)
  rival.close()
})
