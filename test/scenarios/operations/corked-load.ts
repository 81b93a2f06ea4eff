/**
 * Concurrent requests, streams and sockets of many clients on one gateway. `corked.test.ts` starts
 * this file as a process and reads its output.
 */
import { service } from '../../support/service.ts'

const s = await service({ BATON_RATE_KEY: '0', BATON_RATE_ORG: '0' })
const steps = [{ id: 'work', kind: 'action', config: { action_name: 'work' } }]
// The first request makes the gateway load the organization, which it needs to authenticate the
// later requests.
await s.ok('project.get')
for (let round = 0; round < 4; round++) {
  const workers = await Promise.all(
    Array.from({ length: 25 }, (_, n) =>
      s.worker({ action_names: ['work'], worker_instance_id: `w${round}-${n}` }),
    ),
  )
  const done = workers.map(async (worker) => worker.report(await worker.job(), { result: {} }))
  await Promise.all(
    workers.map(async () => {
      const { id } = await s.ok('run.start', { spec: { steps } })
      await Promise.all([
        s.follow('run.events', { id }, ({ event }) => event === 'run.completed'),
        s.call('run.get', { id: 'run_unknown' }),
        s.raw('GET', '/v1/projects/default/workers/socket'),
        s.ok('run.get', { id }),
      ])
    }),
  )
  await Promise.all(done)
  for (const worker of workers) worker.close()
}
await s.stop()
