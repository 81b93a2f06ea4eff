/** The order in which a queue is handed out, over all shards. */
import t from 'tap'
import { service, type TestWorker } from '../service.ts'
import type { Found } from './given.ts'

const s = await service({ BATON_SHARDS: '8' })
t.teardown(() => s.stop())

const start = (name: string, more: Record<string, unknown> = {}): Promise<Found> =>
  s.ok('run.start', {
    spec: { steps: [{ id: 'only', kind: 'action', config: { action_name: 'work' } }] },
    input: { name },
    ...more,
  })
/** The runs whose jobs a worker with one slot gets, one after the other. */
async function handedOut(worker: TestWorker, count: number): Promise<string[]> {
  const runs: string[] = []
  for (let i = 0; i < count; i++) {
    const job = await worker.job()
    runs.push(String(job['run_id']))
    await worker.report(job)
  }
  return runs
}

t.test('what waited longest goes first, whichever shards the runs are in', async (t) => {
  const ids: string[] = []
  for (let i = 0; i < 6; i++) {
    ids.push(String((await start(`${i}`))['id']))
    // Ages are of real time, and those that differ by less than 100 ms may come in another order.
    await new Promise((next) => setTimeout(next, 200))
  }
  const worker = await s.worker({ action_names: ['work'], concurrency_limit: 1 })
  t.strictSame(await handedOut(worker, 6), ids)
  worker.close()
})

t.test('a higher priority overtakes all that waits, over all shards', async (t) => {
  const low: string[] = []
  for (let i = 0; i < 12; i++) low.push(String((await start(`low ${i}`))['id']))
  const high: string[] = []
  for (let i = 0; i < 4; i++) high.push(String((await start(`high ${i}`, { priority: 5 }))['id']))
  const worker = await s.worker({ action_names: ['work'], concurrency_limit: 1 })
  const order = await handedOut(worker, 16)
  t.strictSame(order.slice(0, 4).sort(), high.sort())
  t.strictSame(order.slice(4).sort(), low.sort())
  worker.close()
})

t.test('a fairness key with few jobs does not wait for one with many', async (t) => {
  for (let i = 0; i < 30; i++) await start(`many ${i}`, { fairness_key: 'many' })
  const few: string[] = []
  for (let i = 0; i < 2; i++)
    few.push(String((await start(`few ${i}`, { fairness_key: 'few' }))['id']))
  const worker = await s.worker({ action_names: ['work'], concurrency_limit: 1 })
  const order = await handedOut(worker, 32)
  const last = Math.max(...few.map((id) => order.indexOf(id)))
  // Exactly in turns they would be the second and the fourth; each shard may first hand out the job that it had offered.
  t.ok(last < 12, `the last of the few is number ${last + 1} of 32`)
  worker.close()
})
