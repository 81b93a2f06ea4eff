/** Control of runs over HTTP: cancellation, resuming, retries, signals, timeouts and priorities. */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  acting,
  ended,
  failing,
  fieldsOf,
  instant,
  listOf,
  sleeping,
  timelineOf,
  until,
  waiting,
} from '../support/given.ts'

// One shard, so there is one queue with an exact order.
const s = await service({ BATON_SHARDS: '1' })
t.teardown(() => s.stop())
const start = async (spec: unknown, more: Record<string, unknown> = {}) =>
  String((await s.ok('run.start', { spec, ...more }))['id'])
const status = async (id: string) => (await s.ok('run.get', { id }))['status']
const nobody = async () => `${(await start(instant())).slice(0, -6)}ZZZZ00`

t.test(
  'a sleeping run and a run with an unclaimed job are cancelled at once, and a repeat changes nothing',
  async (t) => {
    const asleep = await start(sleeping())
    t.equal((await s.call('run.cancel', { id: asleep, reason: 'not needed' })).status, 204)
    t.match(await s.ok('run.get', { id: asleep }), {
      status: 'cancelled',
      cancel_requested: true,
      cancel_requested_at: /Z$/,
      completed_at: /Z$/,
    })
    const before = await timelineOf(s, asleep)
    t.match(listOf(await s.ok('run.events', { id: asleep, limit: 200 })).at(-1), {
      event_type: 'run.cancelled',
      payload: { status: 'cancelled', reason: 'not needed' },
    })
    t.equal((await s.call('run.cancel', { id: asleep })).status, 204)
    t.strictSame(await timelineOf(s, asleep), before)
    const queued = await start(acting('nobody-does-this'))
    t.match(await s.ok('run.cancel_with_run', { id: queued, reason: 'late' }), {
      id: queued,
      status: 'cancelled',
      cancel_requested: true,
    })
    t.match(await s.ok('run.jobs', { id: queued }), { items: [{ status: 'cancelled' }] })
    t.match(await s.ok('run.cancel_with_run', { id: queued }), { status: 'cancelled' })
    const done = await start(instant())
    t.match(await s.ok('run.cancel_with_run', { id: done }), {
      status: 'completed',
      cancel_requested: false,
    })
    await s.refused('run.cancel', { id: await nobody() }, 404, 'not_found')
    await s.refused('run.cancel_with_run', { id: 'nobody' }, 404, 'not_found')
  },
)

t.test('a leased job is asked to stop, and the run ends after its worker', async (t) => {
  const worker = await s.worker({ action_names: ['slow'] })
  t.teardown(() => worker.close())
  const id = await start(acting('slow'))
  const job = await worker.job()
  const asked = worker.wait((frame) => frame['type'] === 'job.cancel', 'job.cancel')
  await s.ok('run.cancel', { id, reason: 'stop it' })
  t.match(await asked, { job_id: job['id'], reason: 'stop it' })
  t.match(await s.ok('run.get', { id }), {
    status: 'suspended',
    cancel_requested: true,
    paths: [{ waiting_on: { kind: 'cancel' } }],
  })
  t.match(await s.ok('run.jobs', { id }), {
    items: [{ status: 'claimed', cancel_requested: true }],
  })
  await worker.report(job, { status: 'cancelled' })
  t.match(await ended(s, id), { status: 'cancelled', step_counts: { cancelled: 1 } })
})

