/**
 * Schedules, firings, budgets and handles of a loop. `admission.model.test.ts` covers the admission
 * of runs.
 */
import t from 'tap'
import { triggerHandle } from '../../../actors/loops/http-trigger/handle.ts'
import { MAX_CHAIN_DEPTH } from '../../../protocol/events/sources.ts'
import { given } from '../../support/given.ts'
import { ORGANIZATION, START, Yard } from './yard.ts'

const made = (more: Record<string, unknown> = {}): Yard => {
  const yard = new Yard()
  yard.create(more)
  return yard
}
const save = (yard: Yard, more: Record<string, unknown>) =>
  yard.send('loop.update', { organization: ORGANIZATION, ...more })
const often = [{ kind: 'schedule', key: 'often', config: { interval: '1m' } }]
const scheduled = (yard: Yard) =>
  [...yard.runs.values()].map(
    ({ opening }) => (opening['event'] as Record<string, unknown>)['scheduled_at'],
  )

t.test(
  'a schedule fires once at each due time, and once for all times missed during a long outage',
  async (t) => {
    const yard = made({ triggers: often })
    const due = () => yard.actor.deadline?.(yard.state as never)
    t.equal(due(), START + 60_000)
    yard.send('wake')
    t.equal(yard.runs.size, 0, 'waking early is harmless')
    yard.now = START + 60_000
    yard.send('wake')
    yard.send('wake')
    t.strictSame(scheduled(yard), ['2026-01-01T00:01:00.000Z'])
    t.equal(due(), START + 120_000)
    yard.now = START + 3_600_000 + 30_000
    yard.send('wake')
    t.strictSame(scheduled(yard), ['2026-01-01T00:01:00.000Z', '2026-01-01T01:00:00.000Z'])
    t.equal(due(), START + 3_660_000)
  },
)

t.test(
  'a change keeps the clocks of unchanged schedules, and a pause removes all clocks',
  async (t) => {
    const yard = made({
      triggers: [...often, { kind: 'schedule', key: 'cron', config: { cron: '30 * * * *' } }],
    })
    yard.now = START + 10_000
    const ids = yard.state.trigger_ids
    save(yard, {
      triggers: [{ kind: 'schedule', key: 'cron', config: { cron: '45 * * * *' } }, ...often],
    })
    t.strictSame(yard.state.trigger_ids, ids)
    t.strictSame(yard.state.clocks[ids['often'] ?? ''], { next: START + 60_000, anchor: START })
    t.equal(yard.state.clocks[ids['cron'] ?? '']?.next, START + 45 * 60_000)
    save(yard, { status: 'paused' })
    t.strictSame(yard.state.clocks, {})
    yard.now = START + 7_200_000
    save(yard, { status: 'active' })
    t.equal(
      yard.state.clocks[ids['often'] ?? '']?.next,
      yard.now + 60_000,
      'times missed during the pause do not fire later',
    )
  },
)

t.test('an event starts one run per trigger, or none if its chain is too long', async (t) => {
  const yard = made({ triggers: [{ kind: 'event', key: 'e', config: { event_type: 'order.*' } }] })
  yard.fire('e', 'sevt_1')
  yard.fire('e', 'sevt_1')
  t.equal(yard.runs.size, 1)
  yard.end([...yard.runs.keys()][0] ?? '')
  yard.fire('e', 'sevt_1')
  t.equal(yard.runs.size, 1, 'also after the run has ended')
  yard.fire('e', 'sevt_2', MAX_CHAIN_DEPTH)
  t.equal(yard.runs.size, 2)
  yard.fire('e', 'sevt_3', MAX_CHAIN_DEPTH + 1)
  t.match(yard.events, [
    { type: 'trigger.skipped', reason: 'The event was caused by a chain of more than 8 runs.' },
  ])
  for (let i = 0; i < 2100; i++) yard.fire('e', `sevt_many_${i}`, MAX_CHAIN_DEPTH + 1)
  t.equal(yard.state.fired.length, 2000, 'the number of remembered events is limited')
  t.match([...yard.runs.values()][0]?.opening, {
    source: { type: 'trigger', trigger_id: yard.state.trigger_ids['e'] },
    meta: {
      event_type: 'order.paid',
      source_event_id: 'sevt_1',
      trigger: { key: 'e', kind: 'event' },
    },
  })
})

