/**
 * Which worker receives which job, and in which order. The order across shards is in
 * `queue-order.test.ts`.
 */

import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { claim, hasty, jobOf, type Received, runOf, start } from '../support/sockets.ts'

// One shard, because the order of a queue is exact only within a shard.
const s = await service({ ...hasty, BATON_SHARDS: '1', BATON_WORKER_LEASE: '20s' })
t.teardown(() => s.stop())

/** Starts runs of an action sequentially. Returns their names by run id. */
async function line(
  action: string,
  wanted: readonly (readonly [name: string, more: Record<string, unknown>])[],
): Promise<Map<unknown, string>> {
  const names = new Map<unknown, string>()
  for (const [name, more] of wanted)
    names.set((await start(s, action, { attempts: 3, start: more }))['id'], name)
  return names
}
/**
 * Claims and reports one job at a time until the job of every run has been claimed. Returns the
 * names of the runs in the order of their jobs.
 */
async function order(worker: TestWorker, names: ReadonlyMap<unknown, string>): Promise<string[]> {
  const given: string[] = []
  while (given.length < names.size) {
    const job = await worker.job()
    given.push(names.get(job['run_id']) ?? 'another')
    await worker.report(job)
  }
  return given
}
const alone = (action: string, more: Record<string, unknown> = {}) =>
  s.worker({ action_names: [action], concurrency_limit: 1, ...more })

t.test('jobs are handed out by priority, then by age', async (t) => {
  const names = await line('rank', [
    ['a', {}],
    ['b', { priority: 5 }],
    ['c', { priority: -3 }],
    ['d', { priority: 5 }],
    ['e', { priority: 0 }],
    ['f', { priority: 1000 }],
  ])
  const worker = await alone('rank')
  t.strictSame(await order(worker, names), ['f', 'b', 'd', 'a', 'e', 'c'])
  worker.close()
})

t.test(
  'fairness keys take turns of one job each; within a key the oldest job goes first',
  async (t) => {
    const names = await line('share', [
      ...['a1', 'a2', 'a3', 'a4'].map((name) => [name, { fairness_key: 'a' }] as const),
      ['b1', { fairness_key: 'b' }],
      ['b2', { fairness_key: 'b' }],
      ['c1', { fairness_key: 'c' }],
      ['n1', {}],
    ])
    const worker = await alone('share')
    t.strictSame(await order(worker, names), ['a1', 'b1', 'c1', 'n1', 'a2', 'b2', 'a3', 'a4'])
    worker.close()
  },
)

t.test('a retried job keeps its place in the queue', async (t) => {
  const names = await line('retry', [
    ['first', {}],
    ['second', {}],
  ])
  const worker = await alone('retry')
  await worker.report(await worker.job(), { status: 'failed', error_type: 'Error' })
  t.strictSame(await order(worker, names), ['first', 'second'])
  worker.close()
})

t.test('a worker receives only jobs that match its queues, actions and models', async (t) => {
  const mail = await start(s, 'send', { start: { queue: 'mail' } })
  await start(s, 'send', { start: { queue: 'other' } })
  const clerk = await s.worker({ queues: ['mail'] })
  t.match(
    await claim(clerk),
    [{ run_id: mail['id'], queue: 'mail' }],
    'a worker with one queue and any action',
  )
  const scout = await s.worker({ queues: ['mail'], action_names: ['elsewhere'] })
  const model = await s.worker({ models: [{ provider: 'local', model: 'small-1' }] })
  const [nothing, none] = await Promise.all([claim(scout), claim(model)])
  t.strictSame(nothing, [], 'the queue matches, the action does not')
  t.strictSame(none, [], 'a worker that lists only models gets no actions')
  const any = await s.worker()
  t.match(await claim(any), [{ queue: 'other' }], 'a worker without filters gets every job')
  for (const worker of [clerk, scout, model, any]) worker.close()
})

