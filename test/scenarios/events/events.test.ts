/** Source events over HTTP: publishing, the runs that wait for them, lists and the catalog. */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  ended,
  fieldsOf,
  idsOf,
  listOf,
  pages,
  timelineOf,
  until,
  waiting,
} from '../support/given.ts'
import { as, people } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const awaiting = (
  config: Record<string, unknown> = {},
  step: Record<string, unknown> = {},
): Record<string, unknown> => ({
  steps: [
    {
      id: 'gate',
      kind: 'wait_for_event',
      config: { event_type: 'order.paid', ...config },
      ...step,
    },
  ],
})
/**
 * Starts a run that waits for an event. Returns the run's id once its timeline contains the open
 * wait.
 */
const waits = async (
  config: Record<string, unknown> = {},
  step: Record<string, unknown> = {},
): Promise<unknown> => {
  const { id } = await s.ok('run.start', { spec: awaiting(config, step) })
  await s.follow('run.events', { id }, ({ event }) => event === 'wait.opened')
  return id
}
const publish = (more: Record<string, unknown> = {}, options = {}) =>
  s.ok('event.publish', { event_type: 'order.paid', ...more }, options)

t.test('a published event resumes the runs that wait for it, and is listed', async (t) => {
  const runs = [
    await waits(),
    await waits({ payload_mapping: { order: 'event.order', by: 'meta.by' } }),
  ]
  const made = await publish({
    event: { order: 7 },
    meta: { by: 'ada', tags: ['a'] },
    source_id: 'shop',
  })
  t.match(made, { source_event_id: /^sevt_/, status: 'accepted' })
  t.match((await ended(s, runs[0]))['result'], {
    gate: { event: { order: 7 }, meta: { by: 'ada', tags: ['a'] } },
  })
  t.strictSame((await ended(s, runs[1]))['result'], { gate: { order: 7, by: 'ada' } })
  const record = await s.ok('event.get', { id: made['source_event_id'] })
  t.match(record, {
    id: made['source_event_id'],
    event_type: 'order.paid',
    source_kind: 'custom',
    source_id: 'shop',
    event: { order: 7 },
    meta: { by: 'ada', tags: ['a'] },
    resumed_waits: 2,
    fired_triggers: 0,
  })
  t.strictSame(listOf(await s.ok('event.list', { event_type: 'order.paid' }))[0], record)
  await s.refused('event.get', { id: 'sevt_00000000000000000000000000' }, 404, 'not_found')
})

t.test(
  'a wait matches events by pattern, source, match values with templates, and condition',
  async (t) => {
    const run = await s.ok('run.start', {
      spec: awaiting({
        event_type: 'order.*',
        source_id: '${{ input.shop }}',
        match: { order: '${{ input.order }}', 'meta.region': ['eu', 'us'] },
        condition: 'event.amount > 10 && meta.region != "us"',
      }),
      input: { shop: 'north', order: 7 },
    })
    const frames = await s.follow(
      'run.events',
      { id: run['id'] },
      ({ event }) => event === 'wait.opened',
    )
    t.match(frames.at(-1)?.data, {
      payload: {
        wait_kind: 'event',
        event_type: 'order.*',
        source_id: 'north',
        match: { order: 7, 'meta.region': ['eu', 'us'] },
      },
    })
    t.match(await s.ok('run.steps', { id: run['id'], include: ['waiting_on'] }), {
      items: [{ status: 'suspended', waiting_on: { kind: 'event', event_type: 'order.*' } }],
    })
    const fitting = {
      event_type: 'order.paid',
      source_id: 'north',
      event: { order: 7, amount: 11 },
      meta: { region: 'eu' },
    }
    const odd = [
      { event_type: 'orders.paid' },
      { source_id: 'south' },
      { event: { order: 8, amount: 11 } },
      { event: { order: 7, amount: 10 } },
      { meta: { region: 'us' } },
      { meta: {} },
      { event: { order: 7, amount: [] } },
    ]
    await s.ok('event.publish_many', { events: odd.map((one) => ({ ...fitting, ...one })) })
    const made = await publish(fitting)
    t.match((await ended(s, run['id']))['result'], {
      gate: { event: { order: 7, amount: 11 }, meta: { region: 'eu' } },
    })
    t.match(await s.ok('event.get', { id: made['source_event_id'] }), { resumed_waits: 1 })
  },
)

t.test('a wait matches only events after it opened, and ends at its timeout', async (t) => {
  await publish({ event_type: 'late.one' })
  const run = await waits({ event_type: 'late.one' }, { timeout: { duration: '300ms' } })
  t.match(await ended(s, run), { status: 'failed', error_type: 'timeout' })
  t.strictSame(await timelineOf(s, run), [
    'run.started',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
    'wait.timed_out',
    'step.failed',
    'run.failed',
  ])
  t.match(
    await ended(
      s,
      await waits(
        { event_type: 'late.one' },
        { timeout: { duration: '50ms', on_timeout: 'continue' } },
      ),
    ),
    { status: 'completed', result: { gate: { timed_out: true } } },
  )
})

