/** Rows: insertion, changes, deletion, upserts and bulk inserts, with their refusals, over HTTP. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, fieldsOf, listOf } from '../support/given.ts'
import { columns, dataOf, insertAll, numbersOf, tableOf } from '../support/tables.ts'

const s = await service()
t.teardown(() => s.stop())
const missing = 'row_01AAAAAAAAAAAAAAAAAAAAAA0C'
const faultsOf = async (id: unknown, data: object): Promise<string[]> =>
  fieldsOf(await s.refused('row.insert', { id, data }, 400, 'bad_request'))
const large = (bytes: number): string => 'x'.repeat(bytes)

t.test('a row is inserted with defaults and read again', async (t) => {
  const { id } = await tableOf(s)
  const data = {
    number: '1',
    amount: 1.5,
    due: '2026-03-01',
    address: { city: 'Ulm', lines: ['a', { b: null }] },
    tags: [1, 'x', null],
    note: false,
  }
  const row = await s.ok('row.insert', { id, data })
  t.match(row, { id: /^row_/, table_id: id, version: 1, created_at: row['updated_at'] })
  t.strictSame(dataOf(row), { ...data, paid: false })
  t.strictSame(await s.ok('row.get', { id, row_id: row['id'] }), row)
  const bare = await s.ok('row.insert', { id, data: { number: '2', paid: null, due: null } })
  t.strictSame(dataOf(bare), { number: '2' }, 'null means no value')
  await s.refused('row.get', { id, row_id: missing }, 404, 'not_found')
  await s.refused('row.get', { id, row_id: 'x' }, 404, 'not_found')
})

t.test('data that does not fit the schema is refused with its fields', async (t) => {
  const { id } = await tableOf(s)
  t.strictSame(await faultsOf(id, {}), ['data.number'])
  t.strictSame(await faultsOf(id, { number: null }), ['data.number'])
  for (const number of ['', 1, {}, large(513), 'é'.repeat(257)])
    t.strictSame(await faultsOf(id, { number }), ['data.number'])
  const wrong = {
    customer: 1,
    amount: '1',
    paid: 'yes',
    due: '2026-02-30',
    address: [],
    tags: {},
    other: 1,
  }
  t.strictSame(
    (await faultsOf(id, { number: '1', ...wrong })).sort(),
    Object.keys(wrong)
      .map((name) => `data.${name}`)
      .sort(),
  )
  t.match(await faultsOf(id, { number: '1', note: large(262_200) }), [/^data/])
  t.strictSame(fieldsOf(await s.refused('row.insert', { id, data: [] }, 400, 'bad_request')), [
    'data',
  ])
  t.strictSame(numbersOf(await s.ok('table.query', { id })), [])
  t.equal((await s.call('row.insert', { id, data: { number: large(512) } })).status, 201)
})

t.test('an open table accepts other keys', async (t) => {
  const { id } = await tableOf(s, { open: true })
  const row = await s.ok('row.insert', { id, data: { number: '1', more: [1], none: null } })
  t.strictSame(dataOf(row), { number: '1', more: [1], paid: false })
})

t.test('an identity belongs to one row', async (t) => {
  const { id } = await tableOf(s)
  const row = await s.ok('row.insert', { id, data: { number: '1' } })
  const { details } = await s.refused(
    'row.insert',
    { id, data: { number: '1' } },
    409,
    'already_exists',
  )
  t.equal(details['row_id'], row['id'])
  const raced = await Promise.all(
    Array.from({ length: 8 }, () => s.call('row.insert', { id, data: { number: '2' } })),
  )
  t.strictSame(raced.map(({ status }) => status).sort(), [201, ...Array(7).fill(409)])
  await s.ok('row.delete', { id, row_id: row['id'] })
  t.equal((await s.call('row.insert', { id, data: { number: '1' } })).status, 201)
})

t.test('an update merges members and counts versions', async (t) => {
  const { id } = await tableOf(s)
  const row = await s.ok('row.insert', {
    id,
    data: { number: '1', customer: 'ann', address: { city: 'Ulm', zip: '1' } },
  })
  const at = { id, row_id: row['id'] }
  const update = (data: object, version?: number) =>
    s.ok('row.update', { ...at, data, ...(version !== undefined && { version }) })
  const second = await update({ amount: 2, customer: null, address: { city: 'Bonn' } }, 1)
  t.strictSame(dataOf(second), {
    number: '1',
    paid: false,
    amount: 2,
    address: { city: 'Bonn' },
  })
  t.match(second, { version: 2, created_at: row['created_at'] })
  t.ok(String(second['updated_at']) >= String(row['updated_at']))
  t.equal((await update({}))['version'], 3, 'an update without a change counts')
  t.equal((await update({ amount: 3 }, 0))['version'], 4, '0 does not check')
  const { details } = await s.refused(
    'row.update',
    { ...at, data: { amount: 4 }, version: 3 },
    409,
    'conflict',
  )
  t.strictSame(details, { current_version: 4 })
  const faults = (data: object) =>
    s.refused('row.update', { ...at, data }, 400, 'bad_request').then(fieldsOf)
  t.strictSame(await faults({ number: null }), ['data.number'])
  t.strictSame(await faults({ amount: 'x', other: 1 }), ['data.amount', 'data.other'])
  t.strictSame(
    fieldsOf(await s.refused('row.update', { ...at, data: {}, version: -1 }, 400, 'bad_request')),
    ['version'],
  )
  await s.refused('row.update', { id, row_id: missing, data: {} }, 404, 'not_found')
  t.match(await s.ok('row.get', at), { version: 4, data: { amount: 3 } })
})

t.test('an identity can change when it is free', async (t) => {
  const { id } = await tableOf(s)
  const [one, two] = await insertAll(s, id, [{ number: '1' }, { number: '2' }])
  const { details } = await s.refused(
    'row.update',
    { id, row_id: one?.['id'], data: { number: '2' } },
    409,
    'already_exists',
  )
  t.equal(details['row_id'], two?.['id'])
  t.match(await s.ok('row.update', { id, row_id: one?.['id'], data: { number: '3' } }), {
    data: { number: '3' },
  })
  t.equal((await s.call('row.insert', { id, data: { number: '1' } })).status, 201)
  await s.refused('row.insert', { id, data: { number: '3' } }, 409, 'already_exists')
})

t.test('of concurrent updates of one version, one succeeds', async (t) => {
  const { id } = await tableOf(s)
  const { id: row_id } = await s.ok('row.insert', { id, data: { number: '1', amount: 0 } })
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, amount) =>
      s.call('row.update', { id, row_id, data: { amount }, version: 1 }),
    ),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(409)])
  const unchecked = await Promise.all(
    Array.from({ length: 10 }, (_, amount) => s.ok('row.update', { id, row_id, data: { amount } })),
  )
  t.strictSame(
    unchecked.map(({ version }) => Number(version)).sort((a, b) => a - b),
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    'each update has a version of its own',
  )
})

t.test('a row is deleted once', async (t) => {
  const { id } = await tableOf(s)
  const { id: row_id } = await s.ok('row.insert', { id, data: { number: '1' } })
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => s.call('row.delete', { id, row_id })),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [204, 404, 404, 404])
  await s.refused('row.update', { id, row_id, data: {} }, 404, 'not_found')
  await s.refused('row.get', { id, row_id }, 404, 'not_found')
})

t.test('an upsert inserts or merges', async (t) => {
  const { id } = await tableOf(s)
  const upsert = (data: object) => s.call('row.upsert', { id, data })
  const first = await upsert({ number: '1', customer: 'ann' })
  t.equal(first.status, 201)
  t.match(first.body, {
    created: true,
    row: { version: 1, data: { number: '1', customer: 'ann', paid: false } },
  })
  const second = await upsert({ number: '1', paid: null, amount: 1 })
  t.equal(second.status, 200)
  const row = second.body['row'] as Found
  t.match(row, { id: (first.body['row'] as Found)['id'], version: 2 })
  t.strictSame(dataOf(row), { number: '1', customer: 'ann', amount: 1 })
  const third = await upsert({ number: '1' })
  t.notOk('paid' in dataOf(third.body['row'] as object), 'defaults are not applied again')
  const faults = (data: object) =>
    s.refused('row.upsert', { id, data }, 400, 'bad_request').then(fieldsOf)
  t.strictSame(await faults({}), ['data.number'])
  t.strictSame(await faults({ number: '' }), ['data.number'])
  t.strictSame(await faults({ number: '1', amount: 'x' }), ['data.amount'])
  t.strictSame(await faults({ number: '2', other: 'x' }), ['data.other'])
})

t.test('concurrent upserts of one identity make one row', async (t) => {
  const { id } = await tableOf(s)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, amount) =>
      s.call('row.upsert', { id, data: { number: '1', amount } }),
    ),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 201])
  const rows = answers.map(({ body }) => body['row'] as Found)
  t.equal(new Set(rows.map((row) => row['id'])).size, 1)
  t.strictSame(
    rows.map(({ version }) => Number(version)).sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, i) => i + 1),
  )
  t.match(await s.ok('table.stats', { id }), { row_count: 1 })
})

t.test('a large row is read and changed whole', async (t) => {
  const { id } = await tableOf(s)
  const note = large(200_000)
  const { id: row_id } = await s.ok('row.insert', { id, data: { number: '1', note } })
  const changed = await s.ok('row.update', { id, row_id, data: { amount: 1 } })
  t.equal(dataOf(changed)['note'], note)
  const { body } = await s.call('row.upsert', { id, data: { number: '1', amount: 2 } })
  t.match(body, { row: { version: 3, data: { note, amount: 2 } } })
})

t.test('a bulk inserts its rows in order', async (t) => {
  const { id } = await tableOf(s)
  const rows = Array.from({ length: 1000 }, (_, i) => ({ number: `n${i}`, amount: i }))
  const answer = await s.ok('row.bulk', { id, rows })
  const items = listOf(answer)
  t.equal(answer['inserted'], 1000)
  t.strictSame(
    items.map(({ data }) => data),
    rows.map((row) => ({ ...row, paid: false })),
  )
  t.strictSame(
    numbersOf(await s.ok('table.query', { id, limit: 3 })),
    ['n0', 'n1', 'n2'],
    'and so are the rows of the table',
  )
  t.equal((await s.call('row.update', { id, row_id: items[7]?.['id'], data: {} })).status, 200)
})

t.test('a bulk is inserted as a whole or not at all', async (t) => {
  const { id } = await tableOf(s)
  await s.ok('row.insert', { id, data: { number: 'known' } })
  const refused = async (rows: readonly unknown[], status = 400, code = 'bad_request' as never) =>
    fieldsOf(await s.refused('row.bulk', { id, rows }, status, code))
  t.strictSame(
    await refused([{ number: '1' }, { number: '2', amount: 'x' }, {}, { number: '4', other: 1 }]),
    ['rows[1].amount', 'rows[2].number', 'rows[3].other'],
  )
  t.match(
    (await s.refused('row.bulk', { id, rows: [{ number: '1', amount: 'x' }] }, 400, 'bad_request'))
      .details,
    { fields: [{ field: 'rows[0].amount', message: String, expected: 'number', actual: 'x' }] },
  )
  const exists = 'already_exists' as never
  t.match(await refused([{ number: '1' }, { number: 'known' }], 409, exists), [/^rows\[1\]/])
  t.match(await refused([{ number: '1' }, { number: '2' }, { number: '1' }], 409, exists), [
    /^rows\[2\]/,
  ])
  t.strictSame(await refused([]), ['rows'])
  t.match(await refused([{ number: '1' }, 'x']), [/^rows\[1\]/])
  t.strictSame(await refused(Array.from({ length: 1001 }, (_, i) => ({ number: `${i}` }))), [
    'rows',
  ])
  t.strictSame(numbersOf(await s.ok('table.query', { id })), ['known'])
})

t.test('a bulk of almost 8 MiB is inserted, and a larger one refused', async (t) => {
  const { id } = await tableOf(s)
  const rows = Array.from({ length: 40 }, (_, i) => ({ number: `${i}`, note: large(205_000) }))
  const answer = await s.ok('row.bulk', { id, rows })
  t.equal(answer['inserted'], 40)
  t.match(listOf(answer)[39], { data: rows[39] })
  t.match(await s.ok('table.query', { id, filter: { number: '39' } }), {
    items: [{ data: rows[39] }],
  })
  await s.refused(
    'row.bulk',
    { id, rows: rows.map(({ note }, i) => ({ number: `m${i}`, note: note + note })) },
    413,
    'payload_too_large',
  )
})

t.test('a request under an idempotency key is answered as the first time', async (t) => {
  const { id } = await tableOf(s)
  const headers = (key: string) => ({ headers: { 'idempotency-key': key } })
  const data = { number: '1' }
  const first = await s.call('row.insert', { id, data }, headers('i'))
  await s.ok('row.update', { id, row_id: first.body['id'], data: { amount: 1 } })
  const again = await s.call('row.insert', { id, data }, headers('i'))
  t.strictSame([again.status, again.body], [201, first.body])
  await s.refused(
    'row.insert',
    { id, data: { number: '2' } },
    409,
    'idempotency_key_conflict',
    headers('i'),
  )
  const upserts = [1, 2].map(() =>
    s.call('row.upsert', { id, data: { number: '3' } }, headers('u')),
  )
  t.strictSame(
    (await Promise.all(upserts)).map(({ status }) => status),
    [201, 201],
  )
  const rows = [{ number: '4' }, { number: '5' }]
  const bulks = [
    await s.ok('row.bulk', { id, rows }, headers('b')),
    await s.ok('row.bulk', { id, rows }, headers('b')),
  ]
  t.strictSame(bulks[0], bulks[1])
  t.match(await s.ok('table.stats', { id }), { row_count: 4 })
})

t.test('the other paths of the operations answer the same', async (t) => {
  const { id } = await tableOf(s)
  t.equal((await s.call('row.upsert_at_rows', { id, data: { number: '1' } })).status, 201)
  t.match(await s.ok('row.bulk_at_rows', { id, rows: [{ number: '2' }] }), { inserted: 1 })
  t.strictSame(numbersOf(await s.ok('row.query', { id })), ['1', '2'])
  t.strictSame(numbersOf(await s.ok('row.search', { id, query: '2' })), ['2'])
})

t.test('a table has a maximum number of rows', async (t) => {
  const limited = await service({ BATON_TABLE_ROWS: '3' })
  t.teardown(() => limited.stop())
  const { id } = await tableOf(limited, { columns })
  await insertAll(limited, id, [{ number: '1' }, { number: '2' }])
  const refusal = await limited.refused(
    'row.bulk',
    { id, rows: [{ number: '3' }, { number: '4' }] },
    409,
    'conflict',
  )
  t.strictSame(refusal.details, { limit: 3 })
  const { id: row_id } = await limited.ok('row.insert', { id, data: { number: '3' } })
  await limited.refused('row.upsert', { id, data: { number: '4' } }, 409, 'conflict')
  t.equal((await limited.call('row.upsert', { id, data: { number: '3' } })).status, 200)
  await limited.ok('row.delete', { id, row_id })
  t.equal((await limited.call('row.insert', { id, data: { number: '4' } })).status, 201)
})
