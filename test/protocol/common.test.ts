/** Times, durations, ids and subject tokens. */
import fc from 'fast-check'
import t from 'tap'
import { parseDuration, parseTimestamp, timestamp, wholeOf } from '../../protocol/common.ts'
import { isId, makeId, type Prefix, prefixes, SLOTS, slotOf, slotText } from '../../protocol/ids.ts'
import { asyncapi } from '../../protocol/openapi/asyncapi.ts'
import { openapi } from '../../protocol/openapi/document.ts'
import { partitionOf, shardOf, token } from '../../protocol/subjects.ts'

/** Every instant whose year has four digits. */
const instant = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })

t.test('a timestamp is RFC 3339 in UTC with three fractional digits', async (t) => {
  t.equal(timestamp(0), '1970-01-01T00:00:00.000Z')
  t.equal(timestamp(951_782_400_000 - 1), '2000-02-28T23:59:59.999Z')
  t.equal(timestamp(951_782_400_000), '2000-02-29T00:00:00.000Z')
  t.equal(timestamp(-1), '1969-12-31T23:59:59.999Z')
  void fc.assert(
    fc.property(instant, (at) => timestamp(at) === new Date(at).toISOString()),
    { numRuns: 20_000 },
  )
  for (let day = Date.UTC(1899, 0, 1); day < Date.UTC(2105, 0, 1); day += 86_400_000)
    if (timestamp(day) !== new Date(day).toISOString()) t.fail(new Date(day).toISOString())
})
t.test('a timestamp is parsed to the same instant', async (t) => {
  void fc.assert(fc.property(instant, (at) => parseTimestamp(timestamp(at)) === at))
  t.equal(parseTimestamp('2024-05-01T10:00:00+02:00'), Date.UTC(2024, 4, 1, 8))
  t.equal(parseTimestamp('2024-02-29T00:00:00-12:00'), Date.UTC(2024, 1, 29, 12))
  t.equal(parseTimestamp('0000-03-01T00:00:00Z'), Date.parse('0000-03-01T00:00:00Z'))
  t.equal(parseTimestamp('2024-05-01t10:00:00.123456z'), Date.UTC(2024, 4, 1, 10, 0, 0, 123))
  for (const text of [
    '',
    '2024-05-01',
    '2024-05-01T10:00',
    '2024-05-01T10:00:00',
    '2024-13-01T10:00:00Z',
    '2024-05-01T25:00:00Z',
    '1714550400000',
    'May 1, 2024',
    ' 2024-05-01T10:00:00Z',
    '2026-02-31T10:00:00Z',
    '2026-02-29T10:00:00Z',
    '2026-04-31T23:59:59+02:00',
    '2026-01-00T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T10:60:00Z',
    '2026-01-01T10:00:60Z',
    '2026-01-01T10:00:00+24:00',
    '2026-01-01T10:00:00+01:60',
  ])
    t.equal(parseTimestamp(text), undefined, text)
})
t.test('a duration is parsed in the format of Go', async (t) => {
  for (const [text, ms] of [
    ['0', 0],
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['1s500ms', 1500],
    ['2.s', 2000],
    ['100us', 0.1],
    ['1µs', 0.001],
    ['.5s', 500],
    ['1m.5s', 60_500],
    ['0s', 0],
  ] as const)
    t.equal(parseDuration(text), ms, text)
  for (const text of [
    '',
    '5',
    's',
    '-1s',
    '+1s',
    '1 s',
    '1d',
    '1h 30m',
    'PT1H',
    '1e3s',
    '.s',
    '1.5.5s',
    '1H',
  ])
    t.equal(parseDuration(text), undefined, text)
  void fc.assert(
    fc.property(
      fc.nat(1000),
      fc.nat(59),
      fc.nat(59),
      fc.nat(999),
      (h, m, s, ms) =>
        parseDuration(`${h}h${m}m${s}s${ms}ms`) === ((h * 60 + m) * 60 + s) * 1000 + ms,
    ),
  )
})

