/**
 * Two gateways and two shard nodes: work that starts on one gateway continues on the other, and
 * nodes can leave and join under load.
 */

import t from 'tap'
import { assignShards, type Member } from '../../../nodes/host/cluster/assignment.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { ask, beat, jobOf, type Received, runOf, seen, start, story } from '../support/sockets.ts'

const s = await service({ BATON_NODE_ID: 'one' })
t.teardown(() => s.stop())
const other = await s.add({ BATON_NODE_ID: 'two', BATON_ROLES: 'gateway' })
const shards = await s.add({ BATON_NODE_ID: 'three', BATON_ROLES: 'shards' })
const [A, B] = [s.url, other.url ?? '']
const tokenOf = async (worker: Parameters<typeof seen>[0]) =>
  (await seen(worker, 'worker.registered'))['worker_session_token']

t.test('both shard nodes own shards', async (t) => {
  const members = ['one', 'three'].map((id): Member => ({ id, roles: ['shards'] }))
  const owners = [...assignShards(members, ['0.0', '0.1', '0.2', '0.3']).values()]
  t.strictSame(new Set(owners), new Set(['one', 'three']))
  // A shard that changes its owner forgets renewals of leases, and with them the gateways of moved
  // workers. The worker then gets a cancellation in the answer to its next heartbeat.
  await until(
    async () => shards.owned(),
    (owned) => owned.length === owners.filter((id) => id === 'three').length,
    'the shards of the second node',
  )
})

t.test('a job is claimed on one gateway, renewed and reported on the other', async (t) => {
  const first = await s.worker({ worker_instance_id: 'mover', action_names: ['move'] }, { url: A })
  const run = await start(s, 'move')
  const job = await first.job()
  const second = await s.worker(
    {
      worker_instance_id: 'mover',
      worker_session_token: await tokenOf(first),
      action_names: ['move'],
    },
    { url: B },
  )
  t.equal(await tokenOf(second), await tokenOf(first))
  t.match(await first.closed, { code: 4410 }, 'the older connection is closed by its own gateway')
  t.notOk((await beat(second, job))['cancel'])
  t.match(await second.report(job, { result: { on: 'B' } }), { duplicate: false })
  t.match(await runOf(s, run), { status: 'completed', result: { do: { on: 'B' } } })
  second.close()
})

t.test(
  'a worker on one gateway receives jobs of runs started on the other, and their cancellation',
  async (t) => {
    const worker = await s.worker({ action_names: ['far'] }, { url: B })
    for (let i = 0; i < 5; i++) {
      const claimed = ask(worker, { type: 'jobs.claim', available_slots: 1 }, 'jobs.claimed')
      const run = await s.ok(
        'run.start',
        { spec: { steps: [{ id: 'do', kind: 'action', config: { action_name: 'far' } }] } },
        { url: A },
      )
      const [job] = (await claimed)['jobs'] as unknown as Received[]
      t.equal(job?.['run_id'], run['id'])
      const cancel = worker.wait(
        (frame) => frame['type'] === 'job.cancel' && frame['job_id'] === job?.['id'],
        'job.cancel',
      )
      await s.ok('run.cancel', { id: run['id'] }, { url: A })
      await cancel
      if (job) await worker.report(job, { status: 'cancelled' })
      t.equal((await s.ok('run.get', { id: run['id'] }, { url: A }))['status'], 'cancelled')
    }
    worker.close()
  },
)

t.test('a cancellation reaches the gateway to which the worker has moved', async (t) => {
  const first = await s.worker({ worker_instance_id: 'nomad', action_names: ['roam'] }, { url: A })
  const run = await start(s, 'roam')
  const job = await first.job()
  const second = await s.worker(
    {
      worker_instance_id: 'nomad',
      worker_session_token: await tokenOf(first),
      action_names: ['roam'],
    },
    { url: B },
  )
  await beat(second, job)
  const cancel = second.wait((frame) => frame['type'] === 'job.cancel', 'job.cancel')
  await s.ok('run.cancel', { id: run['id'] })
  t.match(await cancel, { job_id: job['id'] })
  await second.report(job, { status: 'cancelled' })
  t.match(await jobOf(s, run), { status: 'cancelled' })
  second.close()
})

t.test('an operator drains a worker through the other gateway', async (t) => {
  const worker = await s.worker({ worker_instance_id: 'distant' }, { url: B })
  await s.ok('worker.drain', { worker_instance_id: 'distant' }, { url: A })
  t.ok(await seen(worker, 'worker.drain'))
  worker.close()
})