t.test('a skipped start is counted with its reason, until the next version', async (t) => {
  const yard = made({
    event: { n: { type: 'number', required: true } },
    triggers: [
      { kind: 'event', key: 'e', config: { event_type: 'order.*' } },
      ...often,
      { kind: 'manual', key: 'm' },
    ],
  })
  const shown = () => {
    const all = yard.actor.ask?.['triggers']?.(
      yard.state as never,
      undefined as never,
      yard.now,
    ) as readonly Record<string, unknown>[]
    return all.map((trigger) => [trigger['skipped_starts'], trigger['last_skipped_start']])
  }
  yard.fire('e', 'sevt_1')
  yard.fire('e', 'sevt_1')
  yard.now = START + 60_000
  yard.send('wake')
  const unfit = {
    at: '2026-01-01T00:00:00.000Z',
    reason: 'event.n: is required',
    source_event_id: 'sevt_1',
  }
  t.strictSame(shown(), [
    [1, unfit],
    [1, { at: '2026-01-01T00:01:00.000Z', reason: 'event.n: is required' }],
    [undefined, undefined],
  ])
  yard.fire('e', 'sevt_2', 9)
  t.strictSame(shown()[0], [
    2,
    {
      at: '2026-01-01T00:01:00.000Z',
      reason: 'The event was caused by a chain of more than 8 runs.',
      source_event_id: 'sevt_2',
    },
  ])
  save(yard, { description: 'x' })
  t.equal(shown()[0]?.[0], 2)
  save(yard, { event: {}, concurrency: 'skip' })
  t.strictSame(shown().flat(), [undefined, undefined, undefined, undefined, undefined, undefined])
  yard.fire('e', 'sevt_3')
  yard.fire('e', 'sevt_4')
  t.match(shown()[0], [
    1,
    {
      reason: 'A run of the loop is active, and its concurrency is skip.',
      source_event_id: 'sevt_4',
    },
  ])
})

t.test('an update event names the changed definition members without their values', async (t) => {
  const yard = made({ settings: { a: 1 } })
  const changes = (more: Record<string, unknown>) => {
    save(yard, more)
    return yard.events.flatMap((event) => (event.type === 'loop.updated' ? [event.changes] : []))
  }
  t.strictSame(changes({ limits: { max_steps: 5 }, name: 'M' }), [
    { limits: {}, name: { from: 'L', to: 'M' }, version: { from: 1, to: 2 } },
  ])
  t.strictSame(changes({ settings: { a: 2 }, secrets: {} }), [{ settings: {} }])
  t.strictSame(
    changes({ settings: { a: 2 }, secrets: { e: 'sealed' } }),
    [{ settings: {} }],
    'a secret alone',
  )
})

t.test('an exhausted daily budget refuses starts until the next day', async (t) => {
  const yard = made({ limits: { daily_credit_budget: 10 } })
  yard.start()
  const [id = ''] = yard.in('running')
  yard.send('run.spent', { run_id: id, milli: 9000 })
  t.notOk((yard.start() as { refused?: string }).refused)
  yard.send('run.spent', { run_id: id, milli: 1000 })
  t.match(yard.start(), {
    refused: 'budget_exhausted',
    details: { daily_credit_budget: 10, credit_spent: 10 },
  })
  yard.now += 86_400_000 + 300_000
  t.notOk((yard.start() as { refused?: string }).refused, 'starts are accepted a day later')
})

