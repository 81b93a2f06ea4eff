/**
 * Runs over HTTP: how they start, and how clients read runs, their steps and their timelines.
 * Control of runs is in `runs-control.test.ts`.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  acting,
  ended,
  failing,
  fieldsOf,
  ids,
  idsOf,
  instant,
  listOf,
  pages,
  sleeping,
  timelineOf,
  waiting,
} from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

t.test('a run starts from a definition, by id or handle, or from an inline spec', async (t) => {
  const workflow = await s.ok('workflow.create', {
    name: 'Greeting',
    spec: instant({ hello: '${{ input.name }}' }),
  })
  const run = await s.ok('run.start', {
    definition_id: workflow['id'],
    input: { name: 'Ada' },
    external_id: 'order-1',
    workflow_type: 'greeting',
    queue: 'fast',
    parent_run_id: 'run_parent',
  })
  t.match(run, {
    id: /^run_/,
    definition_id: workflow['id'],
    definition_version: 1,
    external_id: 'order-1',
    workflow_type: 'greeting',
    queue: 'fast',
    parent_run_id: 'run_parent',
    initiated_by: 'root',
    cancel_requested: false,
  })
  t.match(await ended(s, run['id']), {
    status: 'completed',
    result: { hello: 'Ada' },
    spec: workflow['spec'],
    step_counts: { completed: 1 },
  })
  t.match(await s.ok('run.start', { definition_id: 'greeting' }), {
    definition_id: workflow['id'],
  })
  t.match(await s.ok('run.start', { spec: instant() }), {
    definition_id: '',
    definition_version: 0,
    queue: 'default',
  })
  await s.refused('run.start', { definition_id: 'wfd_nobody' }, 404, 'not_found')
})

t.test(
  'a start with both a definition and a spec, or with neither, is rejected with the field',
  async (t) => {
    t.strictSame(fieldsOf(await s.refused('run.start', {}, 400, 'bad_request')), ['definition_id'])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'run.start',
          { definition_id: 'greeting', spec: instant() },
          400,
          'bad_request',
        ),
      ),
      ['definition_id'],
    )
    t.strictSame(
      fieldsOf(
        await s.refused('workflow.run', { id: 'greeting', spec: instant() }, 400, 'bad_request'),
      ),
      ['spec'],
    )
  },
)

t.test(
  'declared inputs have defaults, and a missing or invalid input is rejected with its name',
  async (t) => {
    const spec = {
      ...instant({
        name: '${{ input.name }}',
        times: '${{ input.times }}',
        tone: '${{ config.tone }}',
      }),
      input: { name: { type: 'string', required: true }, times: { type: 'integer', default: 3 } },
      config: { tone: { type: 'string', default: 'kind' } },
    }
    t.strictSame(fieldsOf(await s.refused('run.start', { spec }, 400, 'bad_request')), [
      'input.name',
    ])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'run.start',
          { spec, input: { name: 1, times: 'x' }, config: { tone: 2 } },
          400,
          'bad_request',
        ),
      ).sort(),
      ['config.tone', 'input.name', 'input.times'],
    )
    const run = await s.ok('run.start', { spec, input: { name: 'Ada' } })
    t.match(await ended(s, run['id']), {
      input: { name: 'Ada', times: 3 },
      result: { name: 'Ada', times: 3, tone: 'kind' },
    })
    const other = await s.ok('run.start', {
      spec,
      input: { name: 'Bo', times: 1 },
      config: { tone: 'cool' },
    })
    t.match(await ended(s, other['id']), { result: { name: 'Bo', times: 1, tone: 'cool' } })
  },
)

t.test(
  'an idempotency key starts one run: it returns the active run and conflicts with an ended one',
  async (t) => {
    const start = { spec: waiting(), idempotency_key: 'order-7' }
    const [one, two] = await Promise.all([s.ok('run.start', start), s.ok('run.start', start)])
    t.equal(one?.['id'], two?.['id'])
    await s.ok('run.cancel', { id: one?.['id'] })
    const { details } = await s.refused('run.start', start, 409, 'idempotency_key_conflict')
    t.strictSame(details, { run_id: one?.['id'], status: 'cancelled' })
  },
)

t.test(
  'the Idempotency-Key header makes any request repeatable; a key in the body takes precedence',
  async (t) => {
    const headers = { 'idempotency-key': 'send-1' }
    const { id } = await s.ok('run.start', {
      spec: waiting(
        'twice',
        {},
        {
          steps: [
            { id: 'a', kind: 'wait_for_event', config: { event_type: 'signal.x' } },
            { id: 'b', kind: 'wait_for_event', config: { event_type: 'signal.x' } },
          ],
        },
      ),
    })
    const signal = (more: object) =>
      s.ok('run.signal', { id, name: 'x', payload: { n: 1 }, ...more }, { headers })
    t.strictSame(await signal({ idempotency_key: 'a' }), await signal({ idempotency_key: 'a' }))
    t.match(
      await s.ok('run.get', { id }),
      { step_counts: { completed: 1, suspended: 1 } },
      'the repeat was not applied as a second signal',
    )
    await signal({})
    t.match(await s.ok('run.get', { id }), { status: 'completed' })
    const one = await s.ok('run.start', { spec: waiting() }, { headers })
    await s.refused('run.start', { spec: waiting('other') }, 409, 'idempotency_key_conflict', {
      headers,
    })
    await s.ok('run.cancel', { id: one?.['id'], reason: 'a' }, { headers })
    await s.refused(
      'run.cancel',
      { id: one?.['id'], reason: 'b' },
      409,
      'idempotency_key_conflict',
      { headers },
    )
    const key = await s.ok(
      'key.create_organization',
      { name: 'made once' },
      { headers: { 'idempotency-key': 'k' } },
    )
    t.strictSame(
      await s.ok(
        'key.create_organization',
        { name: 'made once' },
        { headers: { 'idempotency-key': 'k' } },
      ),
      key,
      'a repeat returns the secret key again',
    )
  },
)

t.test(
  'lists support every filter, repeated or joined by commas, and are read in pages without repeats',
  async (t) => {
    const made: string[] = []
    for (const n of [0, 1, 2, 3, 4]) {
      const spec = n < 2 ? sleeping() : n === 2 ? instant() : failing()
      made.unshift(
        String(
          (
            await s.ok('run.start', {
              spec,
              queue: 'listed',
              workflow_type: n % 2 ? 'odd' : 'even',
              external_id: `ext-${n}`,
              ...(n === 4 && { parent_run_id: made[0] }),
            })
          )['id'],
        ),
      )
    }
    const [four, three, two, one, zero] = made
    t.strictSame(ids(await pages(s, 'run.list', { queue: 'listed' })), made)
    t.strictSame(ids(await pages(s, 'run.list', { queue: 'listed' }, 200)), made)
    const list = async (filter: Record<string, unknown>) =>
      idsOf(await s.ok('run.list', { queue: 'listed', ...filter }))
    t.strictSame(await list({ status: 'suspended' }), [one, zero])
    t.strictSame(
      await list({ status: ['suspended', 'completed'] }),
      [two, one, zero],
      'a repeated parameter',
    )
    t.strictSame(
      await list({ status: 'failed,completed' }),
      [four, three, two],
      'a comma-separated parameter',
    )
    t.strictSame(
      ids(
        await pages(s, 'run.list', {
          queue: 'listed',
          status: ['failed', 'suspended', 'completed'],
        }),
      ),
      made,
    )
    t.strictSame(await list({ workflow_type: 'odd' }), [three, one])
    t.strictSame(await list({ external_id: 'ext-2' }), [two])
    t.strictSame(await list({ parent_run_id: three }), [four])
    t.strictSame(await list({ initiated_by: 'root' }), made)
    t.strictSame(await list({ initiated_by: 'nobody' }), [])
    t.strictSame(await list({ loop_id: 'loop_x' }), [])
    t.strictSame(await list({ source_event_id: 'sevt_x' }), [])
    t.strictSame(
      idsOf(
        await s.ok('run.list', {
          external_id: 'ext-2',
          status: 'completed',
          workflow_type: 'even',
        }),
      ),
      [two],
    )
    const page = await s.ok('run.list', { queue: 'listed', limit: 3 })
    t.strictSame(page['data'], page['items'], 'the array is returned under both names')
    t.strictSame(fieldsOf(await s.refused('run.list', { status: 'odd' }, 400, 'bad_request')), [
      'status[0]',
    ])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'run.list',
          { queue: 'other', cursor: page['next_cursor'] },
          400,
          'bad_request',
        ),
      ),
      ['cursor'],
    )
  },
)

t.test('a run reports what it waits for: a time, a signal, a worker', async (t) => {
  const waitingOn = async (spec: unknown) => {
    const { id } = await s.ok('run.start', { spec })
    const asked = { id, include: ['waiting_on'] }
    const run = await s.ok('run.get', asked)
    const { waiting_on } = run
    const [step] = listOf(await s.ok('run.steps', asked))
    t.match(run, { status: 'suspended', path_counts: { total: 1, working: 0, waiting: 1 } })
    t.match(step, { status: 'suspended', waiting_on })
    const { kind, reason } = waiting_on as unknown as { kind: string; reason: string }
    t.strictSame(listOf(run, 'paths')[0]?.['waiting_on'], { kind, reason })
    return waiting_on
  }
  t.match(await waitingOn(sleeping()), { kind: 'timer', step_key: 'nap', until: /Z$/ })
  t.match(await waitingOn(waiting('approval')), {
    kind: 'signal',
    step_key: 'gate',
    reason: /approval/,
  })
  t.match(await waitingOn(acting('paint', {}, { queue: 'studio' })), {
    kind: 'worker',
    step_key: 'call',
    queue: 'studio',
    action_name: 'paint',
    reason: /no worker for queue "studio" takes action "paint"/,
  })
})

t.test('a run has steps, jobs and an action log', async (t) => {
  const spec = {
    steps: [
      {
        id: 'first',
        name: 'First',
        kind: 'action',
        config: { action_name: 'log', parameters: { n: 1 } },
      },
      {
        id: 'second',
        kind: 'action',
        config: { action_name: 'log', parameters: { n: '${{ steps.first.output.n }}' } },
      },
    ],
  }
  const worker = await s.worker({ action_names: ['log'], worker_instance_id: 'w-log' })
  t.teardown(() => worker.close())
  const { id } = await s.ok('run.start', { spec, priority: 5, fairness_key: 'team-a' })
  for (const n of [2, 3]) {
    const job = await worker.job()
    if (n === 2)
      t.match(await s.ok('run.get', { id, include: ['waiting_on'] }), {
        waiting_on: { kind: 'lease', worker_instance_id: 'w-log', job_id: job['id'] },
      })
    await worker.report(job, { result: { n } })
  }
  t.match(await ended(s, id), {
    status: 'completed',
    result: { first: { n: 2 }, second: { n: 3 } },
  })
  const { items: steps } = await s.ok('run.steps', { id })
  t.match(steps, [
    {
      id: `${id}:first`,
      run_id: id,
      step_key: 'first',
      step_name: 'First',
      kind: 'action',
      seq: 0,
      attempt: 1,
      status: 'completed',
      inputs: { n: 1 },
      parameters: { n: 1 },
      result: { n: 2 },
      job_id: /^job_/,
    },
    {
      step_key: 'second',
      seq: 1,
      status: 'completed',
      inputs: { n: 2 },
      parameters: { n: '${{ steps.first.output.n }}' },
      result: { n: 3 },
    },
  ])
  t.strictSame(
    await s.ok('run.project_steps', { id }),
    await s.ok('run.steps', { id }),
    'the path below the project',
  )
  for (const row of ['run.steps', 'run.project_steps'] as const)
    t.strictSame(
      await s.ok(row, { id, limit: 1 }),
      { items: listOf(await s.ok('run.steps', { id })).slice(0, 1) },
      'a list without pages returns everything up to its limit',
    )
  for (const row of [
    'worker.list',
    'toolkit.list',
    'catalog.actions',
    'catalog.events',
    'permission.list',
  ] as const) {
    t.strictSame(
      [
        listOf(await s.ok(row, { limit: 1 })).length,
        listOf(await s.ok(row, { limit: 200 })).length,
      ],
      [1, listOf(await s.ok(row)).length],
      row,
    )
    for (const limit of [0, 201]) await s.refused(row, { limit }, 400, 'bad_request')
  }
  const jobs = await pages(s, 'run.jobs', { id, include: ['priority', 'fairness_key'] }, 1)
  t.match(jobs, [
    {
      step_key: 'first',
      status: 'completed',
      queue: 'default',
      action_name: 'log',
      claim_attempt: 1,
      priority: 5,
      fairness_key: 'team-a',
      worker_instance_id: 'w-log',
      result: { n: 2 },
    },
    { step_key: 'second', status: 'completed' },
  ])
  const log = await pages(s, 'run.action_log', { id }, 1)
  t.match(log, [
    { status: 'called', step_key: 'first', action_name: 'log', parameters: { n: 1 } },
    { status: 'completed', result: { n: 2 }, job_id: jobs[0]?.['id'] },
    { status: 'called', step_key: 'second' },
    { status: 'completed', result: { n: 3 } },
  ])
  t.strictSame(
    log.map(({ seq }) => seq),
    log.map(({ seq }) => Number(seq)).sort((a, b) => a - b),
  )
})

t.test('a step whose condition is false is skipped', async (t) => {
  const nap = { kind: 'sleep', config: { duration: '0' } }
  const { id } = await s.ok('run.start', {
    spec: {
      steps: [
        { id: 'a', ...nap, if: 'input.n > 1' },
        { id: 'b', ...nap, if: 'input.n == 1' },
      ],
    },
    input: { n: 1 },
  })
  t.match(await ended(s, id), { status: 'completed', step_counts: { skipped: 1, completed: 1 } })
  t.match(await s.ok('run.steps', { id }), {
    items: [
      { step_key: 'a', status: 'skipped' },
      { step_key: 'b', status: 'completed' },
    ],
  })
  t.strictSame((await timelineOf(s, id)).filter((type) => type === 'step.skipped').length, 1)
})

t.test('a timeline is read in JSON pages', async (t) => {
  const { id } = await s.ok('run.start', { spec: instant() })
  const whole = listOf(await s.ok('run.events', { id, limit: 200 }))
  t.strictSame(
    whole.map((event) => event['event_type']),
    ['run.started', 'step.started', 'step.completed', 'run.completed'],
  )
  t.ok(whole.every((event) => String(event['id']) === `${id}:evt:${event['sequence']}`))
  const page = await s.ok('run.project_events', { id, limit: 3 })
  t.strictSame(page['items'], whole.slice(0, 3))
  t.match(page, { has_more: true, next_sequence: whole[2]?.['sequence'] })
  t.match(await s.ok('run.events', { id, after_sequence: page['next_sequence'] }), {
    items: [whole[3]],
    has_more: false,
  })
  await s.refused('run.events', { id: `${String(id).slice(0, -4)}0000` }, 404, 'not_found')
  await s.refused('run.get', { id: 'nobody' }, 404, 'not_found')
})
