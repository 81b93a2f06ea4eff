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

/**
 * Whether something comes out in order. A shard of a busy machine may be too late to be waited for, so it is tried three times;
 * without an order over shards it would not happen once.
 */
async function eventually(attempt: () => Promise<boolean>): Promise<boolean> {
  for (let n = 0; n < 3; n++) if (await attempt()) return true
  return false
}
const worker = () => s.worker({ action_names: ['work'], concurrency_limit: 1 })

t.test('what waited longest goes first, whichever shards the runs are in', async (t) => {
  const inOrder = await eventually(async () => {
    const ids: string[] = []
    for (let i = 0; i < 6; i++) {
      ids.push(String((await start(`${i}`))['id']))
      // Ages are of real time, and those that differ by less than 100 ms may come in another order.
      await new Promise((next) => setTimeout(next, 200))
    }
    const one = await worker()
    const order = await handedOut(one, 6)
    one.close()
    return order.join() === ids.join()
  })
  t.ok(inOrder)
})

t.test('a higher priority overtakes all that waits, over all shards', async (t) => {
  const overtakes = await eventually(async () => {
    for (let i = 0; i < 12; i++) await start(`low ${i}`)
    const high: string[] = []
    for (let i = 0; i < 4; i++) high.push(String((await start(`high ${i}`, { priority: 5 }))['id']))
    const one = await worker()
    const order = await handedOut(one, 16)
    one.close()
    return high.every((id) => order.indexOf(id) < 4)
  })
  t.ok(overtakes)
})

t.test('a fairness key with few jobs does not wait for one with many', async (t) => {
  const fair = await eventually(async () => {
    for (let i = 0; i < 30; i++) await start(`many ${i}`, { fairness_key: 'many' })
    const few: string[] = []
    for (let i = 0; i < 2; i++)
      few.push(String((await start(`few ${i}`, { fairness_key: 'few' }))['id']))
    const one = await worker()
    const order = await handedOut(one, 32)
    one.close()
    // In turns they would be the second and the fourth; each of the eight shards may have offered another job first.
    return few.every((id) => order.indexOf(id) < 12)
  })
  t.ok(fair)
})
