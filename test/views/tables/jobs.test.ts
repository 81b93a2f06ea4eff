/** Views of jobs and workers: records, leases, and the reasons why jobs wait. */
import t from 'tap'
import type { Job, QueueEvent } from '../../../protocol/jobs/rows.ts'
import { mayClaim } from '../../../views/tables/runs/waiting.ts'
import { View } from '../../../views/view.ts'
import {
  ask,
  at,
  claimed,
  type Draft,
  each,
  ended,
  event,
  Journal,
  jobBorn,
  queue,
  queued,
  registered,
  run,
  started,
  T0,
  worker,
} from '../support/journal.ts'

type Queued = Extract<QueueEvent, { type: 'job.queued' }>
const open = () => {
  const journal = new Journal()
  const clock = { seconds: 0 }
  const view = View.open(':memory:', { now: () => T0 + clock.seconds * 1000 })
  return {
    view,
    clock,
    commit: (...drafts: readonly Draft[]) => view.apply([journal.commit(0, ...drafts)]),
  }
}
const jobs = (view: View, input: object = {}, project?: string) =>
  ask<{ items: Job[]; position?: (string | number)[] }>(
    view,
    'run.jobs',
    { id: 'run_1', include: ['waiting_on'], ...input },
    project,
  )
const requeued = (id: string) => ({
  type: 'job.requeued' as const,
  id,
  reason: 'loss',
  counted: 'loss' as const,
  job: { status: 'queued' as const, lease_expires_at: null, worker_instance_id: null },
})

t.test('jobs of a run are listed oldest first, in pages', (t) => {
  const { view, commit } = open()
  commit(started('run_1', 0), started('run_2', 0))
  commit(
    queue(
      ['job_c', 'job_a', 'job_b', 'job_d'].map((id, i) =>
        queued(jobBorn(id, 'run_1', i < 3 ? 1 : 0)),
      ),
    ),
    queue([
      queued(jobBorn('job_x', 'run_2', 0)),
      queued(jobBorn('job_y', 'run_1', 0, { run_id: undefined as never })),
    ]),
  )
  t.strictSame(each(jobs(view) as never, 'id'), ['job_d', 'job_a', 'job_b', 'job_c'])
  const first = jobs(view, { limit: 3 })
  t.strictSame(first.position, [T0 + 1000, 'job_b'])
  t.strictSame(each(jobs(view, { limit: 3, after: first.position }) as never, 'id'), ['job_c'])
  t.match(jobs(view, {}, 'prj_b'), { refused: 'not_found' })
  t.end()
})

t.test('a job follows its patches, and its result comes from the run', (t) => {
  const { view, commit } = open()
  const born = jobBorn('job_1', 'run_1', 1)
  commit(started('run_1', 0), queue([queued(born)]))
  commit(queue([claimed('job_1', 'wst_w1', 'w1', 60)]))
  commit(queue([{ type: 'lease.renewed', id: 'job_1', expires_at: T0 + 90_000, gateway: 'g1' }]))
  t.match(jobs(view).items[0], {
    status: 'claimed',
    worker_instance_id: 'w1',
    lease_expires_at: at(90),
  })
  commit(
    queue([ended('job_1', 'completed', { completed_at: at(5) })]),
    run('run_1', [
      event('action.completed', {
        payload: { action: 'send_mail', job_id: 'job_1', result: { ok: true } },
      }),
    ]),
  )
  t.strictSame(jobs(view).items, [
    {
      ...born,
      status: 'completed',
      claim_attempt: 1,
      worker_instance_id: 'w1',
      completed_at: at(5),
      result: { ok: true },
    },
  ])
  commit(
    run('run_1', [event('action.completed', { payload: { job_id: 'job_9', result: {} } })], {
      project: 'prj_b',
    }),
    queue([ended('job_8', 'failed')]),
  )
  t.equal(jobs(view).items.length, 1, 'unknown jobs are ignored')
  t.end()
})

t.test('a worker session holds its claimed jobs until they end or are requeued', (t) => {
  const { view, commit } = open()
  const held = (session: string, project?: string) =>
    ask<{ items: { job_id: string }[] }>(view, 'leases', { session }, project).items
  commit(
    started('run_1', 0),
    queue([
      queued(jobBorn('job_1', 'run_1', 1)),
      queued(jobBorn('job_2', 'run_1', 2, { queue: 'slow' })),
    ]),
  )
  commit(queue([claimed('job_1', 's1', 'w1', 60), claimed('job_2', 's1', 'w1', 60)]))
  t.strictSame(held('s1'), [
    { job_id: 'job_1', queue: 'default' },
    { job_id: 'job_2', queue: 'slow' },
  ])
  t.strictSame(held('s1', 'prj_b'), [])
  commit(queue([requeued('job_1')]))
  commit(queue([claimed('job_1', 's2', 'w2', 60), ended('job_2', 'failed')]))
  t.strictSame([held('s1'), held('s2')], [[], [{ job_id: 'job_1', queue: 'default' }]])
  t.end()
})

