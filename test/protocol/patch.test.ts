/** All functions that apply patches produce the same result, and differ only in what they copy. */
import fc from 'fast-check'
import t from 'tap'
import { amend, begin, patch } from '../../protocol/patch.ts'

const value = fc.constantFrom<unknown>('a', 1, true, { deep: 1 })
const names = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const record = fc.dictionary(names, value)
const change = fc.dictionary(names, fc.option(value, { freq: 3 }))

t.test('a record of the caller’s own is changed as a copy would be', (t) => {
  void fc.assert(
    fc.property(record, change, (record, change) => {
      const before = JSON.stringify(record)
      const wanted = JSON.stringify(patch(record, change))
      return JSON.stringify(record) === before && JSON.stringify(amend(record, change)) === wanted
    }),
    { numRuns: 1000 },
  )
  const own = { a: 1 }
  t.equal(amend(own, undefined), own)
  t.equal(amend(own, { a: 2 }), own)
  t.end()
})

t.test('a new record is the first patch, applied to its fields', (t) => {
  void fc.assert(
    fc.property(record, change, fc.boolean(), (fields, change, repeated) => {
      const first = repeated ? { ...fields, ...change } : change
      const before = JSON.stringify([fields, first])
      const made = begin<object>(fields, first)
      return (
        JSON.stringify(made) === JSON.stringify(patch(fields, first)) &&
        JSON.stringify([fields, first]) === before &&
        made !== fields &&
        made !== first
      )
    }),
    { numRuns: 1000 },
  )
  t.strictSame(begin({ a: 1 }, undefined), { a: 1 })
  t.end()
})
