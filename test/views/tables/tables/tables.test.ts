/** Tables of a view: definitions, facts, statistics, deletion, and orders on demand. */
import t from 'tap'
import { timestamp } from '../../../../protocol/common.ts'
import { isRefusal } from '../../../../protocol/errors.ts'
import type { TableSchema } from '../../../../protocol/tables/schema.ts'
import { rowGet } from '../../../../views/tables/tables/changes.ts'
import {
  countsOf,
  missingTable,
  tableList,
  tableOf,
  tableStats,
} from '../../../../views/tables/tables/definitions.ts'
import { needsMaintenance } from '../../../../views/tables/tables/maintenance.ts'
import { addOrder, ordersOf } from '../../../../views/tables/tables/orders.ts'
import { queryRows } from '../../../../views/tables/tables/query.ts'
import { History, START, TABLE, tidy, whole } from './history.ts'

const schema: TableSchema = {
  columns: [
    { name: 'key', type: 'string', required: true },
    { name: 'owner', type: 'string' },
    { name: 'size', type: 'number' },
    { name: 'text', type: 'string' },
  ],
  identity_column: 'key',
  secondary_key_column: 'owner',
  indexes: [{ name: 'i', columns: ['size'] }],
}
const ids = (answer: unknown): string[] =>
  isRefusal(answer)
    ? [answer.refused]
    : (answer as { items: { id: string }[] }).items.map(({ id }) => id)
const count = (history: History, table: string): number =>
  history.store.one<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0

t.test('facts name the rows with the identities and ids, as of the last change', (t) => {
  const history = new History(schema)
  t.strictSame(history.facts(['a'], []), { through: 0, rows: [] })
  history.insert(1, { key: 'a', size: 1 }, { key: 'b' })
  const [a = '', b = ''] = [...history.rows.keys()]
  t.strictSame(history.facts(['a', 'b', 'c'], [b, 'row_none']), {
    through: 1,
    rows: [history.rows.get(b), history.rows.get(a)],
  })
  history.update(a, 2, { key: 'moved' })
  history.delete(b)
  t.strictSame(history.facts(['a', 'b', 'moved'], [a]), {
    through: 3,
    rows: [history.rows.get(a)],
  })
  t.end()
})

t.test('identities that differ only in lone surrogates are different rows', (t) => {
  const history = new History(schema)
  history.insert(1, { key: '\ud800' }, { key: '\ud801' }, { key: '\ufffd' })
  const [first = ''] = [...history.rows.keys()]
  t.strictSame(
    history.facts(['\ud800'], []).rows.map(({ id }) => id),
    [first],
  )
  t.end()
})

t.test('a table is listed by name, read, counted and deleted with its rows', (t) => {
  const history = new History(schema)
  const { store, project } = history
  history.insert(1, { key: 'a', text: 'word' }, { key: 'b', owner: 'x' })
  history.insert(5, { key: 'c' })
  const [a = '', b = '', c = ''] = [...history.rows.keys()]
  history.update(b, 9, { key: 'b', owner: 'y' })
  t.strictSame(ids(tableList(store, project, { name: 'alerts' })), [TABLE])
  t.strictSame(ids(tableList(store, project, { name: 'other' })), [])
  t.strictSame(ids(tableList(store, project + 1, {})), [])
  t.strictSame(tableStats(store, project, TABLE, START), {
    table_id: TABLE,
    row_count: 3,
    approx_data_bytes: 59,
    approx_index_bytes: 3 * (300 + 80 * 2),
    indexed_column_count: 1,
    declared_index_count: 1,
    search_index_present: true,
    generated_at: timestamp(START),
    oldest_row_created_at: timestamp(START + 1),
    newest_row_updated_at: timestamp(START + 9),
  })
  history.delete(b)
  history.delete(a)
  const stats = tableStats(store, project, TABLE, START)
  t.match(stats, {
    row_count: 1,
    oldest_row_created_at: timestamp(START + 5),
    newest_row_updated_at: timestamp(START + 5),
  })
  t.match(rowGet(store, project, { id: TABLE, row_id: c }), { id: c, table_id: TABLE, version: 1 })
  t.strictSame(ids(rowGet(store, project, { id: TABLE, row_id: a })), ['not_found'])

  history.apply({
    type: 'table.deleted',
    id: TABLE,
    name: 'alerts',
    released: { holder: 'tbn_1', claim: 1 },
  })
  t.equal(tableOf(store, project, TABLE), undefined)
  for (const answer of [
    rowGet(store, project, { id: TABLE, row_id: c }),
    history.query({}),
    history.search({ query: 'a' }),
    tableStats(store, project, TABLE, START),
  ])
    t.strictSame(answer, missingTable)
  t.strictSame(history.facts(['c'], []), { through: 0, rows: [] })
  t.strictSame(ids(tableList(store, project, {})), [])
  tidy(store)
  for (const table of ['table_rows', 'table_words', 'table_keys', 'table_orders', 'table_counts'])
    t.equal(count(history, table), 0, table)
  t.end()
})

t.test('a removed column is hidden from rows, queries and searches until it returns', (t) => {
  const history = new History(schema)
  history.insert(1, { key: 'a', text: 'secret', size: 1 }, { key: 'b', text: 'public' })
  const narrow = { ...schema, columns: schema.columns.filter(({ name }) => name !== 'text') }
  history.evolve(narrow)
  t.match(history.query({}), { items: [{ data: { key: 'a', size: 1 } }, { data: { key: 'b' } }] })
  t.strictSame(ids(history.search({ query: 'secret' })), [])
  t.strictSame(ids(history.query({ filter: { text: 'secret' } })), ['bad_request'])
  history.evolve({ ...narrow, open: true })
  t.equal(ids(history.search({ query: 'secret' })).length, 1)
  history.evolve(schema)
  t.equal(ids(history.query({ filter: { text: 'secret' } })).length, 1)
  t.equal(ids(history.search({ query: 'secr' })).length, 1)
  t.end()
})