t.test('an idempotency key publishes one event, in the body or in the header', async (t) => {
  const first = await publish({ event: { n: 1 }, idempotency_key: 'once' })
  t.strictSame(await publish({ event: { n: 2 }, idempotency_key: 'once' }), {
    source_event_id: first['source_event_id'],
    status: 'accepted',
    deduped: true,
  })
  const header = { headers: { 'idempotency-key': 'h1' } }
  const second = await publish({ event: { n: 3 } }, header)
  t.strictSame(await publish({ event: { n: 3 } }, header), second)
  await s.refused(
    'event.publish',
    { event_type: 'order.paid', event: { n: 4 } },
    409,
    'idempotency_key_conflict',
    header,
  )
  t.strictSame(
    listOf(await s.ok('event.list', { event_type: 'order.paid', limit: 2 })).map(
      ({ event }) => event,
    ),
    [{ n: 3 }, { n: 1 }],
  )
  const many = await s.ok('event.publish_many', {
    events: [{ event_type: 'order.paid' }, { event_type: 'order.paid', idempotency_key: 'once' }],
  })
  t.match(many, {
    items: [
      { source_event_id: /^sevt_/ },
      { source_event_id: first['source_event_id'], deduped: true },
    ],
  })
})

t.test('an invalid event is rejected with the field', async (t) => {
  const bad = async (body: Record<string, unknown>) =>
    fieldsOf(
      await s.refused('event.publish', { event_type: 'order.paid', ...body }, 400, 'bad_request'),
    )
  t.match(
    await s.ok('event.publish', { event_type: 'Order_1' }),
    { source_event_id: /./ },
    'one segment is valid',
  )
  for (const event_type of [
    'a'.repeat(129),
    'order.',
    'a b.c',
    'order.*',
    'run.completed',
    'table.row.inserted',
    'signal.go',
    'schedule.tick',
    'email.received',
    'test.x',
    'loop.schedule.tick',
    '',
  ])
    t.strictSame(await bad({ event_type }), ['event_type'], event_type)
  t.strictSame(await bad({ meta: { a: { b: 1 }, c: [1], d: ['x'], e: null } }), [
    'meta.a',
    'meta.c',
    'meta.e',
  ])
  t.strictSame(await bad({ event: [] }), ['event'])
  const large = { a: Array.from({ length: 2000 }, () => 'x'.repeat(6)) }
  t.strictSame(await bad({ meta: large }), ['meta'])
  await s.ok('event.publish', { event_type: 'order.paid', meta: { a: large.a.slice(0, 1800) } })
  t.strictSame(await bad({ idempotency_key: 'k'.repeat(256) }), ['idempotency_key'])
  const many = async (events: unknown) =>
    fieldsOf(await s.refused('event.publish_many', { events }, 400, 'bad_request'))
  t.strictSame(await many([]), ['events'])
  t.strictSame(await many(Array(101).fill({ event_type: 'a.b' })), ['events'])
  t.strictSame(
    await many([{ event_type: 'a.b' }, { event_type: 'run.x', meta: { a: [], b: {} } }]),
    ['events[1].event_type', 'events[1].meta.b'],
  )
})

t.test('published events are listed newest first, by type, kind and source', async (t) => {
  const items = Array.from({ length: 5 }, (_, n) => ({
    event_type: n % 2 === 0 ? 'list.even' : 'list.odd',
    source_id: `src${n % 3}`,
    event: { n },
  }))
  const made = listOf(await s.ok('event.publish_many', { events: items })).map(
    ({ source_event_id }) => String(source_event_id),
  )
  t.strictSame(idsOf(await s.ok('event.list', { limit: 5 })), made.toReversed())
  t.strictSame(
    (await pages(s, 'event.list', { event_type: 'list.even' })).map(({ id }) => String(id)),
    [made[4], made[2], made[0]],
  )
  t.strictSame(idsOf(await s.ok('event.list', { source_id: 'src1' })), [made[4], made[1]])
  t.strictSame(
    idsOf(
      await s.ok('event.list', {
        source_id: 'src1',
        event_type: 'list.odd',
        source_kind: 'custom',
      }),
    ),
    [made[1]],
  )
  t.strictSame(
    idsOf(await s.ok('event.list', { source_kind: 'loop_run', event_type: 'list.odd' })),
    [],
  )
  const large = await publish({ event: { big: 'x'.repeat(300_000), n: 1 } })
  t.match(await s.ok('event.get', { id: large['source_event_id'] }), {
    event: { big: null, n: 1, truncated: true },
  })
})