t.test('a completed run resets the count of consecutive failures', async (t) => {
  const yard = made({ limits: { pause_after_consecutive_failures: 2 } })
  for (const status of ['failed', 'cancelled', 'completed', 'failed', 'cancelled']) {
    yard.start()
    yard.end(yard.in('running')[0] ?? '', status)
  }
  t.match([yard.state.failures, yard.state.record?.status], [1, 'active'])
  yard.start()
  yard.end(yard.in('running')[0] ?? '', 'failed')
  t.match(
    yard.events.filter(({ type }) => type === 'loop.auto_paused'),
    [{ consecutive_failures: 2, threshold: 2 }],
  )
  t.match(
    yard.actor.react?.['loop.auto_paused']?.(
      yard.events.find(({ type }) => type === 'loop.auto_paused') as never,
      { project: 'p', kind: 'loop', id: 'l' },
    ),
    [
      {
        tell: {
          to: { kind: 'events', id: 'p' },
          name: 'source.publish',
          input: { event_type: 'loop.auto_paused' },
        },
      },
    ],
  )
  t.match(yard.start(), { refused: 'loop_paused' })
})

t.test('events are watched while the loop is active, and changes are published', async (t) => {
  const yard = made({
    triggers: [
      { kind: 'event', key: 'e', config: { event_type: 'a.b', condition: 'event.n > 1' } },
      { kind: 'http', key: 'h' },
    ],
  })
  const told = () => yard.events.filter(({ type }) => type === 'triggers.watched')
  const [e, h] = [yard.state.trigger_ids['e'], yard.state.trigger_ids['h']]
  t.match(told(), [
    {
      version: 1,
      triggers: [
        { trigger_id: e, event_type: 'a.b', condition: 'event.n > 1' },
        { trigger_id: h, event_type: 'http_trigger.received', source_id: h },
      ],
    },
  ])
  save(yard, { description: 'x' })
  t.strictSame(told(), [])
  save(yard, { status: 'paused' })
  t.match(told(), [{ version: 2, triggers: [] }])
  t.match(yard.state.record?.triggers?.[1], { kind: 'http', config: { http_handle: h } })
})

t.test('a trigger on an event that nothing publishes is saved and logs a warning', async (t) => {
  const types = ['table.column.*', 'run.*', 'order.paid', 'table.column.*', 'artifact.moved', 'x']
  const yard = made({
    triggers: types.map((event_type, at) => ({
      kind: 'event',
      key: `${at}`,
      config: { event_type },
    })),
  })
  t.equal(yard.state.record?.triggers?.length, types.length)
  const [watched] = yard.events.filter(({ type }) => type === 'triggers.watched')
  const effects = yard.actor.react?.['triggers.watched']?.(
    watched as never,
    {
      project: 'p',
    } as never,
  )
  t.match(effects, [
    { tell: { name: 'triggers.set' } },
    {
      warn: {
        about: yard.id,
        event: 'trigger_event_unpublished',
        message: 'loop triggers watch event types that nothing publishes',
        fields: {
          loop_id: yard.id,
          project: 'p',
          event_types: 'table.column.*, artifact.moved',
          trigger_ids: ['0', '3', '4'].map((key) => yard.state.trigger_ids[key]).join(', '),
        },
      },
    },
  ])
  save(yard, { triggers: [{ kind: 'event', key: 'a', config: { event_type: 'check.failed' } }] })
  const [later] = yard.events.filter(({ type }) => type === 'triggers.watched')
  const after = yard.actor.react?.['triggers.watched']?.(later as never, { project: 'p' } as never)
  t.match(after, [{ tell: { name: 'triggers.set' } }])
  t.equal(after?.length, 1)
})

t.test('a handle needs a live reservation and stays with its trigger', async (t) => {
  const hook = (http_handle?: string) => [
    { kind: 'http', key: 'h', ...(http_handle && { config: { http_handle } }) },
  ]
  const yard = new Yard()
  t.match(yard.create({ triggers: hook('mine') }), { refused: 'service_unavailable' })
  t.match(yard.create({ triggers: hook('mine'), reserved: { mine: START - 1 } }), {
    refused: 'service_unavailable',
  })
  t.match(yard.create({ triggers: hook('mine'), reserved: { mine: START } }), {
    triggers: [{ config: { http_handle: 'mine' } }],
  })
  t.match(
    yard.events.filter(({ type }) => type.startsWith('handle.')),
    [{ type: 'handle.bound', handle: 'mine', organization: ORGANIZATION }],
  )
  save(yard, { triggers: hook() })
  t.strictSame(
    yard.events.filter(({ type }) => type.startsWith('handle.')),
    [],
    'left out, it stays',
  )
  save(yard, { triggers: hook('other'), reserved: { other: START + 1 } })
  t.match(
    yard.events.filter(({ type }) => type.startsWith('handle.')),
    [
      { type: 'handle.freed', handle: 'mine' },
      { type: 'handle.bound', handle: 'other' },
    ],
  )
  for (const [handle, type] of [
    ['mine', 'handle.freed'],
    ['other', 'handle.bound'],
  ] as const) {
    yard.send('handle.settle', { handle, organization: ORGANIZATION })
    t.match(yard.events, [{ type, handle }])
  }
})