t.test(
  'a key that is revoked on one gateway is rejected by the next request to the other',
  async (t) => {
    for (let i = 0; i < 10; i++) {
      const principal = await s.ok('principal.create', {
        name: `reader ${i}`,
        role_ids: ['role_operator'],
      })
      const key = await s.ok(
        'key.create',
        { name: `key ${i}`, principal_id: principal['id'] },
        { url: A },
      )
      t.equal(
        (await s.call('run.list', {}, { url: B, key: String(key['key']) })).status,
        200,
        'the new key is valid at once',
      )
      await s.ok('key.revoke', { id: key['id'] }, { url: A })
      t.equal((await s.call('run.list', {}, { url: B, key: String(key['key']) })).status, 401)
    }
  },
)

t.test('a run is followed on one gateway while it is controlled on the other', async (t) => {
  const steps = ['one', 'two', 'three'].map((id) => ({
    id,
    kind: 'wait_for_event',
    config: { event_type: 'signal.go' },
  }))
  const run = await s.ok('run.start', { spec: { steps } }, { url: A })
  const followed = s.follow('run.events', { id: run['id'] }, () => false, { url: B })
  for (let i = 0; i < 3; i++) {
    await until(
      () => story(s, run, A),
      (types) => types.filter((type) => type === 'wait.opened').length === i + 1,
      'the wait',
    )
    const [open] = (
      (await s.ok('run.steps', { id: run['id'] }, { url: A }))['items'] as unknown as Received[]
    ).filter((step) => step['status'] === 'suspended')
    await s.ok(
      'run.signal',
      { id: run['id'], step_key: open?.['step_key'], result: { i } },
      { url: A },
    )
  }
  const frames = await followed
  const page = await s.ok('run.events', { id: run['id'], limit: 200 }, { url: A })
  t.strictSame(
    frames.map((frame) => frame.data),
    page['items'],
  )
  t.equal(frames.at(-1)?.event, 'run.completed')
})

t.test('owners send only entries of followed runs to other nodes', async (t) => {
  const nats = await connectNats({
    access: s.server.access,
    name: 'listener',
    role: 'gateway',
    log: silentLog,
  })
  t.teardown(() => nats.close())
  /** The ids of the runs whose entries are sent between nodes. */
  const sent = new Set<string>()
  nats.connection.subscribe(nats.space.subject('live.*.run.*'), {
    callback: (_, { subject }) => void sent.add(subject.split('.').at(-1) ?? ''),
  })
  await nats.connection.flush()
  const steps = [{ kind: 'wait_for_event', config: { event_type: 'signal.go' } }]
  const followed = await s.ok('run.start', { spec: { steps } }, { url: A })
  const frames = s.follow('run.events', { id: followed['id'] }, () => false, { url: B })
  /** Starts a run without followers, which ends at once, and returns its id. */
  const alone = async () => {
    const checks = [{ name: 'sum', kind: 'expr', expr: '1 + 1 == 2' }]
    const ended = { spec: { steps: [{ kind: 'check', config: { checks } }] } }
    const { id } = await s.ok('run.start', ended, { url: A })
    t.match(await s.ok('run.get', { id }, { url: B }), { status: 'completed' })
    return String(id)
  }
  // All entries are sent until an owner has the reports of all nodes, and for 2 s after a node has
  // joined. Each owner has half of the shards, so 20 runs are in shards of both. A run whose hash
  // equals that of a followed run is sent, too: 1 of 1,024.
  await until(
    async () => {
      const ids: string[] = []
      for (let i = 0; i < 20; i++) ids.push(await alone())
      await nats.connection.flush()
      return ids.filter((id) => sent.has(id)).length
    },
    (count) => count < 3,
    'runs without followers that are not sent',
  )
  const [open] = (await s.ok('run.steps', { id: followed['id'] }, { url: A }))[
    'items'
  ] as unknown as Received[]
  await s.ok('run.signal', { id: followed['id'], step_key: open?.['step_key'] }, { url: A })
  t.equal((await frames).at(-1)?.event, 'run.completed')
  await until(
    async () => sent.has(String(followed['id'])),
    (was) => was,
    'the followed run',
  )
})

