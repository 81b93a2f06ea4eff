/** Sort keys sort in the same order as the values that they encode. */
import fc from 'fast-check'
import t from 'tap'
import type { QueryField, SortField } from '../../../../protocol/tables/query.ts'
import { compareTexts, compareValues } from '../../../../protocol/tables/values.ts'
import {
  keyBefore,
  keyBehind,
  keyOf,
  partOf,
  textBytes,
} from '../../../../views/tables/tables/keys.ts'

const field = (type: QueryField['type'], descending: boolean): SortField => ({
  field: { name: type, type },
  descending,
})
const text = fc
  .array(fc.oneof(fc.constantFrom(0, 0x61, 0xd83d, 0xde00, 0xffff), fc.nat({ max: 0xffff })), {
    maxLength: 6,
  })
  .map((units) => String.fromCharCode(...units))
const value = fc.oneof(
  text,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant({}),
  fc.constant(undefined),
)
const sign = (order: number) => Math.sign(order) + 0

t.test('bytes of texts sort by code points, and differ for different texts', (t) => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      t.equal(sign(textBytes(a).compare(textBytes(b))), sign(compareTexts(a, b)))
    }),
  )
  t.end()
})

t.test('keys sort like values in both directions, and missing values come last', (t) => {
  fc.assert(
    fc.property(value, value, fc.boolean(), text, text, (a, b, descending, next, other) => {
      const fields = [field('any', descending), field('string', false)]
      const key = (one: unknown, then: string) =>
        keyOf(fields, ({ type }) => (type === 'any' ? one : then))
      const first =
        a === undefined || b === undefined
          ? Number(a === undefined) - Number(b === undefined)
          : compareValues('any', a, b) * (descending ? -1 : 1)
      const order = first === 0 ? compareTexts(next, other) : first
      t.equal(sign(key(a, next).compare(key(b, other))), sign(order))
    }),
    { numRuns: 1000 },
  )
  t.end()
})

t.test('the bounds of a value enclose exactly the keys that begin with it', (t) => {
  fc.assert(
    fc.property(value, value, fc.boolean(), text, (a, b, descending, next) => {
      const sorted = field('any', descending)
      const part = partOf(sorted, a)
      const key = Buffer.concat([partOf(sorted, b), partOf(field('string', false), next)])
      const inside = keyBefore(part).compare(key) <= 0 && key.compare(keyBehind(part)) < 0
      t.equal(inside, part.equals(partOf(sorted, b)))
    }),
    { numRuns: 1000 },
  )
  t.end()
})

t.test('dates sort by instant', (t) => {
  const part = (date: string) => partOf(field('date', false), date)
  t.strictSame(part('2024-01-01'), part('2024-01-01T01:00:00+01:00'))
  t.ok(part('1969-12-31').compare(part('1970-01-01')) < 0)
  t.end()
})
