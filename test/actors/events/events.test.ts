/**
 * The actor `events`, the matcher of a project, command by command: what it stores, which messages
 * it sends, and what a repeat changes.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import { reducePayload } from '../../../actors/events/reduce-payload.ts'
import type { SourcesState } from '../../../actors/events/state.ts'
import {
  type ConditionFaults,
  defaultTriggerLimits,
  MAX_CHAIN_DEPTH,
  type Publication,
  type Watch,
} from '../../../protocol/events/sources.ts'
import { given, type Scene, START } from '../../support/given.ts'

const actor = defineActor(eventsActor(defaultTriggerLimits))
const DAY_MS = 86_400_000
const scene = (): Scene<SourcesState> => given<SourcesState>(actor)
const said = (more: Partial<Publication> = {}): Publication => ({
  event_type: 'order.paid',
  source_kind: 'custom',
  source_id: 'shop',
  event: { n: 1 },
  meta: {},
  depth: 0,
  ...more,
})
const publish = (from: Scene<SourcesState>, more: Partial<Publication> = {}, at = START) =>
  from.when('source.publish', said(more), { at })
const triggers = (
  from: Scene<SourcesState>,
  list: readonly Partial<Watch>[],
  version = 1,
  loop_id = 'loop_1',
) =>
  from.when('triggers.set', {
    loop_id,
    version,
    triggers: list.map((one, i) => ({
      trigger_id: `trg_${i + 1}`,
      event_type: 'order.paid',
      ...one,
    })),
  })
const fired = (from: Scene<SourcesState>, more: Partial<Publication> = {}): readonly string[] =>
  Object.values((publish(from, more).events[0]?.['fires'] ?? {}) as Record<string, string[]>).flat()

t.test('a published event is stored and sent to matching triggers and waits', async (t) => {
  const from = triggers(scene(), [{}, { condition: 'event.n == 2' }]).when('wait.watch', {
    run_id: 'run_1',
    wait: { wait_id: 'wait_1', event_type: 'order.*', match: { n: 1 } },
  })
  t.strictSame(from.effects, [
    {
      tell: {
        to: { kind: 'run', id: 'run_1' },
        name: 'event.watched',
        input: { wait_id: 'wait_1' },
      },
    },
  ])
  const after = publish(from, { meta: { by: 'ada' }, depth: 2 })
  t.strictSame(after.reply, { source_event_id: 'sevt_1' })
  t.match(after.events, [
    {
      type: 'source.published',
      id: 'sevt_1',
      event_type: 'order.paid',
      event: { n: 1 },
      meta: { by: 'ada' },
      depth: 2,
      occurred_at: '2026-01-01T00:00:00.000Z',
      fires: { loop_1: ['trg_1'] },
      wakes: { run_1: ['wait_1'] },
    },
  ])
  const source = {
    id: 'sevt_1',
    event_type: 'order.paid',
    source_kind: 'custom',
    source_id: 'shop',
    event: { n: 1 },
    meta: { by: 'ada' },
    depth: 2,
    occurred_at: '2026-01-01T00:00:00.000Z',
  }
  t.strictSame(after.effects, [
    {
      tell: {
        to: { kind: 'run', id: 'run_1' },
        name: 'event.deliver',
        input: {
          source_event_id: 'sevt_1',
          event_type: 'order.paid',
          source_kind: 'custom',
          source_id: 'shop',
          event: { n: 1 },
          meta: { by: 'ada' },
          wait_ids: ['wait_1'],
        },
      },
    },
    {
      tell: {
        to: { kind: 'loop', id: 'loop_1' },
        name: 'trigger.fire',
        input: { trigger_id: 'trg_1', source },
      },
    },
  ])
  const gone = after.when('wait.unwatch', { run_id: 'run_1', wait_id: 'wait_1' })
  t.strictSame(gone.ask('listening'), { triggers: 2, waits: 0 })
  t.strictSame(
    gone.when('wait.unwatch', { run_id: 'run_1', wait_id: 'wait_1' }).events,
    [],
    'a repeat changes nothing',
  )
  t.notOk('wakes' in (publish(gone).events[0] ?? {}))
})

t.test('a deduplication key publishes once a day, and is kept for up to two days', async (t) => {
  const first = publish(scene(), { dedup_key: 'custom:a' })
  t.strictSame(
    publish(first, { dedup_key: 'custom:a', event: { n: 9 } }, START + DAY_MS - 1).reply,
    {
      source_event_id: 'sevt_1',
      deduped: true,
    },
  )
  t.strictSame(publish(first, { dedup_key: 'custom:a' }, START + DAY_MS - 1).events, [])
  const later = publish(first, { dedup_key: 'custom:b' }, START + DAY_MS)
  t.match(
    publish(later, { dedup_key: 'custom:a' }).reply,
    { deduped: true },
    'the generation before is still known',
  )
  const latest = publish(later, { dedup_key: 'custom:c' }, START + 2 * DAY_MS)
  t.equal(publish(latest, { dedup_key: 'custom:a' }).events.length, 1, 'two days later it is not')
  t.match(publish(latest, { dedup_key: 'custom:b' }).reply, { deduped: true })
  for (const key of ['__proto__', 'constructor', 'toString'])
    t.equal(publish(publish(scene(), { dedup_key: key }), { dedup_key: key }).events.length, 0, key)
})

t.test('a client publishes one event or many; a repeated key counts once', async (t) => {
  const one = scene().when('event.publish', {
    project: 'p',
    event_type: 'order.paid',
    ids: ['sevt_a'],
    idempotency_key: 'k',
  })
  t.match(one.events, [
    {
      id: 'sevt_a',
      source_kind: 'custom',
      source_id: 'user_1',
      event: {},
      meta: {},
      depth: 0,
      dedup_key: 'custom:k',
    },
  ])
  t.strictSame(one.reply, { source_event_id: 'sevt_a', status: 'accepted' })
  t.strictSame(
    one.when('event.publish', {
      project: 'p',
      event_type: 'other.kind',
      ids: ['sevt_b'],
      idempotency_key: 'k',
    }).reply,
    { source_event_id: 'sevt_a', deduped: true, status: 'accepted' },
  )
  t.strictSame(
    one.when('event.publish', {
      project: 'p',
      event_type: 'order.paid',
      ids: ['sevt_b'],
      idempotency_key: ' k ',
    }).reply,
    { source_event_id: 'sevt_a', deduped: true, status: 'accepted' },
    'keys are trimmed',
  )
  const blank = (scene: typeof one, id: string) =>
    scene.when('event.publish', {
      project: 'p',
      event_type: 'order.paid',
      ids: [id],
      idempotency_key: ' ',
    })
  t.strictSame(
    blank(blank(one, 'sevt_c'), 'sevt_d').reply,
    { source_event_id: 'sevt_d', status: 'accepted' },
    'and a blank key counts as none',
  )
  const event = (idempotency_key?: string) => ({
    event_type: 'order.paid',
    ...(idempotency_key && { idempotency_key }),
  })
  const many = one.when('event.publish_many', {
    project: 'p',
    ids: ['sevt_1', 'sevt_2', 'sevt_3', 'sevt_4'],
    events: [event(), event('x'), event('x'), event('k')],
  })
  t.strictSame(
    many.events.map(({ id }) => id),
    ['sevt_1', 'sevt_2'],
  )
  t.strictSame(many.reply, {
    items: [
      { source_event_id: 'sevt_1' },
      { source_event_id: 'sevt_2' },
      { source_event_id: 'sevt_2', deduped: true },
      { source_event_id: 'sevt_a', deduped: true },
    ],
  })
  t.strictSame(
    one.when('event.publish_many', { project: 'p', ids: ['sevt_1'], events: [event()] }).reply,
    { items: [] },
    'the edge knows the ids of new ones',
  )
})

t.test('patterns match whole segments, and never signals or internal events', async (t) => {
  const from = triggers(scene(), [
    { event_type: 'table.row.inserted' },
    { event_type: 'table.*' },
    { event_type: 'table.row.*' },
    { event_type: 'tab.*' },
    { event_type: 'signal.*' },
    { event_type: 'schedule.*' },
    { event_type: 'signal.go' },
    { event_type: 'schedule.tick' },
  ])
  t.strictSame(fired(from, { event_type: 'table.row.inserted' }).toSorted(), [
    'trg_1',
    'trg_2',
    'trg_3',
  ])
  t.strictSame(fired(from, { event_type: 'table.row' }), ['trg_2'])
  t.strictSame(fired(from, { event_type: 'table' }), [])
  t.strictSame(fired(from, { event_type: 'tables.row.x' }), [])
  for (const event_type of ['signal.go', 'schedule.tick'])
    t.strictSame(fired(from, { event_type }), [], event_type)
})

t.test('a source filter matches the exact source or the parent of the event', async (t) => {
  const from = triggers(scene(), [
    { source_id: 'shop' },
    { source_id: 'orders' },
    { source_id: 'tbl_1' },
    { source_id: 'wfd_1' },
  ])
  t.strictSame(fired(from), ['trg_1'])
  t.strictSame(
    [
      ...fired(from, {
        source_kind: 'table_row',
        source_id: 'row_1',
        meta: { table_name: 'orders', table_id: 'tbl_1' },
      }),
    ].sort(),
    ['trg_2', 'trg_3'],
  )
  t.strictSame(
    fired(from, { source_kind: 'custom', meta: { table_name: 'orders', definition_id: 'wfd_1' } }),
    ['trg_1'],
    'of another kind, these names mean nothing',
  )
  t.strictSame(
    fired(from, { source_kind: 'loop_run', source_id: 'run_1', meta: { definition_id: 'wfd_1' } }),
    ['trg_4'],
  )
})

t.test('a condition that is false or fails does not match; failures are counted', async (t) => {
  const from = triggers(scene(), [
    { condition: 'event.n > 0 && meta.by == null' },
    { condition: 'event.n' },
    { condition: 'event.n +' },
    { condition: 'steps.a == 1' },
    { condition: '${{ event.n == 1 }}' },
    { condition: 'event.nothing' },
  ])
  const after = publish(publish(from), { event: { n: 2 } })
  t.strictSame(fired(from), ['trg_1', 'trg_5'])
  const faults = after.ask('faults', { loop_id: 'loop_1' }) as Record<string, ConditionFaults>
  t.strictSame(Object.keys(faults).sort(), ['trg_2', 'trg_3'])
  t.match(faults['trg_2'], {
    count: 2,
    last: { source_event_id: String, at: String, message: String },
  })
  t.strictSame(
    after.effects.flatMap((effect) => ('warn' in effect ? [effect.warn.about] : [])).sort(),
    ['trg_2', 'trg_3'],
  )
  t.strictSame(triggers(after, [{ condition: 'true' }], 2).ask('faults', { loop_id: 'loop_1' }), {})
})

t.test('the trigger list with the highest version counts, whatever arrives later', async (t) => {
  const from = triggers(triggers(scene(), [{}, {}], 2), [{}], 1)
  t.strictSame(from.events, [])
  t.strictSame(fired(from), ['trg_1', 'trg_2'])
  const none = triggers(from, [], 3)
  t.strictSame(fired(none), [])
  t.strictSame(triggers(none, [{}], 2).events, [], 'older than its removal')
})

t.test('events of runs are stored only while a listener exists', async (t) => {
  const run = {
    event_type: 'run.completed',
    source_kind: 'loop_run',
    source_id: 'run_1',
    meta: { run_id: 'run_1' },
  }
  t.strictSame(publish(scene(), run).events, [])
  t.strictSame(publish(scene(), run).reply, { source_event_id: '' })
  t.equal(
    publish(triggers(scene(), [{ event_type: 'run.*', condition: 'false' }]), run).events.length,
    1,
  )
  t.equal(publish(scene(), { event_type: 'interaction.resolved' }).events.length, 1)
  t.equal(
    publish(scene(), { event_type: 'signal.go', id: 'sevt_given' }).events[0]?.['id'],
    'sevt_given',
  )
})

t.test('an event whose chain is too long starts no run but resumes waiting ones', async (t) => {
  const from = triggers(scene(), [{}]).when('wait.watch', {
    run_id: 'run_1',
    wait: { wait_id: 'wait_1', event_type: 'order.paid' },
  })
  t.strictSame(fired(from, { depth: MAX_CHAIN_DEPTH }), ['trg_1'])
  t.strictSame(
    fired(from, { depth: MAX_CHAIN_DEPTH + 1 }),
    ['trg_1'],
    'the loop is notified, starts no run, and shows the reason',
  )
  t.match(publish(from, { depth: MAX_CHAIN_DEPTH + 1 }).events, [{ wakes: { run_1: ['wait_1'] } }])
})

t.test('a large event loses its largest members', async (t) => {
  const large = 'x'.repeat(200_000)
  t.strictSame(reducePayload({ a: large, n: 1 }), { a: large, n: 1 })
  t.strictSame(reducePayload({ a: large, b: `${large}y`, n: 1 }), {
    a: large,
    b: null,
    n: 1,
    truncated: true,
  })
  t.strictSame(
    reducePayload(Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`name${i}`, i]))),
    { truncated: true },
  )
  t.match(publish(scene(), { event: { a: large, b: large } }).events, [
    { event: { a: null, b: large, truncated: true } },
  ])
})

t.test('an event of a private session fires triggers and does nothing else', async (t) => {
  const broken = { trigger_id: 'trg_2', condition: 'event.n' }
  const from = triggers(scene(), [{}, broken]).when('wait.watch', {
    run_id: 'run_1',
    wait: { wait_id: 'wait_1', event_type: 'order.*' },
  })
  t.match(publish(from).events, [{ wakes: { run_1: ['wait_1'] }, faulty: { trg_2: /./ } }])
  const after = publish(from, { private_session: 'ses_1' })
  t.match(after.events, [
    {
      fires: { loop_1: ['trg_1'] },
      private_session: 'ses_1',
      wakes: undefined,
      faulty: undefined,
    },
  ])
  t.match(after.effects, [
    { tell: { name: 'trigger.fire', input: { source: { private_session: 'ses_1' } } } },
  ])
  const limited = given<SourcesState>(defineActor(eventsActor({ per_root: 0, per_minute: 0 })))
  const overruns = (more: Partial<Publication>) =>
    publish(triggers(limited, [{}]), { depth: 1, ...more }).events[0]?.['overruns']
  t.match(overruns({}), { loop_1: {} })
  t.equal(overruns({ private_session: 'ses_1' }), undefined)
})