t.test('which workers may take a job', (t) => {
  const job = jobBorn('job_1', 'run_1', 0, { queue: 'q', action_name: 'a' })
  const any = { queues: [], action_names: [], models: [] }
  const model = { provider: 'p', model: 'm' }
  const generation = { ...job, kind: 'llm_generation' as const, ...model }
  t.ok(mayClaim(any, job))
  t.ok(mayClaim({ ...any, queues: ['x', 'q'], action_names: ['a'] }, job))
  t.notOk(mayClaim({ ...any, queues: ['x'] }, job))
  t.notOk(mayClaim({ ...any, action_names: ['b'] }, job))
  t.notOk(mayClaim({ ...any, models: [model] }, job), 'a worker of models only takes no actions')
  t.ok(mayClaim({ ...any, models: [model], action_names: ['a'] }, job))
  t.ok(
    mayClaim({ ...any, queues: ['x'], models: [model] }, generation),
    'queues are not part of the model path',
  )
  t.notOk(mayClaim(any, generation))
  t.notOk(mayClaim(any, { ...job, environment_id: 'env_1' }))
  t.ok(mayClaim({ ...any, environment_id: 'env_1' }, { ...job, environment_id: 'env_1' }))
  t.ok(mayClaim({ ...any, environment_id: 'env_1' }, job))
  t.end()
})

t.test('the reason why a job waits depends on the connected workers', (t) => {
  const { view, commit, clock } = open()
  const why = () => jobs(view).items[0]?.waiting_on
  commit(
    started('run_1', 0),
    queue([queued(jobBorn('job_1', 'run_1', 1, { queue: 'q', action_name: 'a' }))]),
  )
  t.strictSame(why(), {
    kind: 'worker',
    cause: 'no_worker',
    reason: 'no worker for queue "q" takes action "a"',
    job_id: 'job_1',
    queue: 'q',
    action_name: 'a',
  })
  commit(
    registered('other', { queues: ['x'] }),
    registered('w1', { queues: ['q'] }),
    registered('b1', {}, { project: 'prj_b' }),
  )
  t.match(why(), {
    cause: 'slot',
    able_workers: 1,
    reason: 'waiting for a free slot: 1 worker can take it',
  })
  for (const type of [
    'worker.draining',
    'worker.drain_requested',
    'worker.disconnected',
    'worker.stale',
  ]) {
    commit(worker('w1', [{ type, instance: 'w1', at: T0 } as never]))
    t.match(why(), { reason: 'no worker for queue "q" takes action "a"' }, type)
    commit(
      worker('w1', [{ type: 'worker.drain_cleared', instance: 'w1', at: T0 } as never]),
      registered('w1', { queues: ['q'] }),
    )
    t.match(why(), { reason: 'waiting for a free slot: 1 worker can take it' })
  }
  commit(queue([claimed('job_1', 'wst_w1', 'w1', 60)]))
  t.strictSame(why(), {
    kind: 'lease',
    reason: `worker w1 works on it; its lease lasts until ${at(60)} unless renewed`,
    job_id: 'job_1',
    worker_instance_id: 'w1',
    until: at(60),
  })
  clock.seconds = 61
  t.strictSame(why(), {
    kind: 'lease',
    reason: 'worker w1 works on it; its lease is being renewed',
    job_id: 'job_1',
    worker_instance_id: 'w1',
  })
  commit(queue([ended('job_1', 'completed')]))
  t.equal(why(), undefined)
  t.end()
})

t.test('jobs without a matching worker state what they lack', (t) => {
  const { view, commit } = open()
  commit(
    started('run_1', 0),
    queue([
      queued(jobBorn('job_1', 'run_1', 1, { executor_kind: 'server_worker' })),
      queued(jobBorn('job_2', 'run_1', 2, { kind: 'llm_generation', provider: 'p', model: 'm' })),
      queued(jobBorn('job_3', 'run_1', 3, { environment_id: 'env_1' })),
    ]),
  )
  t.strictSame(
    jobs(view).items.map(({ waiting_on }) => [waiting_on?.cause, waiting_on?.reason]),
    [
      ['executor', 'waiting for a free slot of an executor of the service'],
      ['no_worker', 'no worker takes model "p/m"'],
      [
        'no_worker',
        'no worker for queue "default" in environment "env_1" takes action "send_mail"',
      ],
    ],
  )
  t.end()
})

