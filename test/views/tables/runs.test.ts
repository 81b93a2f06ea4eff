/** Views of runs: lists with their filters and indexes, records, steps, and why runs wait. */
import Database from 'better-sqlite3'
import t from 'tap'
import type { WorkflowRun } from '../../../protocol/runs/schema.ts'
import { migrate } from '../../../views/files/migrate.ts'
import { planRuns } from '../../../views/tables/runs/list.ts'
import { View } from '../../../views/view.ts'
import {
  type Answer,
  ask,
  at,
  born,
  claimed,
  type Draft,
  each,
  event,
  Journal,
  jobBorn,
  moved,
  queue,
  queued,
  registered,
  run,
  runIds,
  spec,
  started,
  stepBorn,
  viewOf,
} from '../support/journal.ts'

const shop = () =>
  viewOf(
    started('run_1', 1, {
      workflow_type: 'mail',
      queue: 'slow',
      external_id: 'order-1',
      initiated_by: 'ci',
      definition_id: 'wfd_1',
      definition_version: 1,
    }),
    started('run_2', 2, { workflow_type: 'mail', external_id: 'order-1', parent_run_id: 'run_1' }),
    started('run_3', 3, { queue: 'slow', initiated_by: 'ci' }),
    started('run_4', 4, { workflow_type: 'bill', queue: 'slow', parent_run_id: 'run_1' }),
    started('run_b', 5, { workflow_type: 'mail', queue: 'slow' }, { project: 'prj_b' }),
    moved('run_1', 'running'),
    moved('run_2', 'failed', { error_message: 'no', error_type: 'boom' }),
    moved('run_4', 'completed', { result: { ok: true } }),
  )

t.test('runs of the project are listed newest first, as their records', (t) => {
  const view = shop()
  t.strictSame(runIds(view, {}), ['run_4', 'run_3', 'run_2', 'run_1'])
  t.strictSame(runIds(view, {}, 'prj_b'), ['run_b'])
  t.strictSame(runIds(view, {}, 'prj_c'), [])
  t.strictSame(ask(view, 'run.list', { limit: 1 }).items, [
    born('run_4', 4, {
      workflow_type: 'bill',
      queue: 'slow',
      parent_run_id: 'run_1',
      status: 'completed',
      result: { ok: true },
    }),
  ])
  t.end()
})

t.test('every filter, alone and combined', (t) => {
  const view = shop()
  t.strictSame(runIds(view, { status: ['queued'] }), ['run_3'])
  t.strictSame(runIds(view, { status: 'failed' }), ['run_2'])
  t.strictSame(runIds(view, { status: ['running', 'completed', 'running'] }), ['run_4', 'run_1'])
  t.strictSame(runIds(view, { workflow_type: 'mail' }), ['run_2', 'run_1'])
  t.strictSame(runIds(view, { queue: 'slow' }), ['run_4', 'run_3', 'run_1'])
  t.strictSame(runIds(view, { queue: 'slow', status: ['running', 'queued'] }), ['run_3', 'run_1'])
  t.strictSame(runIds(view, { queue: 'slow', workflow_type: 'mail', status: ['running'] }), [
    'run_1',
  ])
  t.strictSame(runIds(view, { parent_run_id: 'run_1' }), ['run_4', 'run_2'])
  t.strictSame(runIds(view, { parent_run_id: 'run_1', status: ['failed', 'running'] }), ['run_2'])
  t.strictSame(runIds(view, { initiated_by: 'ci' }), ['run_3', 'run_1'])
  t.strictSame(runIds(view, { initiated_by: 'ci', queue: 'slow', status: ['queued'] }), ['run_3'])
  t.strictSame(runIds(view, { external_id: 'order-1' }), ['run_2', 'run_1'])
  t.strictSame(
    runIds(view, {
      external_id: 'order-1',
      workflow_type: 'mail',
      parent_run_id: 'run_1',
      status: ['failed'],
    }),
    ['run_2'],
  )
  t.strictSame(runIds(view, { external_id: 'order-2' }), [])
  t.strictSame(ask(view, 'run.list', { loop_id: 'loop_1' }), { items: [] })
  t.strictSame(ask(view, 'run.list', { source_event_id: 'sevt_1', status: ['queued'] }), {
    items: [],
  })
  t.end()
})