const big = (): History => {
  const history = new History(schema)
  for (let part = 0; part < 5; part++)
    history.insert(
      part,
      ...Array.from({ length: 1000 }, (_, i) => ({
        key: `${part}_${i}`,
        size: (i * 7) % 1000,
        owner: `o${i % 2}`,
      })),
    )
  return history
}

t.test(
  'an order is added once queries have read as many rows as it costs, and is then used',
  (t) => {
    const history = big()
    const { store, project } = history
    const { n = 0 } = tableOf(store, project, TABLE) ?? {}
    const query = {
      filter: { owner: 'o1' },
      sort: [{ field: 'size', order: 'desc' as const }],
      limit: 5,
    }
    const parts = () => {
      let parts = 1
      const page = whole(queryRows(store, project, { ...query, id: TABLE }), () => parts++)
      return { parts, ids: ids(page) }
    }
    const first = parts()
    t.ok(first.parts > 2, 'rows are read in parts')
    t.notOk(needsMaintenance(store))
    for (let i = 0; i < 9 && !needsMaintenance(store); i++) parts()
    t.ok(needsMaintenance(store))
    tidy(store, 1)
    // The rows change while the order is only partly built.
    tidy(store, 2)
    const [row] = [...history.rows.values()].filter(({ data }) => data.owner === 'o1')
    if (row) history.update(row.id, 9, { ...row.data, size: 5000 })
    const last = history.expected({})?.[1999]
    if (last) history.update(last.id, 9, { ...last.data, owner: 'o1', size: 4500 })
    const [other] = [...history.rows.values()].filter(({ data }) => data.owner === 'o0').reverse()
    if (other) history.update(other.id, 9, { ...other.data, owner: 'o1', size: 4000 })
    tidy(store)
    t.equal(ordersOf(store, n).length, 3)
    t.strictSame(parts(), {
      parts: 1,
      ids: history
        .expected(query)
        ?.slice(0, 5)
        .map(({ id }) => id),
    })
    history.evolve({ ...schema, columns: [...schema.columns, { name: 'more', type: 'any' }] })
    t.equal(ordersOf(store, n).length, 3, 'an added column changes no order')
    t.strictSame(parts().parts, 1)
    history.evolve({ ...schema, columns: schema.columns.slice(0, 3) })
    t.equal(
      ordersOf(store, n).length,
      2,
      'a schema that hides values drops the orders that were added',
    )
    tidy(store)
    t.equal(count(history, 'table_keys'), 2 * history.rows.size)
    t.end()
  },
)

t.test('a table has a bounded number of orders; the least used one gives way', (t) => {
  const history = big()
  const { store, project } = history
  const { n = 0 } = tableOf(store, project, TABLE) ?? {}
  const wished = (name: string) => ({ field: { name, type: 'any' as const }, descending: false })
  const id = {
    field: { name: 'id', type: 'string' as const, system: 'id' as const },
    descending: false,
  }
  for (let i = 0; i < 8; i++) {
    store.demand.note(n, [wished(`f${i}`), id], 20_000, 5000)
    tidy(store)
  }
  const names = () =>
    ordersOf(store, n)
      .slice(2)
      .map(({ fields }) => fields[0]?.field.name)
  for (const { n: order } of ordersOf(store, n).slice(3)) store.demand.used(order)
  store.demand.note(n, [wished('f8'), id], 20_000, 5000)
  tidy(store)
  t.strictSame(names(), ['f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8'])
  t.equal(countsOf(store, tableOf(store, project, TABLE) as never).rows, 5000)
  t.end()
})

t.test('changes between the parts of a query are included, and no row is repeated', (t) => {
  const history = big()
  const { store, project } = history
  const page = whole(
    queryRows(store, project, { id: TABLE, sort: [{ field: 'size' }], limit: 200 }),
    () => {
      const [row] = [...history.rows.values()].slice(2500)
      if (row) history.delete(row.id)
    },
  )
  t.equal(new Set(ids(page)).size, 200)
  t.end()
})

t.test('an order by the beginning of a text excludes no row from a range', (t) => {
  const history = new History(schema)
  const { store, project } = history
  const [a, b] = ['a', 'b'].map((end) => `${'x'.repeat(600)}${end}`)
  history.insert(1, { key: 'a', text: a }, { key: 'b', text: b })
  const { n = 0 } = tableOf(store, project, TABLE) ?? {}
  for (const descending of [false, true])
    addOrder(store, n, [
      { field: { name: 'text', type: 'string' }, descending },
      { field: { name: 'id', type: 'string', system: 'id' }, descending: false },
    ])
  tidy(store)
  for (const order of ['asc', 'desc'] as const) {
    const found = (filter: object) =>
      ids(history.query({ filter: { text: filter }, sort: [{ field: 'text', order }] })).length
    t.strictSame(
      [{ $gt: a }, { $lt: b }, { $gte: b }, { $lte: a }, { $gt: b }, { $lt: a }].map(found),
      [1, 1, 1, 1, 0, 0],
    )
  }
  t.end()
})

t.test('a page ends at the size of a message', (t) => {
  const history = new History(schema)
  const text = 'word '.repeat(50_000)
  for (let i = 0; i < 6; i++) history.insert(i, { key: `k${i}`, text })
  for (const page of [history.query({}), history.search({ query: 'word' })]) {
    t.equal(ids(page).length, 3)
    t.ok('position' in page)
  }
  t.end()
})