t.test(
  'bulk operations return one result per run in the given order, including unknown ids',
  async (t) => {
    const [asleep, broken, unknown] = [
      await start(sleeping()),
      await start(failing()),
      await nobody(),
    ]
    const { results } = await s.ok('run.cancel_many', {
      run_ids: [asleep, unknown, 'nonsense', broken],
      reason: 'all',
    })
    t.match(results, [
      { run_id: asleep, ok: true, status: 'cancelled' },
      { run_id: unknown, ok: false, error: { code: 'not_found' } },
      { run_id: 'nonsense', ok: false, error: { code: 'not_found' } },
      { run_id: broken, ok: true, status: 'failed' },
    ])
    const retried = await s.ok('run.retry_many', { run_ids: [broken, asleep, unknown] })
    t.match(listOf(retried, 'results'), [
      { run_id: broken, ok: true },
      { run_id: asleep, ok: false, error: { code: 'run_not_failed' } },
      { run_id: unknown, ok: false, error: { code: 'not_found' } },
    ])
    const twice = await s.ok('run.retry_many', { run_ids: [broken, broken] })
    t.match(listOf(twice, 'results'), [
      { run_id: broken, ok: true },
      { run_id: broken, ok: true },
    ])
    t.match(
      listOf(await s.ok('run.steps', { id: broken })).map(({ attempt }) => attempt),
      [3],
      'listed twice, retried once',
    )
    t.strictSame(
      fieldsOf(await s.refused('run.cancel_many', { run_ids: [] }, 400, 'bad_request')),
      ['run_ids'],
    )
  },
)

t.test('resuming ends a wait at once; only a suspended run can be resumed', async (t) => {
  const id = await start(sleeping())
  t.equal((await s.call('run.resume', { id, reason: 'go on' })).status, 204)
  t.match(await ended(s, id), { status: 'completed' })
  t.ok((await timelineOf(s, id)).includes('run.resumed'))
  await s.refused('run.resume', { id }, 409, 'run_not_suspended')
  await s.refused('run.resume', { id: await nobody() }, 404, 'not_found')
  const other = await start(waiting())
  t.match(
    await s.ok('run.recover', { id: other }),
    { status: 'completed' },
    'recover resumes a suspended run as well',
  )
  await s.refused('run.recover', { id: other }, 409, 'run_not_failed')
})

t.test(
  'a failed run is retried in place: completed steps keep their outputs and the failed one repeats',
  async (t) => {
    const worker = await s.worker({ action_names: ['one', 'two'] })
    t.teardown(() => worker.close())
    const step = (id: string) => ({ id, kind: 'action', config: { action_name: id } })
    const id = await start({ steps: [step('one'), step('two')] })
    await worker.report(await worker.job(), { result: { n: 1 } })
    for (const form of ['run.retry', 'run.recover'] as const) {
      await worker.report(await worker.job(), {
        status: 'failed',
        error_type: 'Boom',
        error_message: 'no luck',
      })
      t.match(await ended(s, id), {
        status: 'failed',
        error_type: 'Boom',
        error_message: 'no luck',
        paths: [{ state: 'failed', error_message: 'no luck' }],
      })
      const { status: answered, body } = await s.call(form, { id, reason: 'again' })
      t.equal(answered, 202)
      t.match(body, { id, error_message: undefined })
      await s.refused('run.retry', { id }, 409, 'run_not_failed')
    }
    await worker.report(await worker.job(), { result: { n: 2 } })
    t.match(await ended(s, id), { status: 'completed', result: { one: { n: 1 }, two: { n: 2 } } })
    const resumed = listOf(await s.ok('run.events', { id, limit: 200 })).filter(
      (event) =>
        event['event_type'] === 'run.resumed' &&
        JSON.stringify(event['payload']).includes('recovery_action'),
    )
    t.match(resumed, [
      { payload: { recovery_action: 'retry', attempt: 2, step: 'two', reason: 'again' } },
      { payload: { recovery_action: 'resume', attempt: 3 } },
    ])
  },
)

t.test('a run that exceeded its time limit is retried only with a raised limit', async (t) => {
  const id = await start(waiting('late', {}, { limits: { wall_clock_timeout: '1ms' } }))
  t.match(await ended(s, id), { status: 'failed', error_type: 'wall_clock_exceeded' })
  await s.refused('run.retry', { id }, 400, 'limit_not_raised')
  for (const seconds of [366 * 86_400 * 10 + 1, 1e300])
    t.match(
      await s.refused('run.retry', { id, wall_clock_extend_seconds: seconds }, 400, 'bad_request'),
      { details: { fields: [{ field: 'wall_clock_extend_seconds' }] } },
      'the deadline must be a valid time',
    )
  t.match(await s.ok('run.retry', { id, wall_clock_extend_seconds: 60 }), { status: 'suspended' })
})

