/**
 * Where the action of a step is executed: by the service, by any worker, or by a worker of one
 * environment.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf } from '../support/given.ts'
import { json, receiver } from '../support/servers/receiver.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.teardown(async () => {
  await there.close()
  await s.stop()
})
there.answer = json({ by: 'endpoint' })
await s.ok('action.create', { name: 'mail', endpoint_url: `${there.url}/mail` })

const start = (config: Record<string, unknown>) =>
  s.ok('run.start', {
    spec: { steps: [{ id: 'only', kind: 'action', config: { action_name: 'mail', ...config } }] },
  })

t.test(
  'the service executes an action with an endpoint, unless the step asks for a worker',
  async (t) => {
    const worker = await s.worker({ action_names: ['mail'] })
    for (const config of [{}, { execution_location: 'managed' }]) {
      const run = await start(config)
      t.match(await ended(s, run['id']), { status: 'completed' })
      const [job] = listOf(await s.ok('run.jobs', { id: run['id'] }))
      t.match(job, { executor_kind: 'server_worker', result: { by: 'endpoint' } })
    }
    const run = await start({ execution_location: 'worker' })
    const job = await worker.job()
    t.match(job, { run_id: run['id'], executor_kind: 'customer_worker' })
    await worker.report(job, { result: { by: 'worker' } })
    t.match(await ended(s, run['id']), { status: 'completed' })
    t.equal(there.deliveries.length, 2)
    worker.close()
  },
)

t.test(
  'a job for workers waits for one without delaying jobs that the service executes',
  async (t) => {
    const waiting = await start({ execution_location: 'worker' })
    const managed = await start({})
    t.match(await ended(s, managed['id']), { status: 'completed' })
    t.match(await s.ok('run.get', { id: waiting['id'] }), { status: 'suspended' })
    const worker = await s.worker({ action_names: ['mail'] })
    await worker.report(await worker.job(), { result: {} })
    t.match(await ended(s, waiting['id']), { status: 'completed' })
    worker.close()
  },
)

t.test('an action that the service executes cannot name an environment', async (t) => {
  const config = { action_name: 'mail', execution_location: 'managed', environment_id: 'env_1' }
  const spec = { steps: [{ id: 'a', kind: 'action', config }] }
  t.match(await s.refused('run.start', { spec }, 400, 'bad_request'), {
    details: { fields: [{ field: 'spec.steps[0].config.environment_id' }] },
  })
})