t.test(
  'a job for workers only does not wait for the service, and its record omits the flag',
  (t) => {
    const { view, commit } = open()
    const born = (id: string, seconds: number) => queued(jobBorn(id, 'run_1', seconds)) as Queued
    const only = born('job_2', 2)
    commit(
      {
        kind: 'project',
        project: 'prj_a',
        id: 'prj_a',
        events: [
          {
            type: 'action.created',
            id: 'act_1',
            action: { id: 'act_1', name: 'send_mail', endpoint_kind: 'http', created_at: at(0) },
          } as never,
        ],
      },
      started('run_1', 0),
      queue([born('job_1', 1), { ...only, header: { ...only.header, workers_only: true } }]),
    )
    const { items } = jobs(view)
    t.strictSame(
      items.map(({ waiting_on }) => waiting_on?.reason),
      [
        'waiting for a free slot of an executor of the service',
        'no worker for queue "default" takes action "send_mail"',
      ],
    )
    t.notOk(items.some((item) => 'workers_only' in item))
    t.end()
  },
)

t.test('a job says that it waits for its environment until it is admitted', (t) => {
  const { view, commit } = open()
  const born = queued({
    ...jobBorn('job_1', 'run_1', 1),
    environment_id: 'env_1',
    action_name: 'environment.bash',
  }) as Queued
  const environment = { holder: { kind: 'run', id: 'run_1' } } as const
  const waiting = () => jobs(view).items[0]?.waiting_on
  commit(started('run_1', 0), queue([{ ...born, header: { ...born.header, environment } }]))
  t.match(waiting(), {
    cause: 'environment',
    environment_id: 'env_1',
    reason: /^waiting until its environment env_1 admits it/,
  })
  t.notOk('gated' in (jobs(view).items[0] ?? {}), 'the flag is no part of the record')
  commit(queue([{ type: 'job.admitted', id: 'job_1', fence: 1, job: { updated_at: at(2) } }]))
  t.match(waiting(), {
    cause: 'no_worker',
    reason: /^no worker for queue "default" in environment "env_1"/,
  })
  t.end()
})

t.test('workers are listed with their filters and their leases', (t) => {
  const { view, commit, clock } = open()
  const list = (project?: string) => ask(view, 'worker.list', {}, project).items
  const states = () => list().map(({ worker_instance_id, state }) => [worker_instance_id, state])
  commit(
    registered('w2'),
    registered('w1', {
      name: 'One',
      queues: ['q'],
      environment_id: 'env_1',
      capabilities: ['gpu'],
    }),
    registered('b1', {}, { project: 'prj_b' }),
  )
  commit(
    started('run_1', 0),
    queue([queued(jobBorn('job_1', 'run_1', 1)), claimed('job_1', 'wst_w1', 'w1', 60)]),
  )
  t.strictSame(list()[0], {
    worker_instance_id: 'w1',
    name: 'One',
    state: 'online',
    concurrency_limit: 4,
    leased: 1,
    queues: ['q'],
    action_names: [],
    models: [],
    capabilities: ['gpu'],
    environment_id: 'env_1',
    principal_id: 'svc_1',
    connected_at: at(0),
    last_seen_at: at(0),
  })
  t.strictSame(
    list('prj_b').map(({ worker_instance_id }) => worker_instance_id),
    ['b1'],
  )
  const say = (type: string, seconds: number) =>
    commit(worker('w1', [{ type, instance: 'w1', at: T0 + seconds * 1000, leases: 0 } as never]))
  say('worker.drain_requested', 5)
  t.strictSame(states(), [
    ['w1', 'draining'],
    ['w2', 'online'],
  ])
  say('worker.disconnected', 10)
  t.match(list()[0], { state: 'stale', last_seen_at: at(10) }, 'it left with a lease')
  commit(queue([ended('job_1', 'completed', { completed_at: at(11) })]))
  t.match(list()[0], { state: 'ended', leased: 0 }, 'drained, disconnected and without a lease')
  clock.seconds = 99
  t.strictSame(states(), [
    ['w1', 'ended'],
    ['w2', 'online'],
  ])
  clock.seconds = 100
  t.strictSame(states(), [['w2', 'online']], 'ninety seconds later it is forgotten')
  say('worker.drain_cleared', 101)
  commit(registered('w1', { session: 'wst_new', connected_at: T0 + 101_000 }, { at: 101 }))
  t.match(list()[0], {
    worker_instance_id: 'w1',
    state: 'online',
    leased: 0,
    connected_at: at(101),
  })
  say('worker.stale', 102)
  t.match(states()[0], ['w1', 'stale'])
  say('worker.seen', 103)
  t.match(list()[0], { state: 'online', last_seen_at: at(103) })
  t.end()
})