t.test('an unused reservation expires', async (t) => {
  const scene = given<object>(triggerHandle).when('handle.reserve', {
    handle: 'h',
    project: 'p',
    loop_id: 'l1',
  })
  t.match(scene.reply, { until: scene.at + 60_000 })
  t.equal(
    scene.when('handle.reserve', { handle: 'h', project: 'p', loop_id: 'l2' }).refused?.refused,
    'already_exists',
  )
  t.notOk(scene.when('handle.reserve', { handle: 'h', project: 'p', loop_id: 'l1' }).refused)
  t.equal(scene.deadline(), scene.at + 120_000)
  t.strictSame(scene.when('wake').events, [])
  const asked = scene.when('wake', {}, { at: scene.at + 120_000 })
  t.match(asked.events, [{ type: 'handle.questioned', loop_id: 'l1' }])
  t.strictSame(asked.when('handle.free', { loop_id: 'l2' }).events, [])
  const freed = asked.when('handle.free', { loop_id: 'l1' })
  t.equal(freed.deadline(), undefined)
  const bound = freed.when('handle.bind', {
    handle: 'h',
    project: 'p',
    loop_id: 'l2',
    trigger_id: 't2',
  })
  t.match(bound.ask('owner', { handle: 'h' }), { project: 'p', loop_id: 'l2', trigger_id: 't2' })
  t.equal(bound.ask('owner', { handle: 'another with this id' }), null)
  t.strictSame(
    bound.when('handle.bind', { handle: 'h', project: 'p', loop_id: 'l1', trigger_id: 't1' })
      .events,
    [],
    'a late binding has no effect',
  )
  t.strictSame(
    bound.when('handle.free', { loop_id: 'l2', trigger_id: 't0' }).events,
    [],
    'nor does the end of another trigger',
  )
})

t.test('a run that a step started has the source of the requesting run', async (t) => {
  const yard = made()
  const from = { run_id: 'run_9', step: 'call', wait_id: 'wait_1' }
  const ask = (more: object) => {
    yard.send('loop.ask', { from, event: {}, config: {}, depth: 1, ...more })
    return [...yard.runs.values()].at(-1)?.opening
  }
  t.match(ask({ initiated_by: 'ci', source: { type: 'api', id: 'key_1', label: 'ci' } }), {
    initiated_by: 'ci',
    source: { type: 'api', id: 'key_1', label: 'ci' },
  })
  t.match(
    ask({}),
    { initiated_by: undefined, source: { type: 'api', id: 'run_9' } },
    'which may be of an older release',
  )
})

t.test('a trigger key may have the name of a member of Object.prototype', async (t) => {
  const keys = ['__proto__', 'constructor', 'toString']
  const triggers = keys.map((key) => ({ kind: 'http', key }))
  const yard = made({ triggers })
  const handles = () =>
    (yard.state.record?.triggers ?? []).map((trigger) =>
      trigger.kind === 'http' ? trigger.config?.http_handle : undefined,
    )
  const first = handles()
  t.equal(new Set(first).size, keys.length, 'each trigger has a handle of its own')
  for (const handle of first) t.match(handle, /^\w+$/)
  save(yard, { triggers: [...triggers].reverse() })
  t.strictSame(handles(), [...first].reverse(), 'a change keeps the handles')
})
