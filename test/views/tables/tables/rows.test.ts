/**
 * Row queries and searches give the answers that the rules of the protocol define, for any schema,
 * rows, existing orders and history.
 */
import fc from 'fast-check'
import t from 'tap'
import { timestamp } from '../../../../protocol/common.ts'
import { isRefusal } from '../../../../protocol/errors.ts'
import { planQuery } from '../../../../protocol/tables/query.ts'
import type { QueryRows, SearchRows, TableRow } from '../../../../protocol/tables/schema.ts'
import { tableOf } from '../../../../views/tables/tables/definitions.ts'
import { addOrder } from '../../../../views/tables/tables/orders.ts'
import { evolved, queries, type Step, schemas, searches, steps } from './arbitraries.ts'
import { History, notes, pages, START, TABLE, tidy } from './history.ts'

function perform(history: History, step: Step): void {
  const { store } = history
  if (step.do === 'tidy') tidy(store, 1)
  else if (step.do === 'order') {
    const plan = planQuery(history.schema, { sort: step.sort })
    const defined = tableOf(store, history.project, TABLE)
    if (defined && !('faults' in plan)) addOrder(store, defined.n, plan.sort)
  } else history.perform(step)
}
function begun(schema: History['schema'], list: readonly Step[]): History {
  const history = new History(schema)
  for (const step of list) perform(history, step)
  return history
}
const sameOrRefused = (history: History, query: QueryRows, store = history.store): void => {
  const expected = history.expected(query)?.map((row) => history.record(row))
  const actual = pages((after) => history.query({ ...query, ...after }, store))
  if (!expected) return void assertEqual(isRefusal(actual), true)
  assertEqual(actual, expected)
}
const sameSearch = (history: History, search: SearchRows, store = history.store): void => {
  const expected = history.expectedSearch(search)?.map((row) => history.record(row))
  const actual = pages((after) => history.search({ ...search, ...after }, store))
  if (!expected) return void assertEqual(isRefusal(actual), true)
  assertEqual(actual, expected)
}
function assertEqual(actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (a !== b) throw new Error(`got ${a}\nexpected ${b}`)
}
const several = fc.array(queries, { minLength: 3, maxLength: 6 })

t.test('pages of queries contain the rows that the rules select, in their order', (t) => {
  fc.assert(
    fc.property(schemas, steps, several, (schema, list, asked) => {
      const history = begun(schema, list)
      for (const query of asked) sameOrRefused(history, query)
      tidy(history.store)
      for (const query of asked) sameOrRefused(history, query)
    }),
    { numRuns: 100 },
  )
  t.end()
})

t.test('pages of the newest rows contain the rows that the rules select', (t) => {
  const newest = queries.map(
    (query): QueryRows => ({
      ...query,
      sort: [{ field: 'created_at', order: 'desc' }],
    }),
  )
  fc.assert(
    fc.property(schemas, steps, fc.array(newest, { minLength: 3 }), (schema, list, asked) => {
      const history = begun(schema, list)
      for (const query of asked) sameOrRefused(history, query)
    }),
    { numRuns: 100 },
  )
  t.end()
})

t.test('the newest rows are read without the others, also of one time', (t) => {
  const history = new History({
    columns: [
      { name: 'key', type: 'string', required: true },
      { name: 'second', type: 'string' },
    ],
    identity_column: 'key',
    secondary_key_column: 'second',
  })
  const made = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ key: `${from + i}`, second: `${i % 2}` }))
  history.insert(1, ...made(0, 2500))
  for (let i = 0; i < 30; i++) history.insert(2 + i, ...made(10_000 + i, 1))
  history.insert(99, ...made(20_000, 2500))
  for (const filter of [{}, { second: '1' }, { created_at: { $lt: timestamp(START + 99) } }])
    for (let i = 0; i < 10; i++)
      history.query({ filter, sort: [{ field: 'created_at', order: 'desc' }], limit: 20 })
  t.notOk(history.store.demand.isDue(), 'no other order is needed')
  sameOrRefused(history, { sort: [{ field: 'created_at', order: 'desc' }], limit: 200 })
  t.end()
})

t.test('pages of searches contain the rows that the rules select, in their order', (t) => {
  fc.assert(
    fc.property(schemas, steps, fc.array(searches, { minLength: 3 }), (schema, list, asked) => {
      const history = begun(schema, list)
      for (const search of asked) sameSearch(history, search)
    }),
    { numRuns: 100 },
  )
  t.end()
})

t.test('large rows that a filter leaves are all found', (t) => {
  const history = new History(notes)
  const note = `word ${'x'.repeat(30_000)}`
  history.insert(0, ...Array.from({ length: 60 }, (_, i) => ({ key: `k${i}`, second: 'a', note })))
  sameSearch(history, { query: 'word', filter: { second: 'a' }, limit: 25 })
  t.end()
})

t.test('a new schema hides and shows values, and a rebuilt view answers the same', (t) => {
  const changed = schemas.chain((first) =>
    fc.tuple(fc.constant(first), evolved(first), evolved(first)),
  )
  fc.assert(
    fc.property(
      changed,
      fc.tuple(steps, steps, steps),
      several,
      fc.array(searches, { maxLength: 4 }),
      ([first, second, third], [a, b, c], asked, found) => {
        const history = begun(first, a)
        for (const [schema, list] of [
          [second, b],
          [third, c],
        ] as const) {
          history.evolve(schema)
          for (const step of list) perform(history, step)
          for (const query of asked) sameOrRefused(history, query)
          for (const search of found) sameSearch(history, search)
        }
        const again = history.rebuilt()
        for (const query of asked) sameOrRefused(history, query, again)
        for (const search of found) sameSearch(history, search, again)
      },
    ),
    { numRuns: 50 },
  )
  t.end()
})

t.test('changes between pages neither repeat nor skip the rows that remain', (t) => {
  fc.assert(
    fc.property(schemas, steps, steps, queries, searches, (schema, list, later, query, search) => {
      for (const ask of [
        (history: History, after: object) => history.query({ ...query, ...after }),
        (history: History, after: object) => history.search({ ...search, ...after }),
      ]) {
        const history = begun(schema, list)
        const before = pages((after) => ask(history, after))
        if (isRefusal(before)) return
        const touched = new Set<string>()
        const rest = [...later]
        const seen = pages(
          (after) => ask(history, after),
          () => {
            const was = new Map(history.rows)
            for (const step of rest.splice(0, 2)) perform(history, step)
            for (const [id, row] of was) if (history.rows.get(id) !== row) touched.add(id)
          },
        )
        if (isRefusal(seen)) throw new Error('a page was refused')
        const remaining = (rows: readonly TableRow[], known: ReadonlySet<string>) =>
          rows.map(({ id }) => id).filter((id) => !touched.has(id) && known.has(id))
        const known = new Set(before.map(({ id }) => id))
        assertEqual(remaining(seen, known), remaining(before, known))
      }
    }),
    { numRuns: 60 },
  )
  t.end()
})