const bytes = fc.uint8Array({ minLength: 9, maxLength: 16 })
const prefix = fc.constantFrom(...(Object.keys(prefixes) as Prefix[]))
const time = fc.integer({ min: 0, max: 2 ** 48 - 1 })
t.test('an id has its prefix, 26 characters and its slot', async (t) => {
  void fc.assert(
    fc.property(prefix, time, bytes, fc.nat(SLOTS - 1), (kind, at, random, slot) => {
      const id = makeId(kind, at, random, slot)
      return (
        isId(id, kind) &&
        id.length === prefixes[kind].length + 27 &&
        slotOf(id) === slot &&
        id.endsWith(slotText(slot))
      )
    }),
  )
  void fc.assert(
    fc.property(bytes, time, (random, at) => {
      const slot = slotOf(makeId('run', at, random))
      return slot !== undefined && slot >= 0 && slot < SLOTS
    }),
  )
  t.equal(slotOf('x'), undefined)
  t.equal(slotOf('run_lowercase'), undefined)
  for (const text of [
    '',
    'run_',
    'run_0123',
    '_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'run_01ARZ3NDEKTSV4RRFFQ69G5FAI',
    'run_01ARZ3NDEKTSV4RRFFQ69G5FAV2',
  ])
    t.notOk(isId(text), text)
  t.notOk(isId(makeId('job', 1, new Uint8Array(9)), 'run'))
})
t.test('ids sort by time, differ by randomness, and are the same for the same input', async () => {
  void fc.assert(
    fc.property(
      time,
      time,
      bytes,
      bytes,
      (a, b, x, y) => a === b || makeId('run', a, x, 1) < makeId('run', b, y, 2) === a < b,
    ),
  )
  void fc.assert(
    fc.property(
      bytes,
      bytes,
      (x, y) =>
        Buffer.from(x).subarray(0, 8).equals(Buffer.from(y).subarray(0, 8)) ||
        makeId('run', 1, x, 0) !== makeId('run', 1, y, 0),
    ),
  )
  void fc.assert(
    fc.property(
      time,
      bytes,
      (at, x) => makeId('run', at, x) === makeId('run', at, Uint8Array.from(x)),
    ),
  )
})

t.test('integers of 64 bits are accepted and limited to the safe range', async (t) => {
  t.strictSame(
    [
      '0',
      '-7',
      '42',
      '9007199254740991',
      '9007199254740992',
      '9223372036854775807',
      '-9223372036854775808',
    ].map(wholeOf),
    [0, -7, 42, ...Array<number>(3).fill(Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER],
  )
  t.strictSame(
    [
      '',
      '-',
      '+1',
      '1.0',
      '1e3',
      ' 1',
      '9223372036854775808',
      '-9223372036854775809',
      '1'.repeat(40),
    ].map(wholeOf),
    Array<undefined>(9).fill(undefined),
  )
})

t.test('the slot of an id decides its shard; a queue names its shard', async (t) => {
  void fc.assert(
    fc.property(
      bytes,
      fc.nat(SLOTS - 1),
      fc.integer({ min: 1, max: 64 }),
      (random, slot, shards) =>
        shardOf('run', makeId('run', 1, random, slot), shards) === slot % shards,
    ),
  )
  t.equal(shardOf('queue', '3.default', 4), 3)
  t.equal(shardOf('queue', '4.default', 4), undefined)
  t.equal(shardOf('queue', 'default', 4), undefined)
  t.equal(shardOf('run', '', 4), undefined)
})
t.test('a project is always in the same partition', async () => {
  void fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 32 }), (project, partitions) => {
      const partition = partitionOf(project, partitions)
      return (
        partition === partitionOf(project, partitions) &&
        Number.isInteger(partition) &&
        partition >= 0 &&
        partition < partitions
      )
    }),
  )
})
t.test('any text becomes one subject token, and different texts differ', async (t) => {
  t.equal(token('default'), 'default')
  t.equal(token('a.b *>'), 'a=2eb=20=2a=3e')
  t.equal(token(''), '=')
  void fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => /^[A-Za-z0-9_=-]+$/.test(token(text))),
  )
  void fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'grapheme' }),
      (a, b) => a === b || token(a) !== token(b),
    ),
  )
})

t.test('documents have the configured brand in their title, otherwise Baton', async (t) => {
  const titles = (brand: string) => [
    openapi({ brand, version: '0' }),
    asyncapi({ brand, version: '0' }),
  ]
  t.match(titles('Service'), [
    { info: { title: 'Baton API' } },
    { info: { title: 'Baton streams and sockets' } },
  ])
  t.match(titles('Acme'), [
    { info: { title: 'Acme API' } },
    { info: { title: 'Acme streams and sockets' } },
  ])
})
