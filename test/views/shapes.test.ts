/** The compact form of records: every record is restored, with its fields in the same order. */
import fc from 'fast-check'
import t from 'tap'
import { timestamp } from '../../protocol/common.ts'
import { type Packed, Shapes } from '../../views/shapes.ts'
import { T0 } from './support/journal.ts'

const known = { texts: ['run_1', null, 'completed', 'run_1:s'], at: T0 }
const time = fc.integer({ min: -1e12, max: 4e12 }).map(timestamp)
const value = fc.oneof(
  fc.constantFrom('', 'run_1', 'completed', 'run_1:s', 'null', true, false, null, 0),
  time,
  fc.constantFrom(
    '2031-02-30T04:05:06.000Z',
    '2031-02-03T04:05:06.00Z',
    '+12031-02-03T04:05:06Z',
    'Z',
  ),
  fc.jsonValue({ maxDepth: 2 }),
)
const name = fc.oneof(
  fc.constantFrom('id', 'status', 'a', 'b', '7', 'a\nb', '__proto__', 'toString', 'length', ''),
  fc.string({ maxLength: 3 }),
)
// `JSON.parse` creates `__proto__` as an own property, unlike an object literal.
const record = fc
  .array(fc.tuple(name, value), { maxLength: 8 })
  .map(
    (fields) =>
      JSON.parse(
        `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`,
      ) as object,
  )
const wire = (packed: Packed) => JSON.parse(JSON.stringify(packed)) as Packed

t.test('records are restored, also by a process that reads the stored shapes', (t) => {
  void fc.assert(
    fc.property(fc.array(record, { maxLength: 12 }), (records) => {
      const shapes = new Shapes()
      const rows: { n: number; shape: string }[] = []
      const store = (n: number, shape: string) => void rows.push({ n, shape })
      const packed = records.map((record, i) => {
        if (i % 3 === 0) shapes.flush(store)
        return wire(shapes.pack(record, known))
      })
      shapes.flush(store)
      const later = new Shapes()
      later.begin(rows)
      const again = records.map((record) => JSON.stringify(later.pack(record, known)))
      later.flush(() => rows.push({ n: 0, shape: 'again' }))
      return (
        records.every((record, i) =>
          [shapes, later].every(
            (reader) =>
              JSON.stringify(reader.unpack(packed[i] ?? [], known)) === JSON.stringify(record),
          ),
        ) &&
        again.every((text, i) => text === JSON.stringify(packed[i])) &&
        rows.every(({ n }, i) => n === i + 1)
      )
    }),
    { numRuns: 300 },
  )
  t.end()
})

t.test('several records with labels share one list', (t) => {
  void fc.assert(
    fc.property(fc.array(fc.tuple(record, fc.constantFrom('run.started', '-', ''))), (records) => {
      const shapes = new Shapes()
      const list: unknown[] = []
      for (const [record, label] of records) shapes.pack(record, known, label, list)
      const packed = wire(list)
      let at = 0
      const same = records.every(([record, label]) => {
        const from = at
        at += shapes.lengthOf(packed, from)
        return (
          shapes.labelOf(packed, from) === label &&
          JSON.stringify(shapes.unpack(packed, known, from)) === JSON.stringify(record)
        )
      })
      return same && at === packed.length
    }),
    { numRuns: 300 },
  )
  t.end()
})

t.test('names, times and known texts are not stored with a record', (t) => {
  const shapes = new Shapes()
  const first = { id: 'run_1', status: 'completed', at: timestamp(T0 + 5), result: { ok: true } }
  t.strictSame(shapes.pack(first, known), [1, 5, { ok: true }])
  t.strictSame(shapes.pack({ ...first, result: 'no' }, known), [1, 5, 'no'])
  t.strictSame(shapes.pack({ ...first, status: 'failed' }, known), [2, 'failed', 5, { ok: true }])
  t.end()
})

t.test('records whose names are all different are restored when there are too many', (t) => {
  const shapes = new Shapes()
  const records = Array.from({ length: 50_010 }, (_, i) => ({ [`name${i}`]: i }))
  const packed = records.map((record) => shapes.pack(record, known))
  t.strictSame(packed.at(-1), [0, records.at(-1), ''])
  t.strictSame(
    packed.map((one) => shapes.unpack(one, known)),
    records,
  )
  t.strictSame(shapes.pack(records[0] ?? {}, known), [1, 0], 'the first shapes stay in use')
  t.end()
})
