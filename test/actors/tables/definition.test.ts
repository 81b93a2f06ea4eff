/** The definition of a table: creation, changes, deletion, and the answers to claims on names. */
import t from 'tap'
import type { TableSchema } from '../../../protocol/tables/schema.ts'
import { typesOf } from '../../support/given.ts'
import { claim, created, facts, fresh, schema } from './support.ts'

const NOW = '2026-01-01T00:00:00.000Z'
const table = {
  id: 'table_1',
  name: 'tickets',
  schema,
  created_by: 'user_1',
  updated_by: 'user_1',
  created_at: NOW,
  updated_at: NOW,
}
const tellName = (name: string, id: string, number: number) => ({
  tell: {
    to: { kind: 'table_name', id },
    name: `table_name.${name}`,
    input: { table_id: 'table_1', claim: number },
  },
})
const other = { holder: 'tbn_orders', claim: 3 }

t.test('a table is created and confirms its claim on the name', async (t) => {
  const { events, reply, effects, ask } = created({ description: '' })
  t.strictSame(events, [{ type: 'table.created', id: 'table_1', table, claim }])
  t.strictSame(reply, table)
  t.strictSame(effects, [tellName('confirm', 'tbn_tickets', 1)])
  t.strictSame(ask('definition'), table)
  t.equal(fresh().ask('definition'), null)
  t.match(created().when('table.create', { name: 'tickets', schema, claim }).refused, {
    refused: 'conflict',
  })
})

t.test('texts and tags are changed and removed', async (t) => {
  const wish = { description: 'd', instructions: 'i', tags: { a: 'b' } }
  const later = {
    at: Date.parse('2026-01-02T00:00:00Z'),
    principal: { type: 'user', id: 'user_2' },
  } as const
  const full = created().when('table.update', wish, later)
  const changed = { updated_by: 'user_2', updated_at: '2026-01-02T00:00:00.000Z' }
  t.strictSame(full.reply, { ...table, ...wish, ...changed })
  t.strictSame(full.events[0]?.changes, {
    description: { to: 'd' },
    instructions: { to: 'i' },
    tags: { to: { a: 'b' } },
  })
  t.strictSame(full.ask('definition'), full.reply)
  const bare = full.when('table.update', { description: '', instructions: '', tags: {} })
  t.strictSame(bare.reply, { ...table, ...changed })
  t.strictSame(bare.when('table.update', { name: 'tickets', claim }).events, [])
  t.match(created().when('table.update', { tags: { 'test:a': 'b' } }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'tags.test:a' }] },
  })
})

t.test('a schema changes only in compatible ways', async (t) => {
  const [key, title, count] = schema.columns
  if (!key || !title || !count) throw new Error('the schema has three columns')
  const tables = {
    empty: created(),
    filled: created().when('row.insert', { data: { key: 'a' }, facts: facts() }),
  }
  const cases: readonly (readonly [
    change: Partial<TableSchema>,
    field: string | undefined,
    on?: 'empty',
  ])[] = [
    [{ columns: [key, count] }, undefined],
    [{ columns: [key, title, count, { name: 'x', type: 'any' }] }, undefined],
    [{ open: true }, undefined],
    [{ columns: [key, { ...title, type: 'date' }, count] }, undefined, 'empty'],
    [{ columns: [key, { ...title, type: 'date' }, count] }, 'schema.columns[1].type'],
    [
      { columns: [key, title, count, { name: 'x', type: 'any', required: true }] },
      'schema.columns[3].required',
    ],
    [{ columns: [key, { ...title, required: true }, count] }, 'schema.columns[1].required'],
    [{ secondary_key_column: 'title' }, 'schema.secondary_key_column'],
    [
      { columns: [key, { ...title, required: true }, count], identity_column: 'title' },
      'schema.identity_column',
    ],
  ]
  for (const [change, field, on = 'filled'] of cases) {
    const next = { ...schema, ...change }
    const { refused, reply } = tables[on].when('table.update', { schema: next })
    if (field === undefined) t.match(reply, { schema: next })
    else t.match(refused, { refused: 'table_schema_immutable', details: { fields: [{ field }] } })
  }
})

