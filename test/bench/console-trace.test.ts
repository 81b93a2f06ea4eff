/** The statistics of the console benchmark, computed from trace events and samples. */
import fc from 'fast-check'
import t from 'tap'
import { objectBytesOf } from '../../bench/console/heap-objects.ts'
import { greatestByPlace, greatestRepeated } from '../../bench/console/places.ts'
import { growthOf } from '../../bench/console/slope.ts'
import { framesOf, isRelevant, type TraceEvent, threadOf } from '../../bench/console/trace.ts'

const main = { pid: 1, tid: 2 }
/** Returns a trace event of the main thread. `at` and `dur` are in milliseconds. */
const event = (
  name: string,
  at: number,
  dur: number,
  more: Partial<TraceEvent> = {},
): TraceEvent => ({
  name,
  ph: 'X',
  ...main,
  ts: at * 1000,
  dur: dur * 1000,
  ...more,
})
const begin = (at: number): TraceEvent => ({
  name: 'BeginMainThreadFrame',
  ph: 'I',
  ...main,
  ts: at * 1000,
})

t.test('the thread of a page is the one that has set the mark', async (t) => {
  const mark = { name: 'here', ph: 'R', pid: 7, tid: 8, ts: 0 }
  t.strictSame(threadOf([begin(0), mark], 'here'), { pid: 7, tid: 8 })
  t.throws(() => threadOf([begin(0)], 'here'), /no mark here/)
  t.ok(isRelevant(mark, 'here'))
  t.notOk(isRelevant(mark, 'there'))
})

t.test('script belongs to the frame in which it begins, and nested parts count once', async (t) => {
  const { script, collections, rendering } = framesOf(
    [
      event('FunctionCall', -5, 3),
      begin(0),
      event('FireAnimationFrame', 1, 4),
      event('FunctionCall', 1.5, 3),
      event('Layout', 2, 1),
      event('UpdateLayoutTree', 6, 2),
      begin(16),
      event('RunMicrotasks', 17, 20),
      event('MinorGC', 18, 1),
      event('Paint', 38, 1),
      event('FunctionCall', 17, 9, { tid: 3 }),
      begin(40),
      event('TimerFire', 40, 1),
      event('MajorGC', 41, 2),
    ],
    main,
  )
  // The 24 ms from 16 to 40 count as one frame, because they are too short for two.
  t.strictSame(script, [4, 20, 1])
  t.strictSame(collections, [1, 2], 'also the collection during a script')
  t.strictSame(rendering, [2, 1, 0])
})

t.test('a pause without a frame of the browser is divided into frames', async (t) => {
  const { script } = framesOf(
    [begin(0), event('TimerFire', 1, 2), event('TimerFire', 60, 3), begin(100)],
    main,
  )
  t.equal(script.length, 6)
  t.strictSame(
    script.filter((value) => value > 0),
    [2, 3],
  )
})

t.test('processor time is that of the thread, and long tasks last more than 50 ms', async (t) => {
  const { processor, longTasks, busyTasks } = framesOf(
    [
      begin(0),
      event('FunctionCall', 1, 8, { tdur: 3000 }),
      event('FunctionCall', 10, 2, { tdur: 9000 }),
      event('RunTask', 0, 50),
      event('RunTask', 60, 51),
      event('RunTask', 120, 80, { tdur: 30_000 }),
      event('RunTask', 60, 900, { tid: 3 }),
    ],
    main,
  )
  t.strictSame(processor, [3 + 2], 'the processor time of a part is at most its duration')
  t.strictSame(longTasks, [51, 80])
  t.equal(busyTasks, 1)
})

t.test('a frame belongs to the part of the way in which it begins', async (t) => {
  const frames = { begins: [0, 10, 20, 30, 40], processor: [3, 1, 2, 5, 9] }
  const way = [
    { until: 20, place: 'first' },
    { until: 30, place: 'second' },
    { until: 40, place: 'first' },
  ]
  t.strictSame(
    [...greatestByPlace(frames, way)],
    [
      ['first', 5],
      ['second', 2],
    ],
    'frames after the way belong to no place',
  )
})

t.test('times that do not repeat are left out, and those that repeat are not', async (t) => {
  const places = fc.dictionary(
    fc.constantFrom('a', 'b', 'c', 'd'),
    fc.double({ min: 0, max: 8, noNaN: true }),
  )
  fc.assert(
    fc.property(fc.array(places, { minLength: 2, maxLength: 4 }), fc.nat(3), (all, index) => {
      const passes = all.map((pass) => new Map(Object.entries(pass)))
      const delayed = passes.map((pass, at) => (at === index ? new Map(pass).set('e', 50) : pass))
      const repeated = passes.map((pass) => new Map(pass).set('e', 20))
      const usual = passes.map((pass) => new Map(pass).set('e', 5))
      const interrupted = usual.map((pass, at) =>
        at === index ? new Map(pass).set('e', 50) : pass,
      )
      t.ok(greatestRepeated(passes) <= 8)
      t.equal(greatestRepeated(repeated), 20)
      t.ok(greatestRepeated(interrupted) <= 8)
      t.equal(greatestRepeated(delayed), index < all.length ? 50 : greatestRepeated(passes))
    }),
  )
})

t.test('whatever the frames are, all script after the first is counted once', async (t) => {
  const part = fc.record({
    at: fc.integer({ min: 0, max: 500 }),
    dur: fc.integer({ min: 1, max: 40 }),
  })
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 12 }),
      fc.array(part, { maxLength: 12 }),
      (begins, parts) => {
        const events = [
          begin(0),
          ...begins.map(begin),
          ...parts.map(({ at, dur }) => event('FunctionCall', at, dur)),
        ]
        const { script } = framesOf(events, main)
        // Parts that begin inside an earlier part are not counted again.
        let end = -1
        let total = 0
        for (const { at, dur } of parts.toSorted((a, b) => a.at - b.at || b.dur - a.dur)) {
          if (at < end) continue
          total += dur
          end = at + dur
        }
        t.equal(Math.round(script.reduce((sum, one) => sum + one, 0)), total)
      },
    ),
    { numRuns: 100 },
  )
})

t.test('objects of scripts do not include compiled code and objects of the browser', async (t) => {
  const meta = {
    node_fields: ['type', 'name', 'self_size'],
    node_types: [['object', 'code', 'native', 'string', 'synthetic'], 'string', 'number'],
  } as const
  const nodes = [0, 9, 100, 1, 9, 20, 2, 9, 3000, 3, 9, 4, 4, 9, 50_000]
  t.equal(objectBytesOf({ snapshot: { meta }, nodes }), 104)
})

t.test('growth is the slope of the line that fits the samples', async (t) => {
  const rising = [0, 10, 20, 30].map((at) => ({ at, value: 100 + at }))
  t.strictSame(growthOf(rising), { perHour: 3600, share: 0.3 })
  const noisy = [1, -1, -1, 1].map((noise, index) => ({ at: index * 10, value: 100 + noise }))
  t.strictSame(growthOf(noisy), { perHour: 0, share: 0 })
  t.ok(Number.isNaN(growthOf([{ at: 5, value: 1 }]).perHour))
})
