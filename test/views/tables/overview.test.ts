/**
 * The overview of a project and its queues. Invariants: the counters equal the counts from a scan
 * of all events, and a rebuilt view has the same counters, however its entries were batched.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import type { Queue } from '../../../protocol/jobs/queue-rows.ts'
import { type Overview, stepOf } from '../../../protocol/overview/rows.ts'
import { View } from '../../../views/view.ts'
import {
  ask,
  at,
  claimed,
  type Draft,
  ended,
  event,
  Journal,
  jobBorn,
  moved,
  queue,
  queued,
  registered,
  run,
  started,
  T0,
  worker,
} from '../support/journal.ts'

const ada = { id: 'ada', admin: true, names: ['ada', 'role:Viewer'] }
const overviewOf = (view: View, minutes?: number, viewer: object = ada, project?: string) =>
  ask<Overview>(view, 'overview.get', { viewer, ...(minutes && { minutes }) } as never, project)
const viewAt = (seconds: number) => View.open(':memory:', { now: () => T0 + seconds * 1000 })
const applied = (view: View, ...drafts: readonly Draft[]): View => {
  const journal = new Journal()
  for (const draft of drafts) view.apply([journal.commit(0, draft)])
  return view
}
const failed = (id: string, error_type: string, step: string, seconds: number): Draft =>
  run(
    id,
    [
      event('run.failed', {
        step,
        run: { status: 'failed', error_type, completed_at: at(seconds) },
        payload: { status: 'failed', error_type, step },
      }),
    ],
    { at: seconds },
  )

t.test('runs by status, a series by minute, and failures with their steps', (t) => {
  const view = applied(
    viewAt(150),
    started('run_1', 0, { definition_id: 'wfd_1' }),
    started('run_2', 1),
    started('run_3', 2, { definition_id: 'wfd_1' }),
    started('run_4', 70),
    started('run_b', 1, {}, { project: 'prj_b' }),
    moved('run_1', 'running', { started_at: at(0) }, { at: 0 }),
    moved('run_3', 'running', { started_at: at(4) }, { at: 4 }),
    moved('run_1', 'completed', { completed_at: at(1) }, { at: 1 }),
    failed('run_3', 'boom', 'mail', 60),
    failed('run_2', 'boom', 'pay', 61),
    failed('run_4', 'boom', 'pay', 71),
    moved('run_4', 'queued', {}, { at: 75 }),
    failed('run_4', 'boom', 'pay', 130),
    started('run_5', 140),
  )
  const found = overviewOf(view, 4)
  t.match(found, { minutes: 4, step_seconds: 60, generated_at: at(150) })
  t.strictSame(found.runs, {
    queued: 1,
    running: 0,
    suspended: 0,
    completed: 1,
    failed: 3,
    cancelled: 0,
  })
  t.match(found.period, { started: 5, completed: 1, failed: 4, cancelled: 0 })
  t.strictSame(
    found.series.map(({ started, completed, failed }) => [started, completed, failed]),
    [
      [0, 0, 0],
      [3, 1, 0],
      [1, 0, 3],
      [1, 0, 1],
    ],
    'the first three runs begin in the minute of T0, 54 s before the next one',
  )
  t.ok(Math.abs((found.series[1]?.p50_ms ?? 0) - 1000) < 100, 'within 10 %')
  t.notOk('p50_ms' in (found.series[0] ?? {}), 'nothing ended')
  t.strictSame(found.failures, [
    {
      error_type: 'boom',
      step_key: 'pay',
      count: 3,
      last_run_id: 'run_4',
      last_failed_at: at(130),
    },
    {
      error_type: 'boom',
      step_key: 'mail',
      definition_id: 'wfd_1',
      count: 1,
      last_run_id: 'run_3',
      last_failed_at: at(60),
    },
  ])
  t.match(overviewOf(view, 60, ada, 'prj_b').runs, { queued: 1, failed: 0 })
  t.match(overviewOf(view, 60, ada, 'prj_c'), { runs: { queued: 0 }, failures: [] })
  view.close()
  t.end()
})

t.test('longer periods have longer steps, and old rows are deleted', (t) => {
  const day = 86_400
  const view = viewAt(40 * day)
  const journal = new Journal()
  const commit = (...drafts: readonly Draft[]) => view.apply([journal.commit(0, ...drafts)])
  for (let i = 0; i <= 40; i++) {
    commit(started(`run_${i}`, i * day))
    view.save()
  }
  t.match(overviewOf(view, 7 * 1440), { step_seconds: 3600, period: { started: 7 } })
  t.match(overviewOf(view, 2880), { step_seconds: 900, period: { started: 2 } })
  t.match(overviewOf(view, 720), { step_seconds: 300, period: { started: 1 } })
  for (const minutes of [1, 7, 180, 181, 720, 721, 2880, 2881, 10_080]) {
    const { series, step_seconds } = overviewOf(view, minutes)
    t.equal(series.length, Math.ceil(minutes / stepOf(minutes)))
    t.ok(series.length <= 192)
    t.ok(
      series.every(
        ({ at }, i) => Date.parse(at) === Date.parse(series[0]?.at ?? '') + i * step_seconds * 1000,
      ),
    )
  }
  const rows = (period: number) =>
    view.read((store) =>
      store.one<{ n: number }>('SELECT count(*) AS n FROM run_flow WHERE period = ?', period),
    )?.n
  t.equal(rows(60), 31, '30 days and the present hour')
  t.equal(rows(1), 31)
  t.match(overviewOf(view, 60).runs, { queued: 41 }, 'the counts of now have no age')
  view.close()
  t.end()
})

t.test('waiting interactions: all that I may read, and those that I may answer', (t) => {
  const asked = (id: string, fields: Partial<Interaction>): Draft => ({
    kind: 'interaction',
    project: 'prj_a',
    id,
    events: [
      {
        type: 'interaction.created',
        interaction: {
          id,
          kind: 'request_approval',
          status: 'pending',
          target_user_ids: ['ada'],
          resolution_policy: { type: 'any_of' },
          responses: [],
          consumer: { kind: 'none' },
          created_at: at(0),
          updated_at: at(0),
          ...fields,
        },
      } as never,
    ],
  })
  const response = { id: 'r', responder_user_id: 'ada', value: true, created_at: at(0) }
  const view = applied(
    viewAt(0),
    asked('int_1', {}),
    asked('int_2', { target_user_ids: ['bob'] }),
    asked('int_3', { target_user_ids: ['role:Viewer'] }),
    asked('int_4', { target_user_ids: ['ada', 'bob'], responses: [response] as never }),
    asked('int_5', { status: 'responded' as never }),
    asked('int_6', {
      status: 'in_review' as never,
      target_user_ids: ['bob'],
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['ada'] } },
    }),
  )
  t.strictSame(overviewOf(view).interactions, { waiting: 5, for_me: 3, at_least: false })
  const bob = { id: 'bob', admin: false, names: ['bob'] }
  t.strictSame(overviewOf(view, 60, bob).interactions, { waiting: 5, for_me: 2, at_least: false })
  view.close()
  t.end()
})

t.test('queues: open jobs by line, their oldest, and the workers that take them', (t) => {
  const view = applied(
    viewAt(100),
    started('run_1', 0),
    queue([
      queued(jobBorn('job_1', 'run_1', 5)),
      queued(jobBorn('job_2', 'run_1', 3)),
      queued(jobBorn('job_3', 'run_1', 9, { action_name: 'pay' })),
      queued(jobBorn('job_4', 'run_1', 1)),
    ]),
    queue([queued(jobBorn('job_5', 'run_1', 2, { queue: 'slow' }))], { id: '0.slow' }),
    registered('w1', { queues: ['default', 'idle'] }),
    registered('w2', { concurrency_limit: 2 }),
    registered('w3', { queues: ['idle'] }),
    worker('w3', [{ type: 'worker.draining', instance: 'w3', at: T0 } as never]),
    queue([claimed('job_4', 'wst_w1', 'w1', 60)]),
  )
  const list = () => ask<{ items: Queue[] }>(view, 'queue.list').items
  const taker = (worker_instance_id: string, state: string, slots_used: number, free: number) => ({
    worker_instance_id,
    state,
    slots_used,
    slots_free: free,
  })
  t.strictSame(list(), [
    {
      name: 'default',
      waiting: 3,
      in_work: 1,
      oldest_waiting_since: at(3),
      worker_count: 2,
      slots_used: 1,
      slots_free: 5,
      lines: [
        { action_name: 'pay', waiting: 1, in_work: 0, oldest_waiting_since: at(9) },
        { action_name: 'send_mail', waiting: 2, in_work: 1, oldest_waiting_since: at(3) },
      ],
      workers: [taker('w1', 'online', 1, 3), taker('w2', 'online', 0, 2)],
    },
    {
      name: 'idle',
      waiting: 0,
      in_work: 0,
      worker_count: 3,
      slots_used: 1,
      slots_free: 5,
      lines: [],
      workers: [
        taker('w1', 'online', 1, 3),
        taker('w2', 'online', 0, 2),
        taker('w3', 'draining', 0, 0),
      ],
    },
    {
      name: 'slow',
      waiting: 1,
      in_work: 0,
      oldest_waiting_since: at(2),
      worker_count: 1,
      slots_used: 0,
      slots_free: 2,
      lines: [{ action_name: 'send_mail', waiting: 1, in_work: 0, oldest_waiting_since: at(2) }],
      workers: [taker('w2', 'online', 0, 2)],
    },
  ])
  const plan = view.read((store) =>
    store.all<{ detail: string }>(
      `EXPLAIN QUERY PLAN SELECT created_at FROM jobs INDEXED BY jobs_waiting
       WHERE project = 1 AND queue = 'default' AND line = 'x' ORDER BY created_at LIMIT 1`,
    ),
  )
  t.match(plan, [{ detail: /USING COVERING INDEX jobs_waiting/ }])
  t.match(
    ask(view, 'worker.list', { include: ['jobs', 'gateway', 'slots_free'], viewer: ada } as never)
      .items[0],
    {
      gateway: 'g1',
      slots_free: 3,
      jobs: [{ job_id: 'job_4', queue: 'default', action_name: 'send_mail', run_id: 'run_1' }],
    },
  )
  view.close()
  t.end()
})

/** Histories of a few runs and jobs, each entry some seconds after the previous one. */
const story = fc.array(
  fc.record({
    wait: fc.constantFrom(0, 1, 20, 70, 4000),
    what: fc.constantFrom('start', 'run', 'end', 'fail', 'again', 'job', 'claim', 'done'),
    which: fc.nat(3),
    project: fc.constantFrom('prj_a', 'prj_b'),
  }),
  { maxLength: 40 },
)
t.test('counters equal a scan of the events, also after a rebuild', (t) => {
  void fc.assert(
    fc.property(story, fc.integer({ min: 1, max: 7 }), (moves, size) => {
      const journal = new Journal()
      const runs = new Map<string, { status: string; ends: string[] }>()
      const jobs = new Map<string, string>()
      let now = 0
      const step = viewAt(0)
      for (const { wait, what, which, project } of moves) {
        now += wait
        const id = `run_${project.slice(-1)}${which}`
        const job = `job_${project.slice(-1)}${which}`
        const known = runs.get(id)
        const more = { project, at: now }
        const state = jobs.get(job)
        const drafts: Draft[] = []
        if (what === 'start' && !known) {
          runs.set(id, { status: 'queued', ends: [] })
          drafts.push(started(id, now, {}, more))
        } else if (what === 'run' && known?.status === 'queued') {
          known.status = 'running'
          drafts.push(moved(id, 'running', { started_at: at(now) }, more))
        } else if (known?.status === 'running' && (what === 'end' || what === 'fail')) {
          known.status = what === 'end' ? 'completed' : 'failed'
          known.ends.push(known.status)
          drafts.push(moved(id, known.status as never, {}, more))
        } else if (known?.status === 'failed' && what === 'again') {
          known.status = 'queued'
          drafts.push(moved(id, 'queued', {}, more))
        } else if (what === 'job' && state === undefined) {
          jobs.set(job, 'queued')
          drafts.push(queue([queued(jobBorn(job, id, now))], more))
        } else if (what === 'claim' && state === 'queued') {
          jobs.set(job, 'claimed')
          drafts.push(queue([claimed(job, 'wst_1', 'w1', 60)], more))
        } else if (what === 'done' && state !== undefined && state !== 'completed') {
          jobs.set(job, 'completed')
          drafts.push(queue([ended(job, 'completed')], more))
        }
        for (const draft of drafts) step.apply([journal.commit(0, draft)])
        if (which === 0) step.save()
      }
      const rebuilt = viewAt(0)
      for (let i = 0; i < journal.messages.length; i += size)
        rebuilt.apply(journal.messages.slice(i, i + size))
      const dump = (view: View) => {
        view.save()
        return JSON.stringify(
          view.read((store) => [
            store.all('SELECT * FROM run_counts WHERE runs <> 0 ORDER BY project, status'),
            store.all('SELECT * FROM run_flow ORDER BY project, period, minute'),
            store.all('SELECT * FROM queue_lines ORDER BY project, queue, line'),
          ]),
        )
      }
      const [one, other] = [dump(step), dump(rebuilt)]
      if (one !== other) throw new Error(`${one}\n${other}`)
      for (const period of [1, 15, 60]) {
        const sums = step.read((store) =>
          store.one<Record<string, number>>(
            `SELECT coalesce(sum(started), 0) AS started, coalesce(sum(completed), 0) AS completed,
               coalesce(sum(failed), 0) AS failed FROM run_flow WHERE period = ?`,
            period,
          ),
        )
        const all = [...runs.values()].flatMap(({ ends }) => ends)
        const wanted = {
          started: runs.size,
          completed: all.filter((end) => end === 'completed').length,
          failed: all.filter((end) => end === 'failed').length,
        }
        if (JSON.stringify(sums) !== JSON.stringify(wanted))
          throw new Error(JSON.stringify([period, sums, wanted]))
      }
      for (const project of ['prj_a', 'prj_b']) {
        const of = (status: string) =>
          [...runs].filter(([id, run]) => id[4] === project[4] && run.status === status).length
        const { runs: counts } = overviewOf(step, 60, ada, project)
        for (const [status, n] of Object.entries(counts))
          if (n !== of(status)) throw new Error(`${project} ${status}: ${n}`)
      }
      step.close()
      rebuilt.close()
    }),
    { numRuns: 60, seed: 11 },
  )
  t.pass()
  t.end()
})
