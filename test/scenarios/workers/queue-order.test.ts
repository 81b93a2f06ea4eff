/** The order in which the jobs of a queue are offered, across all shards. */
import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import type { Found } from '../support/given.ts'

const s = await service({ BATON_SHARDS: '8' })
t.teardown(() => s.stop())

const start = (name: string, more: Record<string, unknown> = {}): Promise<Found> =>
  s.ok('run.start', {
    spec: { steps: [{ id: 'only', kind: 'action', config: { action_name: 'work' } }] },
    input: { name },
    ...more,
  })
/** Claims and reports `count` jobs, one at a time. Returns the ids of their runs, in order. */
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
 * Whether any of `most` attempts results in the expected order. A single attempt may fail on a busy
 * machine, because a shard may answer too late for its jobs to be compared with the others. If
 * there were no order across shards, hardly any attempt would succeed.
 */
async function eventually(attempt: () => Promise<boolean>, most = 8): Promise<boolean> {
  for (let n = 0; n < most; n++) if (await attempt()) return true
  return false
}
const worker = () => s.worker({ action_names: ['work'], concurrency_limit: 1 })

t.test('the oldest job goes first, over all shards', async (t) => {
  const inOrder = await eventually(async () => {
    const ids: string[] = []
    for (let i = 0; i < 6; i++) {
      ids.push(String((await start(`${i}`))['id']))
      // Jobs whose ages differ by up to 100 ms may be offered in either order.
      await new Promise((next) => setTimeout(next, 200))
    }
    const one = await worker()
    const order = await handedOut(one, 6)
    one.close()
    return order.join() === ids.join()
  })
  t.ok(inOrder)
})

t.test('jobs of a higher priority go first, over all shards', async (t) => {
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

const jobsOf = { a: 60, b: 12, c: 3 }
/**
 * Starts jobs of three fairness keys across all shards. Returns the keys, one letter per job, in
 * the order in which one worker receives the jobs.
 */
async function turns(more: Record<string, unknown> = {}): Promise<string> {
  const keys = new Map<string, string>()
  for (const [fairness_key, jobs] of Object.entries(jobsOf))
    await Promise.all(
      Array.from({ length: jobs }, async (_, i) => {
        const run = await start(`${fairness_key} ${i}`, {
          fairness_key,
          ...(fairness_key === 'b' && i < 2 && more),
        })
        keys.set(String(run['id']), fairness_key)
      }),
    )
  const one = await worker()
  const order = await handedOut(one, 75)
  one.close()
  return order.map((id) => keys.get(id)).join('')
}
/**
 * Whether, at every point, the keys that still had waiting jobs had been served equally often, to
 * within one job.
 */
function alternates(order: string): boolean {
  const served = { a: 0, b: 0, c: 0 }
  for (const key of order) {
    served[key as keyof typeof served]++
    const waiting = Object.entries(served).filter(
      ([name, count]) => count < [...order].filter((one) => one === name).length,
    )
    const counts = waiting.map(([, count]) => count)
    if (Math.max(...counts) - Math.min(...counts) > 1) return false
  }
  return true
}

t.test('fairness keys take turns over all shards, however many jobs each has', async (t) => {
  t.ok(await eventually(async () => alternates(await turns())))
})

t.test('fairness keys take turns within a priority', async (t) => {
  const fair = await eventually(async () => {
    const order = await turns({ priority: 1 })
    // The two jobs with a higher priority, which are both of key b, come first. They count as turns
    // of b, so the other keys are served next.
    return order.startsWith('bb') && !/aa|bb|cc/.test(order.slice(2, 24))
  })
  t.ok(fair)
})

t.test('fairness keys take turns over the shards of three nodes', async (t) => {
  await s.add()
  await s.add()
  // Shards move to the new nodes while jobs are offered. Three nodes share this machine, so an
  // offer may arrive after the 50 ms for which a gateway holds the other offers. Its job then gets
  // the next turn.
  const fair = await eventually(async () => {
    const order = (await turns()).slice(0, 40)
    return order.split('b').length > 9 && order.split('c').length > 3
  }, 24)
  t.ok(fair)
})