t.test('a page continues where the last one ended, for any filter', (t) => {
  const view = viewOf(
    ...Array.from({ length: 7 }, (_, i) =>
      started(`run_${i}`, i < 4 ? 1 : 2, { queue: i % 2 ? 'odd' : 'even' }),
    ),
    moved('run_5', 'running'),
    moved('run_2', 'failed'),
  )
  for (const filter of [
    {},
    { queue: 'even' },
    { status: ['queued', 'failed', 'running'] },
    { queue: 'even', status: ['queued', 'failed'] },
  ]) {
    const all = runIds(view, filter)
    const seen: unknown[] = []
    let answer: Answer = ask(view, 'run.list', { ...filter, limit: 2 })
    seen.push(...each(answer, 'id'))
    while (answer.position) {
      t.equal(answer.items.length, 2)
      answer = ask(view, 'run.list', { ...filter, limit: 2, after: answer.position })
      seen.push(...each(answer, 'id'))
    }
    t.strictSame(seen, all, JSON.stringify(filter))
  }
  t.strictSame(
    runIds(view, {}),
    ['run_6', 'run_5', 'run_4', 'run_3', 'run_2', 'run_1', 'run_0'],
    'equal times are ordered by id',
  )
  t.notOk(ask(view, 'run.list', { limit: 7 }).position, 'no position on a last page that is full')
  t.equal(
    ask(viewOf(...Array.from({ length: 25 }, (_, i) => started(`run_${i}`, i))), 'run.list').items
      .length,
    20,
    'twenty by default',
  )
  t.end()
})

