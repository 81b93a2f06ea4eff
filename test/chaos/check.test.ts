/**
 * The checks of chaos runs: every kind of violation is found, and none is reported for a correct
 * history.
 */
import t from 'tap'
import { check, type Kind, kinds, waits } from './check.ts'
import type { History, Recorded, Start, Stream, Strike } from './history.ts'

const acknowledged = (key: string, run: string, more: Partial<Start> = {}): Start => ({
  key,
  at: 0,
  ends: ['completed'],
  acknowledged: { at: 5, run },
  ...more,
})
const record = (id: string, key: string, more: Partial<Recorded> = {}): Recorded => ({
  id,
  key,
  status: 'completed',
  result: key,
  ...more,
})
const stream = (followed: readonly string[], recorded: readonly string[]): Stream => ({
  name: 'a stream',
  followed,
  recorded,
  connections: 1,
})
const good: History = {
  settled: true,
  starts: [
    acknowledged('a', 'run_1'),
    acknowledged('b', 'run_2', { ends: ['cancelled'], cancelled: true }),
    acknowledged('c', 'run_3'),
  ],
  repeats: [{ key: 'a', at: 9, run: 'run_1' }],
  runs: [
    record('run_1', 'a'),
    { id: 'run_2', key: 'b', status: 'cancelled' },
    record('run_3', 'c'),
  ],
  courses: new Map([
    ['run_1', ['running', 'completed']],
    ['run_2', ['running', 'cancelled']],
    ['run_3', ['running', 'failed', 'running', 'completed']],
  ]),
  retried: new Set(['run_3']),
  steps: new Map([['run_1', ['first', 'second']]]),
  streams: [stream(['1/x', '2/y', '2/z'], ['1/x', '2/y', '2/z'])],
  requests: [{ at: 0, done: 5 }],
  strikes: [],
  oddities: [],
}
/** Returns the kinds of violations that are found in the correct history with these changes. */
const found = (otherwise: Partial<History>): Kind[] => [
  ...new Set(check({ ...good, ...otherwise }).map(({ kind }) => kind)),
]
const course = (run: string, ...statuses: string[]): Pick<History, 'courses'> => ({
  courses: new Map([...good.courses, [run, statuses]]),
})
const instead = (run: Recorded): Pick<History, 'runs'> => ({
  runs: [...good.runs.filter(({ id }) => id !== run.id), run],
})

t.test('a correct history has no violation', async (t) => t.strictSame(check(good), []))

t.test('each kind of violation is found under its name', async (t) => {
  const cases: readonly (readonly [string, Partial<History>, readonly Kind[]])[] = [
    [
      'a start that nobody acknowledged',
      { starts: [...good.starts, { key: 'd', at: 1, ends: ['completed'] }] },
      ['unacknowledged'],
    ],
    [
      'an acknowledged start whose run is not on record',
      { starts: [...good.starts, acknowledged('d', 'run_4')] },
      ['lost'],
    ],
    [
      'an acknowledged start whose run belongs to another start',
      { starts: [...good.starts, acknowledged('d', 'run_1')] },
      ['lost'],
    ],
    [
      'a start that made a second run',
      { runs: [...good.runs, record('run_9', 'a')], ...course('run_9', 'completed') },
      ['doubled'],
    ],
    [
      'a run that nobody started',
      { runs: [...good.runs, record('run_9', 'z')], ...course('run_9', 'completed') },
      ['doubled'],
    ],
    [
      'a run that has not ended',
      { ...instead({ id: 'run_1', key: 'a', status: 'running' }), ...course('run_1', 'running') },
      ['unfinished'],
    ],
    [
      'a load that never came to rest, of which the feed was read later than the list',
      { settled: false, ...course('run_1', 'running') },
      ['unfinished'],
    ],
    [
      'a run that ended otherwise than it can',
      {
        ...instead({ id: 'run_1', key: 'a', status: 'failed' }),
        ...course('run_1', 'running', 'failed'),
      },
      ['ending'],
    ],
    [
      'a run that completed after its cancellation was acknowledged',
      {
        starts: [
          acknowledged('b', 'run_2', { ends: ['completed', 'cancelled'], cancelled: true }),
          ...good.starts.filter(({ key }) => key !== 'b'),
        ],
        ...instead(record('run_2', 'b')),
        ...course('run_2', 'running', 'completed'),
      },
      ['ending'],
    ],
    ['a run completed twice', course('run_1', 'running', 'completed', 'completed'), ['twice']],
    [
      'a run completed twice with something between',
      course('run_1', 'completed', 'running', 'completed'),
      ['twice', 'ending'],
    ],
    [
      'a step completed twice',
      { steps: new Map([['run_1', ['first', 'second', 'first']]]) },
      ['twice'],
    ],
    [
      'a run cancelled and then completed',
      course('run_1', 'running', 'cancelled', 'completed'),
      ['ending'],
    ],
    ['a run that went on after failing although nobody asked', { retried: new Set() }, ['ending']],
    ['the result of another run', instead(record('run_1', 'a', { result: 'c' })), ['result']],
    [
      'a key that is answered with another run',
      { repeats: [{ key: 'a', at: 9, run: 'run_3' }] },
      ['key'],
    ],
    [
      'a key that is answered with a refusal',
      { repeats: [{ key: 'a', at: 9, answer: '404 not found' }] },
      ['key'],
    ],
    [
      'a frame that never came',
      { streams: [stream(['1/x', '2/z'], ['1/x', '2/y', '2/z'])] },
      ['hole'],
    ],
    [
      'the last frames that never came',
      { streams: [stream(['1/x'], ['1/x', '2/y', '2/z'])] },
      ['hole'],
    ],
    ['a stream that never gave anything', { streams: [stream([], ['1/x'])] }, ['hole']],
    ['a run whose end the feed does not tell', course('run_1', 'running'), ['hole']],
    [
      'a frame that came twice',
      { streams: [stream(['1/x', '2/y', '2/y', '2/z'], ['1/x', '2/y', '2/z'])] },
      ['repeat'],
    ],
    ['frames in another order', { streams: [stream(['2/y', '1/x'], ['1/x', '2/y'])] }, ['order']],
    ['a frame that is not on record', { streams: [stream(['1/x', '7/q'], ['1/x'])] }, ['order']],
    ['an answer that may not be', { oddities: ['404 for a run that was acknowledged'] }, ['odd']],
  ]
  for (const [name, otherwise, expected] of cases) t.strictSame(found(otherwise), expected, name)
})

