/**
 * Format 3 of envelopes: the restored entries equal the written ones, views get all the data that
 * they read, and the released form stays readable.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  type EnvelopeWriter,
  envelopeWriter,
  parseEnvelope,
} from '../../../nodes/host/memory/codec.ts'
import type { Entry, Event, Origin } from '../../../protocol/entry.ts'

const system: Origin = { at: 5, principal: { type: 'system', id: 'sys"1' } }
const entryOf = (fields: Partial<Entry>): Entry => ({
  project: 'prj_1',
  kind: 'run',
  id: 'run_1',
  command: { id: 'c1', name: 'x' },
  origin: system,
  events: [],
  prev: 0,
  ...fields,
})
const written = (entries: readonly Entry[]): EnvelopeWriter => {
  const writer = envelopeWriter(3)
  for (const entry of entries) writer.add(entry)
  return writer
}
const head = { epoch: 7, prev: 12 }
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const object = fc.dictionary(fc.constantFrom('a', 'b', 'é"\n', '__proto'), fc.jsonValue())
const payloads = [{ a: 1 }, { a: 1 }, { deep: [{ b: '\n"hidden":' }] }]
const events = fc.array(
  fc.record(
    {
      type: fc.constantFrom('run.created', 'job.queued', 'job.claimed', 'job.completed'),
      payload: fc.constantFrom(...payloads),
      private: object,
      header: fc.record(
        { kind: fc.constantFrom('turn', 'delivery'), workers_only: fc.constant(true) },
        { requiredKeys: ['kind'] },
      ),
      job: fc.record({ kind: fc.constantFrom('turn') }),
    },
    { requiredKeys: ['type'] },
  ),
  { maxLength: 8 },
)
const origins = fc.constantFrom<Origin>(
  system,
  { ...system },
  {
    at: 6,
    principal: { type: 'user', id: 'user_1', name: 'Zoë' },
    credential: { type: 'api_key', id: 'key_1' },
    request_id: 'req_1',
    ip: '::1',
    user_agent: 'x',
  },
)
const entries = fc.array(
  fc.record({
    project: fc.constantFrom('prj_1', 'prj_2'),
    kind: fc.constantFrom<Entry['kind']>('run', 'queue', 'session'),
    origin: origins,
    events: events as fc.Arbitrary<Event[]>,
    command: fc.constantFrom<Entry['command']>(
      { id: 'c1', name: 'x' },
      { id: 'c2', name: 'y', fingerprint: 'f' },
    ),
    reply: fc.option(fc.jsonValue(), { nil: undefined }),
    prev: fc.integer({ min: -9, max: 9000 }),
  }),
  { maxLength: 5 },
)

t.test('entries are restored; views get all but what they do not read', async (t) => {
  fc.assert(
    fc.property(entries, (some) => {
      const all = some.map(entryOf)
      const json = written(all).json(head)
      t.strictSame(parseEnvelope(json), { v: 1, ...head, entries: stored(all) })
      const { entries: seen } = parseEnvelope(json, false)
      const read = all.map(({ reply: _, ...entry }) => ({
        ...entry,
        events: entry.events.map((event) => shownOf(entry.kind, event as never)),
      }))
      t.strictSame(seen, stored(read))
    }),
    { numRuns: 200 },
  )
})
interface Any extends Event {
  readonly private?: unknown
  readonly header?: { readonly kind: string; readonly workers_only?: true }
  readonly job?: { readonly kind: string }
}
function shownOf(kind: Entry['kind'], event: Any): Event {
  const { private: secret, header, ...rest } = event
  if (kind === 'run') return { ...rest, ...(header && { header }) }
  const hidden =
    kind === 'queue' &&
    (event.type === 'job.claimed' || (header?.kind === event.job?.kind && !header?.workers_only))
  return {
    ...rest,
    ...(secret !== undefined && { private: secret }),
    ...(header && !hidden && { header }),
  } as Event
}

t.test('repeated data is written once and shared in memory', async (t) => {
  const payload = { text: 'a'.repeat(1000) }
  const type = 'step.suspended'
  const all = [1, 2].map((n) =>
    entryOf({ id: `run_${n}`, events: [1, 2, 3].map(() => ({ type, payload }) as Event) }),
  )
  const json = written(all).json(head)
  t.ok(json.length < 2600, `${json.length} characters`)
  const [one, two] = parseEnvelope(json).entries
  const [first, second, third] = (one?.events ?? []) as (Event & { payload: unknown })[]
  t.equal(one?.origin, two?.origin)
  t.equal(first?.payload, second?.payload)
  t.equal(first?.payload, third?.payload)
  const many = entryOf({ events: Array.from({ length: 40 }, () => ({ type, payload }) as Event) })
  t.ok(
    written([many]).json(head).length > 10_000,
    'the size of an entry stays in proportion to its JSON',
  )
})

t.test('the released form stays readable', async (t) => {
  const json =
    '{"v":3,"epoch":7,"prev":12,"projects":["prj_1"],' +
    '"actors":[{"type":"user","id":"user_1"},{"type":"api_key","id":"key_1"}],' +
    '"origins":[{"at":5,"principal":0,"credential":1,"ip":"::1"},{"at":6,"principal":0}],' +
    '"entries":[[0,"run","run_1","c1","run.start",0,-3,[{"type":"a","payload":{"x":1}},' +
    '{"type":"b","step":"s","payload":0}],"f"],' +
    '[0,"queue","1.q","c2","queue.claim",1,9001,[{"type":"job.claimed","id":"job_1"}]]],\n' +
    '"hidden":[{"reply":{"ok":true},"events":[[1,{"engine":{}}]]},{"events":[[0,{"id":"job_1"}]]}]}'
  const origin = {
    at: 5,
    principal: { type: 'user', id: 'user_1' },
    credential: { type: 'api_key', id: 'key_1' },
    ip: '::1',
  } as const
  const all: Entry[] = [
    entryOf({
      command: { id: 'c1', name: 'run.start', fingerprint: 'f' },
      origin,
      events: [
        { type: 'a', payload: { x: 1 } },
        { type: 'b', step: 's', payload: { x: 1 }, private: { engine: {} } },
      ] as unknown as Event[],
      prev: -3,
      reply: { ok: true },
    }),
    entryOf({
      kind: 'queue',
      id: '1.q',
      command: { id: 'c2', name: 'queue.claim' },
      origin: { at: 6, principal: origin.principal },
      events: [{ type: 'job.claimed', id: 'job_1', header: { id: 'job_1' } } as Event],
      prev: 9001,
    }),
  ]
  t.strictSame(parseEnvelope(json).entries, all)
})
