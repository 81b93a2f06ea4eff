/** Row queries: their validity, and the rows that they return, in order. */
import fc from 'fast-check'
import t from 'tap'
import {
  compareRows,
  fieldValue,
  planQuery,
  satisfiesCondition,
} from '../../../protocol/tables/query.ts'
import type { QueryRows, TableRow, TableSchema } from '../../../protocol/tables/schema.ts'

const schema: TableSchema = {
  columns: [
    { name: 'key', type: 'string', required: true },
    { name: 'count', type: 'number' },
    { name: 'due', type: 'date' },
    { name: 'extra', type: 'object' },
    { name: 'other', type: 'any' },
    { name: 'version', type: 'string' },
  ],
  identity_column: 'key',
}
type Row = Omit<TableRow, 'table_id'>
const row = (id: string, data: object): Row => ({
  id,
  data: { key: id, ...data },
  version: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})
function find(
  query: Pick<QueryRows, 'filter' | 'sort'>,
  rows: readonly Row[],
  of = schema,
): string {
  const plan = planQuery(of, query)
  if ('faults' in plan) throw new Error(JSON.stringify(plan))
  return rows
    .filter((one) =>
      plan.conditions.every((condition) =>
        satisfiesCondition(condition, fieldValue(of, one, condition.field)),
      ),
    )
    .sort((a, b) => compareRows(of, plan.sort, a, b))
    .map(({ id }) => id)
    .join('')
}

t.test('documents of a condition are serialized once, not for each row', async (t) => {
  let reads = 0
  const document = {
    get a() {
      reads++
      return 1
    },
  }
  for (const filter of [{ extra: { $in: [document, {}] } }, { other: { $ne: document } }]) {
    const plan = planQuery(schema, { filter: filter as NonNullable<QueryRows['filter']> })
    if ('faults' in plan) throw new Error(JSON.stringify(plan))
    const [condition] = plan.conditions
    reads = 0
    const found = Array.from({ length: 100 }, (_, a) =>
      condition ? satisfiesCondition(condition, { a }) : undefined,
    )
    t.strictSame(
      [found.indexOf(true), found.lastIndexOf(true)],
      'extra' in filter ? [1, 1] : [0, 99],
    )
    t.ok(reads <= 4, `${reads} reads`)
  }
})

t.test('invalid queries name the fault', async (t) => {
  const cases: readonly (readonly [filter: object, field: string])[] = [
    [{ wrong: 1 }, 'filter.wrong'],
    [{ count: '1' }, 'filter.count'],
    [{ count: [1] }, 'filter.count'],
    [{ count: {} }, 'filter.count'],
    [{ count: { $near: 1 } }, 'filter.count.$near'],
    [{ count: { $gt: '1' } }, 'filter.count.$gt'],
    [{ count: { $gt: null } }, 'filter.count.$gt'],
    [{ count: { $in: 1 } }, 'filter.count.$in'],
    [{ count: { $in: ['1'] } }, 'filter.count.$in'],
    [{ count: { $in: Array.from({ length: 201 }, () => 1) } }, 'filter.count.$in'],
    [{ count: { $exists: 1 } }, 'filter.count.$exists'],
    [{ extra: { $gt: {} } }, 'filter.extra.$gt'],
    [{ other: { $gt: {} } }, 'filter.other.$gt'],
    [{ due: '2026-02-30' }, 'filter.due'],
    [{ version: 1 }, 'filter.version'],
    [{ created_at: 'x' }, 'filter.created_at'],
  ]
  for (const [filter, field] of cases)
    t.match(planQuery(schema, { filter: filter as NonNullable<QueryRows['filter']> }), {
      faults: [{ field }],
    })
  for (const sort of [[{ field: 'wrong' }], [{ field: 'extra' }]])
    t.match(planQuery(schema, { sort }), { faults: [{ field: 'sort[0].field' }] })
  t.match(planQuery(schema, { sort: [{ field: 'count' }, { field: 'count' }] }), {
    faults: [{ field: 'sort[1].field' }],
  })
})

t.test('filters', async (t) => {
  const rows = [
    row('a', { count: 1, due: '2026-01-01', version: 'v1' }),
    row('b', { count: 2, due: '2026-01-01T00:00:00Z', extra: { x: 1, y: 2 } }),
    row('c', { other: 5 }),
    row('d', { other: 'x', hidden: 1, due: 'not a date' }),
  ]
  const cases: readonly (readonly [filter: object, found: string])[] = [
    [{}, 'abcd'],
    [{ count: 1 }, 'a'],
    [{ count: null }, 'cd'],
    [{ count: { $ne: 1 } }, 'bcd'],
    [{ count: { $ne: null } }, 'ab'],
    [{ count: { $gt: 0, $lt: 2 } }, 'a'],
    [{ count: { $gte: 1, $lte: 2 } }, 'ab'],
    [{ count: { $in: [2, null] } }, 'bcd'],
    [{ count: { $in: [] } }, ''],
    [{ count: { $exists: false }, other: { $exists: true } }, 'cd'],
    [{ due: '2026-01-01T01:00:00+01:00' }, 'ab'],
    [{ due: { $exists: true } }, 'ab'],
    [{ extra: { $eq: { y: 2, x: 1 } } }, 'b'],
    [{ other: { $gt: 4 } }, 'cd'],
    [{ version: 'v1' }, 'a'],
    [{ id: { $in: ['a', 'c'] } }, 'ac'],
    [{ created_at: '2026-01-01' }, 'abcd'],
  ]
  for (const [filter, found] of cases)
    t.equal(find({ filter: filter as NonNullable<QueryRows['filter']> }, rows), found)
  t.equal(find({ filter: { hidden: 1 } }, rows, { ...schema, open: true }), 'd')
})

t.test('missing values come last in both directions', async (t) => {
  const rows = [
    row('a', {}),
    row('b', { count: 1 }),
    row('c', { count: 2 }),
    row('d', { count: 1 }),
  ]
  t.equal(find({ sort: [{ field: 'count' }] }, rows), 'bdca')
  t.equal(find({ sort: [{ field: 'count', order: 'desc' }] }, rows), 'cbda')
  t.equal(find({ sort: [{ field: 'id', order: 'desc' }] }, rows), 'dcba')
})

t.test('the order of rows is total', async () => {
  const value = fc.constantFrom<unknown>(undefined, 1, -1, 'a', '😀', true, false, {}, [])
  const rows = fc.uniqueArray(fc.tuple(fc.nat(9), value), {
    selector: ([id]) => id,
    minLength: 3,
    maxLength: 3,
  })
  fc.assert(
    fc.property(rows, fc.constantFrom<'asc' | 'desc'>('asc', 'desc'), (given, order) => {
      const plan = planQuery(schema, { sort: [{ field: 'other', order }] })
      if ('faults' in plan) return false
      const [a, b, c] = given.map(([id, other]) =>
        row(`row_${id}`, other === undefined ? {} : { other }),
      )
      if (!a || !b || !c) return false
      const compare = (x: Row, y: Row) => Math.sign(compareRows(schema, plan.sort, x, y))
      const isTransitive = !(compare(a, b) < 0 && compare(b, c) < 0) || compare(a, c) < 0
      return compare(a, b) === -compare(b, a) && compare(a, b) !== 0 && isTransitive
    }),
  )
})
