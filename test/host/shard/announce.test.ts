/** Large entries are published to followers in chunks. */
import fc from 'fast-check'
import t from 'tap'
import { announce, chunksOf } from '../../../nodes/host/effects/announce.ts'
import { envelopeWriter } from '../../../nodes/host/memory/codec.ts'
import { type Event, lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import { MemoryBus } from '../../support/memory.ts'

const fail = (error: unknown): never => {
  throw error
}
const entryOf = (texts: readonly string[]): PlacedEntry => ({
  cursor: 7000,
  entry: {
    project: 'prj_1',
    kind: 'session',
    id: 'ses_1',
    command: { id: 'c1', name: 'x' },
    origin: { at: 0, principal: { type: 'user', id: 'user_1' } },
    events: texts.map((text) => ({ type: 'said', text })),
    prev: 6005,
    reply: { large: 'answer' },
  },
})

t.test('the chunks of an entry contain its events in order and without a gap', async (t) => {
  const text = fc.oneof(fc.nat(100), fc.nat(300_000)).map((size) => 'x'.repeat(size))
  void fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 12 }), (texts) => {
      const whole = entryOf(texts)
      const chunks = chunksOf(whole)
      t.strictSame(
        chunks.flatMap(({ entry }) => entry.events),
        whole.entry.events,
      )
      let prev = whole.entry.prev
      let next = whole.cursor
      for (const chunk of chunks) {
        const { cursor, entry } = chunk
        if (cursor !== next || entry.prev !== prev || 'reply' in entry) return false
        if (entry.events.length > 1 && JSON.stringify(entry.events).length > 300_000) return false
        prev = lastCursor(chunk)
        next = prev + 1
      }
      return prev === lastCursor(whole)
    }),
    { numRuns: 50 },
  )
})

t.test(
  'an event that is too large for a message is sent with its type only, others in full',
  async (t) => {
    const chunks = chunksOf(entryOf(['before', 'x'.repeat(5_000_000), 'after']))
    t.match(
      chunks.map(({ cursor, stripped = false, entry: { events, prev } }) => ({
        cursor,
        prev,
        stripped,
        events,
      })),
      [
        { cursor: 7000, prev: 6005, stripped: false, events: [{ text: 'before' }] },
        { cursor: 7001, prev: 7000, stripped: true, events: [{ type: 'said', text: undefined }] },
        { cursor: 7002, prev: 7001, stripped: false, events: [{ text: 'after' }] },
      ],
    )
  },
)

t.test('entries are announced while anybody may follow one; cursors always', async (t) => {
  const one: PlacedEntry = entryOf(['text'])
  const run: PlacedEntry = { ...one, entry: { ...one.entry, kind: 'run', id: 'run_1' } }
  const bus = new MemoryBus()
  const announced = (heard: boolean): string[] => {
    bus.published.length = 0
    bus.hears = (topic) => heard || topic !== 'live'
    const entries = [one.entry, run.entry]
    const writer = envelopeWriter(2)
    announce(
      bus,
      [one, run],
      { entries, sizes: entries.map((entry) => writer.add(entry)), writer },
      fail,
    )
    return bus.published.map(({ subject }) => subject)
  }
  t.strictSame(announced(false), ['moved.prj_1'])
  t.strictSame(announced(true), ['live.prj_1.session.ses_1', 'live.prj_1.run.run_1', 'moved.prj_1'])
})

t.test('entries of runs and sessions are announced only if somebody follows them', async (t) => {
  const one: PlacedEntry = entryOf(['text'])
  const [run, other, channel] = (['run', 'run', 'channel'] as const).map(
    (kind, i): PlacedEntry => ({ ...one, entry: { ...one.entry, kind, id: `${kind}_${i}` } }),
  ) as [PlacedEntry, PlacedEntry, PlacedEntry]
  const bus = new MemoryBus()
  bus.wants = (subject) => subject === 'live.prj_1.run.run_1'
  const placed = [one, run, other, channel]
  const entries = placed.map(({ entry }) => entry)
  const writer = envelopeWriter(3)
  announce(bus, placed, { entries, sizes: entries.map((entry) => writer.add(entry)), writer }, fail)
  t.strictSame(
    bus.published.map(({ subject }) => subject),
    ['live.prj_1.run.run_1', 'live.prj_1.channel.channel_2', 'moved.prj_1'],
  )
})

t.test('an entry is split if its JSON is large, in whichever format it was stored', async (t) => {
  const payload = { text: 'x'.repeat(100_000) }
  const type = 'wait.opened'
  const { entry } = entryOf([])
  for (const [count, parts] of [
    [2, 1],
    [3, 2],
  ] as const)
    for (const format of [2, 3] as const) {
      const events = Array.from({ length: count }, () => ({ type, payload }) as Event)
      const run: PlacedEntry = {
        cursor: 7000,
        entry: { ...entry, kind: 'run', id: 'run_1', events },
      }
      const writer = envelopeWriter(format)
      const bus = new MemoryBus()
      announce(bus, [run], { entries: [run.entry], sizes: [writer.add(run.entry)], writer }, fail)
      const live = bus.published.filter(({ subject }) => subject.startsWith('live.'))
      t.equal(live.length, parts, `${count} events, format ${format}`)
    }
})

t.test('an unexpected error is passed on, and nothing is thrown', async (t) => {
  const bus = new MemoryBus()
  const bug = new Error('bug')
  bus.publish = () => {
    throw bug
  }
  const one = entryOf(['text'])
  const writer = envelopeWriter(2)
  const failures: unknown[] = []
  const batch = { entries: [one.entry], sizes: [writer.add(one.entry)], writer }
  announce(bus, [one], batch, (error) => failures.push(error))
  t.strictSame(failures, [bug])
})