t.test('values of a removed column are hidden until it returns', async (t) => {
  const short = { ...schema, columns: schema.columns.filter(({ name }) => name !== 'title') }
  const full = created().when('row.insert', { data: { key: 'a', title: 'x' }, facts: facts() })
  const hidden = full
    .when('table.update', { schema: short })
    .when('row.update', { row_id: 'row_1', data: { count: 1 }, facts: facts() })
  t.match(hidden.events, [{ row: { data: { title: 'x', count: 1 } }, changed: ['count'] }])
  t.strictSame(hidden.events[0]?.shown, { count: 1, key: 'a' })
  t.strictSame((hidden.reply as { row: { data: unknown } }).row.data, { count: 1, key: 'a' })
  t.match(hidden.effects, [{ tell: { input: { event: { data: { key: 'a', count: 1 } } } } }])
  t.notMatch(JSON.stringify(hidden.effects), 'title')
  t.match(
    hidden.when('row.update', { row_id: 'row_1', data: { title: 'y' }, facts: facts() }).refused,
    { details: { fields: [{ field: 'data.title', message: 'is not a column of the table' }] } },
  )
  const back = hidden
    .when('table.update', { schema })
    .when('row.update', { row_id: 'row_1', data: {}, facts: facts() })
  t.match(back.reply, { row: { data: { key: 'a', title: 'x', count: 1 } } })
})

t.test('a renamed table releases its former name', async (t) => {
  const renamed = created().when('table.update', { name: 'orders', claim: other })
  t.match(renamed.reply, { name: 'orders' })
  t.strictSame(renamed.effects, [
    tellName('confirm', 'tbn_orders', 3),
    tellName('release', 'tbn_tickets', 1),
  ])
  t.match(
    renamed.when('table.update', { name: 'tickets', claim }).refused,
    { refused: 'conflict', details: { claim: 'lapsed' } },
    'it cannot use the released claim again',
  )
  const back = renamed.when('table.update', { name: 'tickets', claim: { ...claim, claim: 2 } })
  t.strictSame(back.effects, [
    tellName('confirm', 'tbn_tickets', 2),
    tellName('release', 'tbn_orders', 3),
  ])
})

t.test('a deleted table releases its name', async (t) => {
  const { events, effects, state, ...gone } = created().when('table.delete')
  t.strictSame(events, [{ type: 'table.deleted', id: 'table_1', name: 'tickets', released: claim }])
  t.strictSame(effects, [tellName('release', 'tbn_tickets', 1)])
  t.equal(gone.ask('definition'), null)
  for (const name of ['table.delete', 'table.update'])
    t.match(gone.when(name).refused, { refused: 'not_found' })
  t.match(gone.when('table.create', { name: 'tickets', schema, claim }).refused, {
    refused: 'conflict',
  })
})

t.test('a claim that was not confirmed in time is denied and never used', async (t) => {
  const denied = fresh().when('table.claim_lapsed', { ...claim, name: 'tickets' })
  t.strictSame(denied.events, [{ type: 'table.claim_denied', claim }])
  t.strictSame(denied.effects, [tellName('release', 'tbn_tickets', 1)])
  t.match(denied.when('table.create', { name: 'tickets', schema, claim }).refused, {
    refused: 'conflict',
    details: { claim: 'lapsed' },
  })
  t.match(
    denied.when('table.create', { name: 'tickets', schema, claim: { ...claim, claim: 2 } }).reply,
    { name: 'tickets' },
  )
  t.strictSame(typesOf(denied.when('table.claim_lapsed', { ...claim, name: 'tickets' })), [])
  const rename = created().when('table.claim_lapsed', { ...other, name: 'orders' })
  t.match(rename.when('table.update', { name: 'orders', claim: other }).refused, {
    refused: 'conflict',
  })
  t.match(rename.when('table.delete').when('table.claim_lapsed', { ...claim, name: 'tickets' }), {
    events: [{ type: 'table.claim_denied' }],
    effects: [tellName('release', 'tbn_tickets', 1)],
  })
})

t.test('a later claim on the name that the table has replaces the earlier one', async (t) => {
  const later = { ...claim, claim: 2 }
  for (const [name, input] of [
    ['table.claim_lapsed', { ...later, name: 'tickets' }],
    ['table.update', { name: 'tickets', claim: later }],
  ] as const) {
    const kept = created().when(name, input)
    t.strictSame(kept.events, [{ type: 'table.name_kept', claim: later }])
    t.strictSame(kept.effects, [tellName('confirm', 'tbn_tickets', 2)])
    t.match(kept.when('table.delete').effects, [tellName('release', 'tbn_tickets', 2)])
  }
  t.strictSame(created().when('table.claim_lapsed', { ...claim, name: 'tickets' }).events, [])
})
