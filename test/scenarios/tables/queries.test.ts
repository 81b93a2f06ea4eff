/** Reading rows: filters, sorting, pages and keyword search, over HTTP. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, fieldsOf, ids, listOf, pages } from '../support/given.ts'
import { insertAll, numbersOf, tableOf } from '../support/tables.ts'

const s = await service()
t.teardown(() => s.stop())
const { id } = await tableOf(s)
await insertAll(s, id, [
  { number: 'a', customer: 'ann', amount: 10, paid: true, due: '2026-03-01', note: 1 },
  { number: 'b', customer: 'bob', amount: 2, due: '2026-03-01T01:00:00+02:00', note: 'text' },
  { number: 'c', customer: 'ann', amount: -5, paid: true, address: { city: 'Ulm' }, note: true },
  { number: 'd', amount: 2, tags: ['x', 1], note: [1] },
  { number: 'é', customer: 'Zoe', paid: null },
])
const query = async (filter: object, more: object = {}): Promise<string> =>
  numbersOf(await s.ok('table.query', { id, filter, ...more })).join('')
const sorted = (...fields: string[]): Promise<string> =>
  query(
    {},
    {
      sort: fields.map((field) =>
        field.startsWith('-') ? { field: field.slice(1), order: 'desc' } : { field },
      ),
    },
  )
const faults = async (input: object): Promise<string[]> =>
  fieldsOf(await s.refused('table.query', { id, ...input }, 400, 'bad_request'))

t.test('a query without a body returns the first rows', async (t) => {
  const page = await s.ok('table.query', { id })
  t.match(page, { has_more: false, limit: 20 })
  t.equal(numbersOf(page).join(''), 'abcdé', 'in the order of their creation')
})

t.test('equality and sets', async (t) => {
  t.equal(await query({ number: 'b' }), 'b')
  t.equal(await query({ customer: 'ann' }), 'ac')
  t.equal(await query({ customer: 'ann', amount: 10 }), 'a', 'all conditions hold')
  t.equal(await query({ paid: true }), 'ac')
  t.equal(await query({ paid: false }), 'bd')
  t.equal(await query({ customer: { $ne: 'ann' } }), 'bdé', 'an absent value is another value')
  t.equal(await query({ number: { $in: ['a', 'é', 'none'] } }), 'aé')
  t.equal(await query({ number: { $in: [] } }), '')
  t.equal(await query({ due: { $eq: '2026-03-01T00:00:00Z' } }), 'a', 'dates are instants')
  t.equal(await query({ address: { $eq: { city: 'Ulm' } } }), 'c')
  t.equal(await query({ tags: { $eq: ['x', 1] } }), 'd')
  t.equal(await query({ note: { $eq: 1 } }), 'a')
})

t.test('absent values', async (t) => {
  t.equal(await query({ customer: null }), 'd')
  t.equal(await query({ customer: { $exists: false } }), 'd')
  t.equal(await query({ customer: { $exists: true } }), 'abcé')
  t.equal(await query({ paid: { $exists: false } }), 'é')
  t.equal(await query({ amount: { $gt: -1000 } }), 'abcd', 'ranges never match them')
  t.equal(await query({ customer: { $ne: null } }), 'abcé')
})

t.test('ranges', async (t) => {
  t.equal(await query({ amount: { $gt: 2 } }), 'a')
  t.equal(await query({ amount: { $gte: 2 } }), 'abd')
  t.equal(await query({ amount: { $lt: 2 } }), 'c')
  t.equal(await query({ amount: { $gte: -5, $lte: 2 } }), 'bcd', 'several operators hold together')
  t.equal(await query({ customer: { $lt: 'b' } }), 'acé', 'texts are compared by code points')
  t.equal(await query({ due: { $lt: '2026-03-01' } }), 'b')
  t.equal(await query({ paid: { $gt: false } }), 'ac')
})

t.test('system fields', async (t) => {
  const [first] = listOf(await s.ok('table.query', { id, limit: 1 }))
  t.equal(await query({ id: first?.['id'] }), 'a')
  t.equal(await query({ version: { $gte: 1 } }), 'abcdé')
  t.equal(await query({ version: 2 }), '')
  t.equal(await query({ created_at: { $gte: first?.['created_at'] } }), 'abcdé')
  const { id: own } = await tableOf(s, {
    columns: [
      { name: 'number', type: 'string', required: true },
      { name: 'version', type: 'string' },
    ],
    secondary_key_column: undefined,
  })
  await insertAll(s, own, [{ number: 'x', version: 'v2' }])
  t.match(
    await s.ok('table.query', { id: own, filter: { version: 'v2' } }),
    { items: [{ data: { number: 'x' } }] },
    'a column of the same name wins',
  )
})

t.test('sorting', async (t) => {
  t.equal(await sorted('amount'), 'cbdaé')
  t.equal(await sorted('-amount'), 'abdcé', 'absent values come last in both directions')
  t.equal(await sorted('customer', '-amount'), 'éacbd')
  t.equal(await sorted('-number'), 'édcba')
  t.equal(await sorted('due'), 'bacdé')
  t.equal(await sorted('-paid', 'number'), 'acbdé')
  t.equal(await sorted('note'), 'abcdé', 'numbers, texts, booleans, others')
  t.equal(await sorted('-created_at', '-number').then((text) => [...text].sort().join('')), 'abcdé')
})

t.test('invalid queries are refused with their fields', async (t) => {
  t.strictSame(await faults({ filter: { nothing: 1 } }), ['filter.nothing'])
  t.strictSame(await faults({ filter: { amount: 'x' } }), ['filter.amount'])
  t.strictSame(await faults({ filter: { amount: { $like: 1 } } }), ['filter.amount.$like'])
  t.strictSame(await faults({ filter: { amount: { $gt: 'x' } } }), ['filter.amount.$gt'])
  t.strictSame(await faults({ filter: { amount: { $in: 1 } } }), ['filter.amount.$in'])
  t.strictSame(await faults({ filter: { amount: { $in: Array(201).fill(1) } } }), [
    'filter.amount.$in',
  ])
  t.strictSame(await faults({ filter: { amount: { $exists: 1 } } }), ['filter.amount.$exists'])
  t.strictSame(await faults({ filter: { tags: { $gt: [] } } }), ['filter.tags.$gt'])
  t.strictSame(await faults({ filter: { due: 'soon' } }), ['filter.due'])
  t.strictSame(await faults({ sort: [{ field: 'nothing' }] }), ['sort[0].field'])
  t.strictSame(await faults({ sort: [{ field: 'tags' }] }), ['sort[0].field'])
  t.strictSame(await faults({ sort: [{ field: 'amount', order: 'up' }] }), ['sort[0].order'])
  t.strictSame(await faults({ sort: Array(11).fill({ field: 'amount' }) }), ['sort'])
  for (const limit of [0, 201, 'x']) t.strictSame(await faults({ limit }), ['limit'])
  t.strictSame(await faults({ offset: 1 }), ['offset'])
  await s.refused('table.query', { id: 'tbl_01AAAAAAAAAAAAAAAAAAAAAA0C' }, 404, 'not_found')
})

t.test('pages continue after their last row while rows change', async (t) => {
  const { id } = await tableOf(s)
  const rows = await insertAll(
    s,
    id,
    Array.from({ length: 25 }, (_, i) => ({
      number: `n${String(i).padStart(2, '0')}`,
      amount: i % 3,
    })),
  )
  for (const sort of [
    undefined,
    [{ field: 'amount' }],
    [
      { field: 'amount', order: 'desc' },
      { field: 'number', order: 'desc' },
    ],
    [{ field: 'customer' }],
  ]) {
    const all = await pages(s, 'table.query', { id, ...(sort && { sort }) }, 4)
    t.strictSame(ids(all).sort(), ids(rows).sort(), JSON.stringify(sort))
  }
  const first = await s.ok('table.query', { id, limit: 10 })
  t.match(first, { has_more: true, limit: 10, next_cursor: String })
  const cursor = first['next_cursor']
  await s.ok('row.delete', { id, row_id: rows[9]?.['id'] })
  await s.ok('row.delete', { id, row_id: rows[12]?.['id'] })
  await s.ok('row.insert', { id, data: { number: 'new' } })
  const next = await s.ok('table.query', { id, cursor, limit: 100 })
  t.strictSame(numbersOf(next), [
    'n10',
    'n11',
    ...Array.from({ length: 12 }, (_, i) => `n${13 + i}`),
    'new',
  ])
  t.notOk('next_cursor' in next)
  const bound = async (input: object) =>
    s.refused('table.query', { id, cursor, ...input }, 400, 'bad_request').then(fieldsOf)
  const same = await s.ok('table.query', { id, cursor, filter: {}, sort: [], limit: 100 })
  t.strictSame(
    numbersOf(same),
    numbersOf(next),
    'an empty filter or sort selects the same as no filter or sort',
  )
  const { next_cursor } = await s.ok('table.query', { id, filter: {}, sort: [], limit: 10 })
  t.match(await s.ok('table.query', { id, cursor: next_cursor }), { has_more: false })
  t.strictSame(await bound({ filter: { amount: 1 } }), ['cursor'])
  t.strictSame(await bound({ sort: [{ field: 'amount' }] }), ['cursor'])
  t.strictSame(await bound({ cursor: 'abc' }), ['cursor'])
  const { id: other } = await tableOf(s)
  t.strictSame(await bound({ id: other }), ['cursor'])
})

t.test('keyword search finds rows with all words, by prefix', async (t) => {
  const { id } = await tableOf(s)
  const rows = await insertAll(s, id, [
    { number: 'from-ui-insert', customer: 'Ann Lee' },
    { number: '2', customer: 'ann', address: { city: 'Straße', lines: ['Über den Linden'] } },
    { number: '3', customer: 'Hannah', tags: ['annual', { deep: 'x_y' }] },
    { number: '4', note: 4711 },
  ])
  const found = async (text: string, more: object = {}) =>
    numbersOf(await s.ok('table.search', { id, query: text, ...more }))
  t.strictSame(await found('from-ui'), ['from-ui-insert'])
  t.strictSame(await found('LEE ann'), ['from-ui-insert'])
  t.strictSame(await found('über'), ['2'], 'texts inside of objects count')
  t.strictSame(await found('x y'), ['3'])
  t.strictSame(await found('4711'), [], 'only texts count')
  t.strictSame(await found('nothing'), [])
  t.strictSame((await found('ann')).slice(-1), ['3'], 'exact words come before beginnings')
  await s.ok('row.update', { id, row_id: rows[0]?.['id'], data: { amount: 1 } })
  t.strictSame(
    await found('ann'),
    ['from-ui-insert', '2', '3'],
    'among equals, the latest change comes first',
  )
  t.strictSame(await found('ann', { filter: { amount: { $exists: false } } }), ['2', '3'])
  t.strictSame(numbersOf({ items: await pages(s, 'table.search', { id, query: 'ann' }, 1) }), [
    'from-ui-insert',
    '2',
    '3',
  ])
  await s.ok('row.update', { id, row_id: rows[1]?.['id'], data: { customer: 'bob' } })
  t.strictSame(await found('bob'), ['2'])
  t.strictSame(await found('ann'), ['from-ui-insert', '3'])
  await s.ok('row.delete', { id, row_id: rows[2]?.['id'] })
  t.strictSame(await found('ann'), ['from-ui-insert'])
  t.match(await s.ok('table.search', { id, query: 'ann', limit: 5 }), {
    has_more: false,
    limit: 5,
    items: [{ id: rows[0]?.['id'], version: 2 }],
  } as unknown as Found)
})

t.test('invalid searches are refused', async (t) => {
  const refused = async (input: object) =>
    fieldsOf(await s.refused('table.search', { id, query: 'x', ...input }, 400, 'bad_request'))
  t.strictSame(await refused({ query: '' }), ['query'])
  t.strictSame(await refused({ query: ' -- ' }), ['query'], 'a query has a word')
  t.strictSame(await refused({ mode: 'fuzzy' }), ['mode'])
  t.strictSame(await refused({ filter: { nothing: 1 } }), ['filter.nothing'])
  t.strictSame(await refused({ limit: 0 }), ['limit'])
  for (const mode of ['semantic', 'hybrid'])
    await s.refused(
      'table.search',
      { id, query: 'x', mode },
      503,
      'table_semantic_search_unavailable',
    )
})
