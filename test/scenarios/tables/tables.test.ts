/** Definitions of tables: creation, names, schema changes, statistics, deletion and access. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, idsOf, listOf, pages } from '../support/given.ts'
import { columns, insertAll, numbersOf, schema, tableOf } from '../support/tables.ts'

const s = await service()
t.teardown(() => s.stop())
const missing = 'tbl_01AAAAAAAAAAAAAAAAAAAAAA0C'

t.test('a table is created, read, listed and found by its name', async (t) => {
  const made = await s.ok('table.create', {
    name: 'stock_items',
    description: 'What we have',
    instructions: 'Ask before you change amounts.',
    schema,
  })
  t.match(made, {
    id: /^tbl_/,
    name: 'stock_items',
    description: 'What we have',
    instructions: 'Ask before you change amounts.',
    schema: { identity_column: 'number', secondary_key_column: 'customer' },
    created_by: String,
    updated_by: String,
    created_at: /Z$/,
  })
  t.strictSame(await s.ok('table.get', { id: made['id'] }), made)
  t.strictSame(listOf(await s.ok('table.list', { name: 'stock_items' })), [made])
  t.strictSame(listOf(await s.ok('table.list', { name: 'stock' })), [], 'names are exact')
  const others = [await tableOf(s), await tableOf(s), await tableOf(s)].map(({ id }) => id)
  t.strictSame(
    (await pages(s, 'table.list')).map(({ id }) => id),
    [...others.reverse(), made['id']],
    'newest first',
  )
  await s.refused('table.get', { id: missing }, 404, 'not_found')
  await s.refused('table.get', { id: 'table_1' }, 404, 'not_found')
})

t.test('a wrong definition is refused with its fields', async (t) => {
  const faults = async (definition: object) =>
    fieldsOf(
      await s.refused('table.create', { name: 'wrong', schema, ...definition }, 400, 'bad_request'),
    )
  const schemaFaults = (more: object) => faults({ schema: { ...schema, ...more } })
  const [first, ...rest] = columns
  for (const name of ['Upper', '1st', 'with-dash', '', 'x'.repeat(65)])
    t.strictSame(await faults({ name }), ['name'], name)
  t.strictSame(await faults({ description: 'x'.repeat(1001) }), ['description'])
  t.strictSame(await faults({ instructions: 'x'.repeat(2001) }), ['instructions'])
  t.strictSame(await faults({ tags: { a: 'b' } }), ['tags'], 'tags are set by PATCH')
  t.strictSame(await schemaFaults({ identity_column: 'nothing' }), ['schema.identity_column'])
  t.strictSame(await schemaFaults({ identity_column: 'amount' }), ['schema.identity_column'])
  t.strictSame(await schemaFaults({ secondary_key_column: 'amount' }), [
    'schema.secondary_key_column',
  ])
  t.strictSame(await schemaFaults({ columns: [{ ...first, required: false }, ...rest] }), [
    'schema.identity_column',
  ])
  t.strictSame(await schemaFaults({ columns: [{ ...first, default: 'x' }, ...rest] }), [
    'schema.columns[0].default',
  ])
  t.strictSame(await schemaFaults({ columns: [...columns, first] }), ['schema.columns[8].name'])
  t.strictSame(
    await schemaFaults({ columns: [...columns, { name: 'more', type: 'number', default: 'x' }] }),
    ['schema.columns[8].default'],
  )
  t.strictSame(await schemaFaults({ columns: [...columns, { name: 'a b', type: 'number' }] }), [
    'schema.columns[8].name',
  ])
  t.strictSame(await schemaFaults({ columns: [...columns, { name: 'more', type: 'text' }] }), [
    'schema.columns[8].type',
  ])
  t.match(await schemaFaults({ columns: [] }), ['schema.columns'])
  t.match(await schemaFaults({ other: true }), ['schema.other'])
})

t.test('a name belongs to one table of a project', async (t) => {
  const one = await tableOf(s)
  const { details } = await s.refused(
    'table.create',
    { name: one['name'], schema },
    409,
    'already_exists',
  )
  t.match(details, { name: one['name'] })
  const raced = await Promise.all(
    Array.from({ length: 6 }, () => s.call('table.create', { name: 'raced', schema })),
  )
  t.strictSame(raced.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])

  const two = await tableOf(s)
  await s.refused('table.update', { id: two['id'], name: one['name'] }, 409, 'already_exists')
  const renamed = await s.ok('table.update', { id: one['id'], name: 'renamed' })
  t.equal(renamed['name'], 'renamed')
  t.match(await s.ok('table.update', { id: one['id'], name: 'renamed' }), { name: 'renamed' })
  t.match(
    await s.ok('table.update', { id: two['id'], name: one['name'] }),
    { name: one['name'] },
    'the former name is free',
  )
  await s.ok('table.delete', { id: one['id'] })
  t.match(await s.ok('table.create', { name: 'renamed', schema }), { name: 'renamed' })
  await s.ok('project.create', { name: 'Elsewhere', handle: 'elsewhere' })
  t.match(
    await s.ok('table.create', { project: 'elsewhere', name: 'renamed', schema }),
    { name: 'renamed' },
    'another project has names of its own',
  )
})

t.test('a refused change leaves the wanted name free', async (t) => {
  const { id } = await tableOf(s)
  await insertAll(s, id, [{ number: '1' }])
  await s.refused(
    'table.update',
    { id, name: 'wanted', schema: { ...schema, identity_column: 'customer' } },
    400,
    'bad_request',
  )
  const changed = { ...schema, secondary_key_column: undefined }
  await s.refused(
    'table.update',
    { id, name: 'wanted', schema: changed },
    409,
    'table_schema_immutable',
  )
  t.match(await s.ok('table.create', { name: 'wanted', schema }), { name: 'wanted' })
})

t.test('a creation under an idempotency key is answered as the first time', async (t) => {
  const headers = { 'idempotency-key': 'make-a-table' }
  const create = (name: string) => s.call('table.create', { name, schema }, { headers })
  const first = await create('keyed')
  t.equal(first.status, 201)
  await s.ok('table.update', { id: first.body['id'], name: 'keyed_later' })
  const again = await create('keyed')
  t.equal(again.status, 201)
  t.strictSame(again.body, first.body)
  t.equal((await create('other')).status, 409)
  t.match(await s.ok('table.create', { name: 'other', schema }), { name: 'other' })

  t.equal((await s.call('table.delete', { id: first.body['id'] })).status, 204)
  t.strictSame((await create('keyed')).body, first.body, 'also after the table is deleted')
  await s.ok('table.create', { name: 'keyed', schema })
  t.strictSame((await create('keyed')).body, first.body, 'also when another table has the name')
})

t.test('texts and tags are changed and removed', async (t) => {
  const { id, updated_at } = await tableOf(s)
  const changed = await s.ok('table.update', {
    id,
    description: 'Orders',
    instructions: 'Be careful',
    tags: { team: 'sales' },
  })
  t.match(changed, {
    description: 'Orders',
    instructions: 'Be careful',
    tags: { team: 'sales' },
  })
  t.ok(String(changed['updated_at']) >= String(updated_at))
  const cleared = await s.ok('table.update', { id, description: '', tags: {} })
  t.notOk('description' in cleared || 'tags' in cleared)
  t.equal(cleared['instructions'], 'Be careful')
  t.strictSame(
    fieldsOf(
      await s.refused('table.update', { id, tags: { 'service:x': 'y' } }, 400, 'bad_request'),
    ),
    ['tags.service:x'],
  )
  await s.refused('table.update', { id: missing, description: 'x' }, 404, 'not_found')
})

t.test('a schema changes only in ways that keep the rows valid', async (t) => {
  const { id } = await tableOf(s)
  const change = (more: object) => s.call('table.update', { id, schema: { ...schema, ...more } })
  const refusedFields = async (more: object) => {
    const { status, body } = await change(more)
    const { code, details } = body['error'] as { code: string; details: object }
    t.strictSame([status, code], [409, 'table_schema_immutable'])
    return fieldsOf({ details })
  }
  const typed = (name: string, type: string) =>
    columns.map((column) => (column['name'] === name ? { ...column, type } : column))
  t.equal((await change({ columns: typed('note', 'string') })).status, 200, 'while it is empty')
  t.equal((await change({})).status, 200)

  await insertAll(s, id, [{ number: '1', customer: 'ann', amount: 3, note: 'x' }])
  t.strictSame(await refusedFields({ columns: typed('amount', 'any') }), ['schema.columns[2].type'])
  t.strictSame(await refusedFields({ secondary_key_column: undefined }), [
    'schema.secondary_key_column',
  ])
  t.strictSame(
    await refusedFields({ columns: [...columns, { name: 'new', type: 'string', required: true }] }),
    ['schema.columns[8].required'],
  )
  t.strictSame(
    await refusedFields({
      columns: columns.map((one) => (one['name'] === 'amount' ? { ...one, required: true } : one)),
    }),
    ['schema.columns[2].required'],
  )

  const read = async () => listOf(await s.ok('table.query', { id })).map(({ data }) => data)
  const without = columns.filter(({ name }) => name !== 'amount')
  t.equal((await change({ columns: without })).status, 200)
  const stored = { number: '1', customer: 'ann', paid: false, note: 'x' }
  t.strictSame(await read(), [stored], 'the values of a removed column are hidden')
  await s.refused('table.query', { id, filter: { amount: 3 } }, 400, 'bad_request')
  t.equal((await change({})).status, 200)
  t.strictSame(await read(), [{ ...stored, amount: 3 }], 'and return with the column')

  const retyped = [...without, { name: 'amount', type: 'string' }]
  t.equal((await change({ columns: without })).status, 200)
  t.equal((await change({ columns: retyped })).status, 200)
  t.strictSame(await read(), [stored], 'values of another type stay hidden')
  for (const [filter, found] of [
    [{ amount: { $exists: false } }, 1],
    [{ amount: '3' }, 0],
  ] as const)
    t.equal(listOf(await s.ok('table.query', { id, filter })).length, found)
  const [{ id: row_id } = {}] = listOf(await s.ok('table.query', { id }))
  const patched = await s.ok('row.update', { id, row_id, data: { note: 'y' } })
  t.notOk('amount' in Object(patched['data']))
  await s.ok('row.update', { id, row_id, data: { note: 'x' } })
  t.equal((await change({ columns: without })).status, 200)
  t.equal((await change({})).status, 200)
  t.strictSame(await read(), [{ ...stored, amount: 3 }], 'and return with the type')

  t.equal((await change({ open: true })).status, 200)
  await s.ok('row.insert', { id, data: { number: '2', extra: 'free' } })
  t.match(await s.ok('table.query', { id, filter: { extra: 'free' } }), {
    items: [{ data: { extra: 'free' } }],
  })
  t.equal((await change({ open: false })).status, 200)
  t.notOk('extra' in Object((await read())[1]), 'undeclared keys are hidden')
})

t.test('statistics count rows and bytes', async (t) => {
  const { id } = await tableOf(s, { indexes: [{ name: 'by_due', columns: ['due'] }] })
  const none = await s.ok('table.stats', { id })
  t.match(none, {
    table_id: id,
    row_count: 0,
    indexed_column_count: 1,
    declared_index_count: 1,
    generated_at: /Z$/,
  })
  t.notOk('oldest_row_created_at' in none)
  const rows = await insertAll(s, id, [{ number: '1' }, { number: '2' }, { number: '3' }])
  const some = await s.ok('table.stats', { id })
  t.match(some, { row_count: 3, oldest_row_created_at: rows[0]?.['created_at'] })
  t.ok(Number(some['approx_data_bytes']) > 30)
  await s.ok('row.delete', { id, row_id: rows[1]?.['id'] })
  t.match(await s.ok('table.stats', { id }), { row_count: 2 })
  await s.refused('table.stats', { id: missing }, 404, 'not_found')
})

t.test('a deleted table is gone with its rows', async (t) => {
  const { id, name } = await tableOf(s)
  const [row] = await insertAll(s, id, [{ number: '1' }])
  await s.ok('table.delete', { id })
  const gone = { id, row_id: row?.['id'] }
  await s.refused('table.get', { id }, 404, 'not_found')
  await s.refused('table.delete', { id }, 404, 'not_found')
  await s.refused('table.update', { id, description: 'x' }, 404, 'not_found')
  await s.refused('table.stats', { id }, 404, 'not_found')
  await s.refused('table.query', { id }, 404, 'not_found')
  await s.refused('table.search', { id, query: 'x' }, 404, 'not_found')
  await s.refused('row.get', gone, 404, 'not_found')
  await s.refused('row.insert', { id, data: { number: '2' } }, 404, 'not_found')
  await s.refused('row.update', { ...gone, data: {} }, 404, 'not_found')
  await s.refused('row.upsert', { id, data: { number: '1' } }, 404, 'not_found')
  await s.refused('row.bulk', { id, rows: [{ number: '1' }] }, 404, 'not_found')
  await s.refused('row.delete', gone, 404, 'not_found')
  t.strictSame(idsOf(await s.ok('table.list', { name })), [])
})

t.test('tables and rows of a project are closed to others', async (t) => {
  const { id } = await tableOf(s)
  const [row] = await insertAll(s, id, [{ number: '1' }])
  const other = 'elsewhere'
  await s.refused('table.get', { project: other, id }, 404, 'not_found')
  await s.refused('table.query', { project: other, id }, 404, 'not_found')
  await s.refused('row.get', { project: other, id, row_id: row?.['id'] }, 404, 'not_found')
  await s.refused('row.insert', { project: other, id, data: { number: '2' } }, 404, 'not_found')
  await s.refused('table.delete', { project: other, id }, 404, 'not_found')
  t.strictSame(numbersOf(await s.ok('table.query', { id })), ['1'])

  const key = async (project: string, role: string) => {
    const bot = { project, name: `${role} of ${project}` }
    const principal = await s.ok('principal.create', { ...bot, role_ids: [role] })
    return String((await s.ok('key.create', { ...bot, principal_id: principal['id'] }))['key'])
  }
  const stranger = { key: await key(other, 'role_admin') }
  await s.refused('table.get', { id }, 403, 'forbidden', stranger)
  await s.refused('row.insert', { id, data: { number: '2' } }, 403, 'forbidden', stranger)
  const viewer = { key: await key('default', 'role_viewer') }
  t.strictSame(numbersOf(await s.ok('table.query', { id }, viewer)), ['1'])
  t.equal((await s.call('table.search', { id, query: '1' }, viewer)).status, 200)
  for (const [name, input] of [
    ['table.create', { name: 'by_a_viewer', schema }],
    ['table.update', { id, description: 'x' }],
    ['table.delete', { id }],
    ['row.insert', { id, data: { number: '2' } }],
    ['row.update', { id, row_id: row?.['id'], data: {} }],
    ['row.delete', { id, row_id: row?.['id'] }],
    ['row.upsert', { id, data: { number: '1' } }],
    ['row.bulk', { id, rows: [{ number: '2' }] }],
  ] as const)
    await s.refused(name, input, 403, 'permission_denied', viewer)
})

t.test('the audit log has definitions, but not rows', async (t) => {
  const { id } = await tableOf(s)
  await s.ok('table.update', { id, description: 'Orders' })
  const [row] = await insertAll(s, id, [{ number: 'secret' }])
  await s.ok('row.update', { id, row_id: row?.['id'], data: { customer: 'ann' } })
  await s.ok('table.delete', { id })
  const entries = listOf(await s.ok('audit.list', { resource_id: id }))
  t.strictSame(
    entries.map(({ action, resource_type }) => [action, resource_type]),
    [
      ['delete', 'table'],
      ['update', 'table'],
      ['create', 'table'],
    ],
  )
  t.notMatch(JSON.stringify(entries), /secret/)
})