t.test(
  'a gateway that stops answers its open requests, and its workers continue on another',
  async (t) => {
    const leaving = await s.add({ BATON_NODE_ID: 'leaving', BATON_ROLES: 'gateway' })
    const first = await s.worker(
      { worker_instance_id: 'loyal', action_names: ['stay'] },
      { url: leaving.url ?? '' },
    )
    const run = await start(s, 'stay')
    const job = await first.job()
    const held = ask(first, { type: 'jobs.claim', available_slots: 1 }, 'jobs.claimed')
    const asked = Array.from({ length: 30 }, () =>
      s.call(
        'run.start',
        { spec: { steps: [{ kind: 'sleep', config: { duration: '1h' } }] } },
        { url: leaving.url ?? '' },
      ),
    )
    let serving = true
    const meanwhile = (async () => {
      const statuses = new Set<number>()
      while (serving) statuses.add((await s.call('run.list', {}, { url: B })).status)
      return [...statuses]
    })()
    await Promise.race(asked)
    await leaving.stop()
    t.strictSame(
      (await Promise.all(asked)).map(({ status }) => status),
      asked.map(() => 202),
    )
    t.strictSame((await held)['jobs'], [], 'an open claim is answered')
    t.match(await first.closed, { code: 1012 })
    const second = await s.worker(
      {
        worker_instance_id: 'loyal',
        worker_session_token: await tokenOf(first),
        action_names: ['stay'],
      },
      { url: B },
    )
    t.match(await second.report(job), { duplicate: false })
    t.equal((await runOf(s, run))['status'], 'completed')
    serving = false
    t.strictSame(await meanwhile, [200])
    second.close()
  },
)

t.test('waiting jobs are offered by the next owner of their shard', async (t) => {
  const passing = await s.add({ BATON_NODE_ID: 'passing', BATON_ROLES: 'shards' })
  const members = ['one', 'three', 'passing'].map((id): Member => ({ id, roles: ['shards'] }))
  t.ok([...assignShards(members, ['0.0', '0.1', '0.2', '0.3']).values()].includes('passing'))
  await until(
    async () => passing.owned(),
    (owned) => owned.length > 0,
    'a shard of the new node',
  )
  const runs = await Promise.all(Array.from({ length: 16 }, () => start(s, 'patience')))
  await passing.stop()
  const worker = await s.worker({ action_names: ['patience'], concurrency_limit: 1 })
  for (let i = 0; i < runs.length; i++) await worker.report(await worker.job())
  for (const run of runs) t.equal((await runOf(s, run))['status'], 'completed')
  worker.close()
})

t.test(
  'no request fails while a shard node stops under load, and every run completes',
  async (t) => {
    const total = 200
    const workers = await Promise.all(
      [A, B].map((url) => s.worker({ action_names: ['load'], concurrency_limit: 20 }, { url })),
    )
    let done = 0
    const work = Promise.all(
      workers.map(async (worker) => {
        while (done < total) {
          const claimed = ask(worker, { type: 'jobs.claim', available_slots: 20 }, 'jobs.claimed')
          const jobs = await Promise.race([
            claimed,
            until(
              async () => done,
              (count) => count >= total,
              'the end',
            ).catch(() => 0),
          ])
          for (const job of typeof jobs === 'number'
            ? []
            : (jobs['jobs'] as unknown as Received[])) {
            await worker.report(job)
            done++
          }
        }
      }),
    )
    const runs: Received[] = []
    const load = Promise.all(
      Array.from({ length: 20 }, async (_, k) => {
        for (let i = 0; i < total / 20; i++) {
          runs.push(
            await s.ok(
              'run.start',
              {
                spec: {
                  steps: [
                    {
                      id: 'do',
                      kind: 'action',
                      retry: { max_attempts: 2 },
                      config: { action_name: 'load' },
                    },
                  ],
                },
              },
              { url: (i + k) % 2 ? A : B },
            ),
          )
          if (runs.length === total / 4) stopped = shards.stop()
        }
      }),
    )
    let stopped: Promise<void> | undefined
    await load
    await stopped
    await work
    const ended = await until(
      () =>
        Promise.all(runs.map(async (run) => (await runOf(s, run))['status'] as unknown as string)),
      (all) => all.every((status) => status === 'completed'),
      'all runs completed',
      200,
    )
    t.equal(ended.length, total)
    for (const run of runs.filter((_, i) => i % 20 === 0))
      t.equal((await story(s, run)).filter((type) => type === 'run.completed').length, 1)
    for (const worker of workers) worker.close()
  },
)

t.test('a view node that is added later returns the same records', async (t) => {
  // The list of workers is not compared, because disconnected workers disappear from it over time.
  const look = async (): Promise<string> =>
    JSON.stringify([
      (await s.ok('run.list', { limit: 200 }, { url: B }))['items'],
      (await s.ok('audit.list', { limit: 200 }, { url: B }))['items'],
    ])
  const before = await look()
  const views = await s.add({ BATON_NODE_ID: 'views', BATON_ROLES: 'views' })
  const answers = new Set(await Promise.all(Array.from({ length: 40 }, look)))
  t.strictSame([...answers], [before], 'both view nodes return the same')
  const run = await start(s, 'later')
  for (let i = 0; i < 10; i++)
    t.match(
      (await s.ok('run.list', { limit: 1 }, { url: B }))['items'],
      [{ id: run['id'] }],
      'every response contains the acknowledged run',
    )
  await views.stop()
  t.match((await s.ok('run.list', { limit: 1 }, { url: B }))['items'], [{ id: run['id'] }])
})