t.test('runs wait for events of other runs, checks, signals and interactions', async (t) => {
  const other = String((await s.ok('run.start', { spec: waiting() }))['id'])
  const watcher = await waits({ event_type: 'run.*', source_id: other })
  const signal = await s.ok('run.signal', { id: other, name: 'go', payload: { x: 1 } })
  t.match((await ended(s, watcher))['result'], {
    gate: {
      event: {
        run_id: other,
        status: 'completed',
        output: { gate: { event: { signal_name: 'go', payload: { x: 1 } } } },
        completed_at: /Z$/,
      },
      meta: { run_id: other },
    },
  })
  t.match(await s.ok('event.get', { id: signal['source_event_id'] }), {
    event_type: 'signal.go',
    source_kind: 'signal',
    source_id: other,
    event: { run_id: other, signal_name: 'go', payload: { x: 1 } },
    meta: { run_id: other, signal_name: 'go' },
  })
  t.match(listOf(await s.ok('event.list', { source_id: other, event_type: 'run.completed' })), [
    { causation: { depth: 1 }, resumed_waits: 1 },
  ])

  const checked = await waits({ event_type: 'check.failed', condition: '"ok" in event.failed' })
  const failing = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'c',
          kind: 'check',
          config: {
            on_fail: 'continue',
            checks: [{ name: 'ok', kind: 'expr', expr: 'input.n == 1' }],
          },
        },
      ],
    },
  })
  t.match((await ended(s, checked))['result'], {
    gate: {
      event: {
        run_id: failing['id'],
        step: 'c',
        verdict: 'fail',
        on_fail: 'continue',
        failed: ['ok'],
      },
    },
  })

  const [ada] = await people(s, 'ada')
  const asked = await waits({
    event_type: 'interaction.resolved',
    match: { consumer_kind: 'none' },
  })
  const question = await s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Deploy?',
    target_user_ids: [ada?.id],
  })
  await s.ok(
    'interaction.respond',
    { id: question['id'], value: true },
    as(ada as NonNullable<typeof ada>),
  )
  t.match((await ended(s, asked))['result'], {
    gate: {
      event: {
        interaction_id: question['id'],
        status: 'completed',
        outcome: true,
        responder: { user_id: ada?.id },
      },
      meta: { interaction_id: question['id'], responder_id: ada?.id },
    },
  })
  const told = await until(
    () => s.ok('event.list', { source_id: question['id'] }),
    (answer) => listOf(answer).length === 2,
  )
  t.strictSame(
    listOf(told).map(({ event_type }) => event_type),
    ['interaction.resolved', 'interaction.created'],
  )
})

t.test('many branches of one run each wait for their own event', async (t) => {
  const items = Array.from({ length: 20 }, (_, n) => n)
  const { id } = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'all',
          kind: 'for_each',
          config: {
            items,
            max_concurrency: 20,
            steps: [
              {
                id: 'one',
                kind: 'wait_for_event',
                config: { event_type: 'part.done', match: { n: '${{ item }}' } },
              },
            ],
            output: { n: '${{ steps.one.output.event.n }}' },
          },
        },
      ],
    },
  })
  await until(
    () => s.ok('run.steps', { id }),
    (answer) => listOf(answer).filter(({ status }) => status === 'suspended').length === 21,
  )
  await s.ok('event.publish_many', {
    events: items.toReversed().map((n) => ({ event_type: 'part.done', event: { n } })),
  })
  t.match(await ended(s, id), {
    status: 'completed',
    result: { all: { completed: 20, results: items.map((n) => ({ n })) } },
  })
})

t.test('the catalog lists the events that triggers and waits can name', async (t) => {
  const catalog = await s.ok('catalog.events')
  t.strictSame(
    listOf(catalog).map(({ prefix, kind, readiness }) => [prefix, kind, readiness].join(' ')),
    ['artifact', 'check', 'http_trigger', 'interaction', 'loop', 'run', 'session', 'table'].map(
      (prefix) => `${prefix} capability ready`,
    ),
  )
  t.match(
    listOf(catalog).find(({ prefix }) => prefix === 'table'),
    {
      readiness: 'ready',
      display_name: 'Tables',
      event_types: [
        {
          name: 'table.row.inserted',
          description: /./,
          event_schema: { type: 'object', properties: { data: { type: 'object' } } },
          meta_schema: { required: ['table_name', 'table_id', 'row_id'] },
        },
        {},
        {},
      ],
    },
  )
  t.match(listOf(catalog).find(({ prefix }) => prefix === 'run')?.['event_types'], [
    { name: 'run.completed', event_schema: { properties: { loop_name: {} } } },
    { name: 'run.failed', event_schema: { properties: { stop_reason: {} } } },
    { name: 'run.cancelled', event_schema: { properties: { stop_reason: {} } } },
    {},
    {},
  ])
  t.strictSame(
    listOf(catalog, 'reserved_prefixes').map(({ prefix }) => prefix),
    ['signal', 'loop_run', 'schedule', 'channel', 'test', 'email'],
    'the email prefix is reserved if email is not configured',
  )
})