t.test(
  'a job pinned to an environment goes to its worker, which may also receive other jobs',
  async (t) => {
    const pinned = await start(s, 'build', { environment_id: 'env_7' })
    const [outside, elsewhere] = [
      await alone('build'),
      await alone('build', { environment_id: 'env_8' }),
    ]
    t.strictSame(await Promise.all([claim(outside), claim(elsewhere)]), [[], []])
    const inside = await s.worker({ action_names: ['build'], environment_id: 'env_7' })
    t.match(await claim(inside), [{ run_id: pinned['id'], environment_id: 'env_7' }])
    const free = await start(s, 'build')
    t.match(await claim(inside, { queues: ['default'] }), [{ run_id: free['id'] }])
    for (const worker of [outside, elsewhere, inside]) worker.close()
  },
)

t.test(
  'no worker gets more jobs than its concurrency limit, and every job is handed out once',
  async (t) => {
    const limits = [1, 3, 5]
    const runs = await Promise.all(Array.from({ length: 120 }, () => start(s, 'many')))
    const most = limits.map(() => 0)
    const given: unknown[] = []
    const workers = await Promise.all(
      limits.map((concurrency_limit) => s.worker({ action_names: ['many'], concurrency_limit })),
    )
    await Promise.all(
      workers.map(async (worker, i) => {
        let held = 0
        const work = async (job: Received) => {
          await new Promise((later) => setTimeout(later, 5))
          held--
          await worker.report(job)
        }
        const reports: Promise<void>[] = []
        while (given.length < runs.length) {
          const jobs = await claim(worker, { available_slots: 100 })
          held += jobs.length
          most[i] = Math.max(most[i] ?? 0, held)
          for (const job of jobs) {
            given.push(job['id'])
            reports.push(work(job))
          }
        }
        await Promise.all(reports)
      }),
    )
    t.equal(new Set(given).size, runs.length)
    t.equal(given.length, runs.length)
    t.strictSame(most, limits, 'each worker was used up to its limit')
    for (const run of runs.slice(0, 10)) t.equal((await runOf(s, run))['status'], 'completed')
    for (const worker of workers) worker.close()
  },
)

t.test('a job, its step and its run report what they wait for', async (t) => {
  const run = await start(s, 'explain')
  const said = async (): Promise<unknown[]> => {
    const step = (
      (await s.ok('run.steps', { id: run['id'], include: ['waiting_on'] }))[
        'items'
      ] as unknown as Received[]
    )[0]
    const { waiting_on } = await s.ok('run.get', { id: run['id'], include: ['waiting_on'] })
    return [(await jobOf(s, run))['waiting_on'], step?.['waiting_on'], waiting_on]
  }
  const all = async (waiting: Record<string, unknown>, what: string) => {
    const [job, step, whole] = await said()
    t.match(job, waiting, `${what}: the job`)
    t.match(step, { ...waiting, step_key: 'do' }, `${what}: the step`)
    t.match(whole, { ...waiting, step_key: 'do' }, `${what}: the run`)
  }
  await all(
    {
      kind: 'worker',
      reason: /no worker for queue "default" takes action "explain"/,
      queue: 'default',
      action_name: 'explain',
    },
    'no worker',
  )
  const others = await s.worker({ action_names: ['something else'] })
  await all({ kind: 'worker', reason: /no worker/ }, 'a worker for other things')
  const worker = await s.worker({
    action_names: ['explain'],
    worker_instance_id: 'w-explain',
    concurrency_limit: 1,
  })
  await all({ kind: 'worker', reason: /free slot.*1 worker/ }, 'a worker that has not claimed')
  const job = await worker.job()
  await all(
    {
      kind: 'lease',
      reason: /w-explain/,
      worker_instance_id: 'w-explain',
      job_id: job['id'],
      until: /^\d{4}-/,
    },
    'a lease',
  )
  await worker.report(job)
  t.strictSame(await said(), [undefined, undefined, undefined], 'no reason after the end')
  for (const end of [others, worker]) end.close()
})

t.test(
  'draining and disconnected workers are not counted as workers that could take a job',
  async (t) => {
    const run = await start(s, 'leaving')
    const reason = async (): Promise<string> =>
      ((await jobOf(s, run))['waiting_on'] as unknown as { reason: string }).reason
    const [first, second] = [await alone('leaving'), await alone('leaving')]
    t.match(await reason(), /2 workers/)
    first.send({ type: 'worker.draining' })
    await until(reason, (text) => text.includes('1 worker can'), 'one left')
    second.close()
    await until(reason, (text) => text.startsWith('no worker'), 'none left')
    first.close()
  },
)