t.test('every combination of filters is one range of an index, in list order', (t) => {
  const db = new Database(':memory:')
  migrate(db)
  const names = [
    'workflow_type',
    'queue',
    'parent_run_id',
    'initiated_by',
    'external_id',
    'definition_id',
  ] as const
  for (let bits = 0; bits < 2 ** names.length; bits++) {
    const given = Object.fromEntries(
      names.filter((_, i) => bits & (1 << i)).map((name) => [name, 'x']),
    )
    for (const status of [undefined, ['queued'], ['queued', 'failed']]) {
      for (const after of [undefined, [1, 'run_1']]) {
        for (const { sql, values } of planRuns(1, {
          ...given,
          ...(status && { status }),
          ...(after && { after }),
        })) {
          const plan = db
            .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
            .all(...values)
            .map(({ detail }) => detail)
            .join('; ')
          if (!/^SEARCH runs USING INDEX \S+ \(project=\?/.test(plan) || /TEMP B-TREE/.test(plan))
            t.fail(`${sql}: ${plan}`)
          if (Object.keys(given).length > 0 && !/\(project=\? AND \w+=\?/.test(plan))
            t.fail(`${sql}: ${plan}`)
        }
      }
    }
  }
  t.pass('all')
  t.end()
})

t.test('a run includes its spec, step counts and its single path', (t) => {
  const view = viewOf(
    started('run_1', 1),
    run('run_1', [
      event('step.started', { step: 'a', row: stepBorn('run_1', 'a', 0) }),
      event('step.completed', { step: 'a', row: { status: 'completed' } }),
    ]),
    run('run_1', [
      event('step.started', { step: 'b', row: stepBorn('run_1', 'b', 1) }),
      event('step.failed', { step: 'b', row: { status: 'failed' } }),
      event('run.failed', { run: { status: 'failed', error_message: 'no' } }),
    ]),
  )
  t.strictSame(view.ask('run.get', 'prj_a', { id: 'run_1' }), {
    ...born('run_1', 1, { status: 'failed', error_message: 'no' }),
    spec,
    step_counts: { completed: 1, failed: 1 },
    path_counts: { total: 1, working: 0, waiting: 0, completed: 0, failed: 1 },
    paths: [{ path_id: 'main', state: 'failed', error_message: 'no' }],
  })
  t.match(ask(view, 'run.get', { id: 'run_2' }), { refused: 'not_found' })
  t.match(ask(view, 'run.get', { id: 'run_1' }, 'prj_b'), { refused: 'not_found' })
  t.end()
})

t.test('a patch with null removes a field', (t) => {
  const view = viewOf(
    started('run_1', 1),
    moved('run_1', 'failed', { error_message: 'no', completed_at: at(2) }),
    moved('run_1', 'queued', { error_message: null, completed_at: null }),
  )
  t.strictSame(ask<{ items: WorkflowRun[] }>(view, 'run.list').items, [born('run_1', 1)])
  t.end()
})

t.test('steps are listed in order, with what they wait for', (t) => {
  const timer = { kind: 'timer' as const, reason: 'Sleeps', until: at(60), step_key: 'nap' }
  const view = viewOf(
    started('run_1', 1),
    run('run_1', [
      event('step.started', { step: 'nap', row: stepBorn('run_1', 'nap', 1, { kind: 'sleep' }) }),
      event('step.suspended', { step: 'nap', row: { status: 'suspended', waiting_on: timer } }),
    ]),
    run('run_1', [
      event('step.skipped', {
        step: 'a:b',
        row: stepBorn('run_1', 'a:b', 0, { status: 'skipped' }),
      }),
    ]),
  )
  const { items } = ask(view, 'run.steps', { id: 'run_1' })
  t.strictSame(items, [
    stepBorn('run_1', 'a:b', 0, { status: 'skipped' }),
    stepBorn('run_1', 'nap', 1, { kind: 'sleep', status: 'suspended', waiting_on: timer }),
  ])
  t.strictSame(
    ask(view, 'run.project_steps', { id: 'run_1' }),
    ask(view, 'run.steps', { id: 'run_1' }),
    'under the name of another form, too',
  )
  t.match(ask(view, 'run.steps', { id: 'run_1' }, 'prj_b'), { refused: 'not_found' })
  t.end()
})

t.test('reasons why a run waits: admission, a timer, a worker, a lease, a cancellation', (t) => {
  const why = (view: View) =>
    ask<{ waiting_on?: object }>(view, 'run.get', { id: 'run_1', include: ['waiting_on'] })
      .waiting_on
  const suspended = run('run_1', [
    event('step.started', { step: 'mail', row: stepBorn('run_1', 'mail', 0) }),
    event('step.suspended', { step: 'mail', row: { status: 'suspended', job_id: 'job_1' } }),
    event('run.suspended', { run: { status: 'suspended' } }),
  ])
  const journal = new Journal()
  const view = View.open(':memory:', { now: () => Date.parse(at(10)) })
  const commit = (...drafts: readonly Draft[]) => view.apply([journal.commit(0, ...drafts)])
  commit(started('run_1', 1))
  t.match(why(view), { kind: 'concurrency' })
  commit(moved('run_1', 'running'))
  t.equal(why(view), undefined)
  commit(suspended, queue([queued(jobBorn('job_1', 'run_1', 1))]))
  t.match(why(view), {
    kind: 'worker',
    reason: 'no worker for queue "default" takes action "send_mail"',
    step_key: 'mail',
    job_id: 'job_1',
    queue: 'default',
    action_name: 'send_mail',
  })
  commit(registered('w1'), registered('w2'))
  t.match(why(view), { kind: 'worker', reason: 'waiting for a free slot: 2 workers can take it' })
  commit(queue([claimed('job_1', 'wst_w1', 'w1', 60)]))
  t.match(why(view), {
    kind: 'lease',
    reason: `worker w1 works on it; its lease lasts until ${at(60)} unless renewed`,
    worker_instance_id: 'w1',
    until: at(60),
    step_key: 'mail',
  })
  commit(run('run_1', [event('run.cancel_requested', { run: { cancel_requested: true } })]))
  t.match(why(view), { kind: 'cancel', step_key: 'mail' })
  commit(
    queue([
      {
        type: 'job.cancel_requested',
        id: 'job_1',
        job: { cancel_requested: true },
        at: 0,
        gateway: 'g1',
        session: 'wst_w1',
      },
    ]),
  )
  t.match(why(view), {
    kind: 'cancel',
    worker_instance_id: 'w1',
    job_id: 'job_1',
    step_key: 'mail',
  })
  commit(
    queue([
      {
        type: 'job.cancelled',
        id: 'job_1',
        job: { status: 'cancelled', lease_expires_at: null },
      },
    ]),
    moved('run_1', 'cancelled'),
  )
  t.equal(why(view), undefined)
  t.end()
})

t.test('a run is located from any project', (t) => {
  const view = shop()
  t.strictSame(view.ask('locate', '', { run_id: 'run_b' }), { project: 'prj_b' })
  t.strictSame(view.ask('locate', 'prj_a', { run_id: 'run_x' }), {})
  t.strictSame(
    ask(view, 'run_of_key', { stem: 'run_' }, 'prj_b'),
    { id: 'run_b' },
    'by the part that ids of runs under one key share',
  )
  t.strictSame(ask(view, 'run_of_key', { stem: 'run_a' }), {})
  t.end()
})