t.test(
  'a signal resumes the run that waits for its name, and an early one is stored',
  async (t) => {
    const gate = (id: string, signal: string, more: object = {}) => ({
      id,
      kind: 'wait_for_event',
      config: { event_type: `signal.${signal}`, ...more },
    })
    const id = await start({
      steps: [
        gate('first', 'a'),
        gate('second', 'b', {
          payload_mapping: { n: 'event.payload.n', from: 'meta.signal_name' },
        }),
        gate('third', 'c', { match: { 'event.payload.kind': 'good' } }),
      ],
      output: { n: '${{ steps.second.output.n }}', from: '${{ steps.second.output.from }}' },
    })
    const early = await s.call('run.signal', { id, name: 'b', payload: { n: 7 } })
    t.equal(early.status, 202)
    t.match(early.body, { source_event_id: /^sevt_/ })
    t.equal(await status(id), 'suspended')
    await s.ok('run.signal', { id, name: 'a' })
    await s.ok('run.signal', { id, name: 'c', payload: { kind: 'bad' } })
    t.match(
      await s.ok('run.get', { id }),
      { status: 'suspended', step_counts: { completed: 2, suspended: 1 } },
      'a signal that does not match is ignored',
    )
    await s.ok('run.signal', { id, name: 'c', payload: { kind: 'good' } })
    t.match(await ended(s, id), { result: { n: 7, from: 'b' } })
    await s.refused('run.signal', { id, name: 'a' }, 409, 'conflict')
  },
)

t.test('a signal accepts only the members of its form', async (t) => {
  const id = await start(waiting())
  const faults = async (body: object) =>
    fieldsOf(await s.refused('run.signal', { id, ...body }, 400, 'bad_request'))
  t.strictSame(await faults({ name: 'go', result: {} }), ['result'])
  t.strictSame(await faults({ step_key: 'wait', payload: {} }), ['payload'])
  t.strictSame(await faults({ name: 'go', step_key: 'wait' }), ['name'])
  await s.ok('run.cancel', { id })
})

t.test('a signal with one idempotency key takes effect once', async (t) => {
  const id = await start({
    steps: ['x', 'y'].map((step) => ({
      id: step,
      kind: 'wait_for_event',
      config: { event_type: 'signal.go' },
    })),
  })
  const first = await s.ok('run.signal', { id, name: 'go', idempotency_key: 'k' })
  t.strictSame(await s.ok('run.signal', { id, name: 'go', idempotency_key: 'k' }), first)
  t.equal(await status(id), 'suspended')
  t.not(
    (await s.ok('run.signal', { id, name: 'go', idempotency_key: 'l' }))['source_event_id'],
    first['source_event_id'],
  )
  t.equal(await status(id), 'completed')
})

t.test('a suspended step is completed by its key with the given result', async (t) => {
  const id = await start({ ...waiting('x'), output: { got: '${{ steps.gate.output.word }}' } })
  const { status: answered, body } = await s.call('run.signal', {
    id,
    step_key: 'gate',
    result: { word: 'hello' },
  })
  t.equal(answered, 200)
  t.match(body, { id, status: 'completed', result: { got: 'hello' } })
  const job = await start(acting('never'))
  t.match(await s.ok('run.signal', { id: job, step_key: 'call', result: { by: 'hand' } }), {
    status: 'completed',
    result: { call: { by: 'hand' } },
  })
  t.match(await s.ok('run.jobs', { id: job }), { items: [{ status: 'cancelled' }] })
  const two = await start({
    steps: [
      ...(waiting('x')['steps'] as object[]),
      { id: 'later', kind: 'sleep', config: { duration: '1h' } },
    ],
  })
  t.strictSame(
    fieldsOf(await s.refused('run.signal', { id: two, step_key: 'later' }, 400, 'bad_request')),
    ['step_key'],
  )
  await s.refused('run.signal', { id: two, step_key: 'unknown' }, 404, 'not_found')
  await s.refused('run.signal', { id: await nobody(), name: 'a' }, 404, 'not_found')
  for (const body of [{}, { name: 'a', step_key: 'gate' }])
    t.strictSame(
      fieldsOf(await s.refused('run.signal', { id: two, ...body }, 400, 'bad_request')),
      ['name'],
    )
  t.strictSame(
    fieldsOf(await s.refused('run.signal', { id: two, name: 'not a name' }, 400, 'bad_request')),
    ['name'],
  )
})