const strike = (manner: Strike['manner'], at: number, until: number): Strike => ({
  manner,
  at,
  until,
  what: `somebody at ${at}`,
})
/**
 * Returns `count` requests, the n-th sent at n × 100 ms. A request sent at `at` gets its response
 * `wait(at)` milliseconds later.
 */
const requests = (count: number, wait: (at: number) => number) =>
  Array.from({ length: count }, (_, n) => ({ at: n * 100, done: n * 100 + wait(n * 100) }))

t.test('requests that wait too long after a kill are found', async (t) => {
  const strikes = [strike('kill', 10_000, 11_000)]
  t.strictSame(found({ strikes, requests: requests(300, () => 20) }), [])
  t.strictSame(
    found({
      strikes,
      requests: requests(300, (at) => (at >= 10_000 && at < 11_000 ? 5900 : 20)),
    }),
    ['slow'],
  )
  t.strictSame(
    found({ strikes, requests: requests(300, (at) => (at === 9900 ? 100_000 : 20)) }),
    ['slow'],
    'an earlier pending request counts from the kill',
  )
  t.strictSame(
    found({ strikes, requests: [...requests(300, () => 20), { at: 10_500 }] }),
    ['slow'],
    'an unanswered request counts as infinite',
  )
  t.strictSame(
    found({
      strikes,
      requests: requests(300, (at) => (at < 9000 || at > 15_000 ? 9000 : 20)).filter(
        ({ done, at }) => done < 10_000 || at >= 10_000,
      ),
    }),
    [],
    'requests at other times are not attributed to the kill',
  )
  t.strictSame(
    found({
      strikes: [strike('kill nats', 10_000, 11_000)],
      requests: requests(300, () => 9000),
    }),
    [],
    'an election may take longer',
  )
  t.strictSame(
    found({
      strikes: [strike('kill nats', 10_000, 11_000)],
      requests: requests(300, () => 12_500),
    }),
    ['slow'],
  )
  t.strictSame(
    found({ strikes: [strike('cut', 10_000, 11_000)], requests: requests(300, () => 30_000) }),
    [],
    'a cut has no limit',
  )
})

t.test('of two concurrent strikes, the one with the shorter limit is not counted', async (t) => {
  const asked = requests(300, () => 20)
  t.strictSame(
    waits({
      strikes: [strike('kill', 10_000, 11_000), strike('pause', 12_000, 22_000)],
      requests: asked,
    }).map(({ manner }) => manner),
    ['pause'],
  )
  t.strictSame(
    waits({
      strikes: [strike('kill', 10_000, 11_000), strike('pause', 20_000, 22_000)],
      requests: asked,
    }).map(({ manner }) => manner),
    ['kill', 'pause'],
  )
  t.strictSame(
    waits({
      strikes: [strike('kill', 10_000, 11_000), strike('kill nats', 12_000, 14_000)],
      requests: asked,
    }).map(({ manner }) => manner),
    ['kill nats'],
  )
  t.strictSame(
    waits({
      strikes: [strike('kill nats', 12_000, 14_000), strike('cut', 13_000, 22_000)],
      requests: asked,
    }).map(({ manner }) => manner),
    ['cut'],
  )
  t.match(waits({ strikes: [strike('kill', 10_000, 11_000)], requests: asked }), [
    {
      strikes: 1,
      requests: 51,
      first: 20,
      p50: 20,
      p99: 20,
      longest: 20,
      worst: { at: 10_000, p99: 20 },
    },
  ])
})

t.test('every kind of violation has a description', async (t) => {
  for (const kind of Object.keys(kinds) as Kind[]) t.ok(kinds[kind].length > 0, kind)
})