t.test('a wait times out, and its step opens a new wait if it has a retry', async (t) => {
  const id = await start(
    waiting('never', { timeout: { duration: '30ms' }, retry: { max_attempts: 2, delay: '20ms' } }),
  )
  t.match(await ended(s, id), {
    status: 'failed',
    error_type: 'timeout',
    step_counts: { failed: 1 },
  })
  const types = await timelineOf(s, id)
  t.equal(types.filter((type) => type === 'wait.timed_out').length, 2)
  t.equal(types.filter((type) => type === 'step.retried').length, 1)
  t.match(await s.ok('run.steps', { id }), {
    items: [{ attempt: 2, status: 'failed', error_type: 'timeout' }],
  })
  const job = await start(acting('never', { timeout: { duration: '30ms' } }))
  t.match(await ended(s, job), { status: 'failed', error_type: 'timeout' })
  await until(
    () => s.ok('run.jobs', { id: job }),
    (jobs) => listOf(jobs)[0]?.['status'] === 'cancelled',
  )
})

t.test(
  'a failed action is retried by its policy, and its job keeps its place in the queue',
  async (t) => {
    const worker = await s.worker({ action_names: ['flaky'] })
    t.teardown(() => worker.close())
    const id = await start(acting('flaky', { retry: { max_attempts: 3, delay: '10ms' } }))
    const first = await worker.job()
    await worker.report(first, { status: 'failed', error_type: 'Boom', error_message: 'try again' })
    const second = await worker.job()
    t.match(second, { id: first['id'], claim_attempt: 2 })
    t.not(second['lease_token'], first['lease_token'])
    await worker.report(second, { result: { fine: true } })
    t.match(await ended(s, id), { status: 'completed', result: { call: { fine: true } } })
    t.match(
      listOf(await s.ok('run.action_log', { id })).map((entry) => entry['status']),
      ['called', 'retried', 'completed'],
    )
  },
)

t.test(
  'jobs of a higher priority are handed out first, and fairness keys take turns',
  async (t) => {
    const begin = (n: string, more: object) =>
      start(acting('ordered'), { external_id: n, queue: 'ordered', ...more })
    const order: [string, object][] = [
      ['a1', { fairness_key: 'a' }],
      ['a2', { fairness_key: 'a' }],
      ['b1', { fairness_key: 'b' }],
      ['urgent', { priority: 9 }],
    ]
    const names = new Map<string, string>()
    for (const [n, more] of order) names.set(await begin(n, more), n)
    const worker = await s.worker({
      action_names: ['ordered'],
      queues: ['ordered'],
      concurrency_limit: 1,
    })
    t.teardown(() => worker.close())
    const got: string[] = []
    while (got.length < order.length) {
      const job = await worker.job()
      got.push(names.get(String(job['run_id'])) ?? '?')
      await worker.report(job)
    }
    t.strictSame(got, ['urgent', 'a1', 'b1', 'a2'])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'run.start',
          { spec: instant(), priority: 1001, fairness_key: 'x'.repeat(129) },
          400,
          'bad_request',
        ),
      ).sort(),
      ['fairness_key', 'priority'],
    )
  },
)
