/** Commands on rows: their events, replies and refusals, and how facts are checked. */
import t from 'tap'
import type { Cause } from '../../../actors/actor.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import type { StoredRow } from '../../../protocol/tables/events.ts'
import { START } from '../../support/given.ts'
import { created, facts, fresh, rowsAfter } from './support.ts'

const NOW = '2026-01-01T00:00:00.000Z'
const row = (change: Partial<StoredRow> = {}): StoredRow => ({
  id: 'row_9',
  identity: 'a',
  data: { key: 'a', count: 3 },
  version: 4,
  created_at: NOW,
  updated_at: NOW,
  ...change,
})
const faultsOf = (refused: Refusal | undefined): number =>
  (refused?.details as { fields: unknown[] } | undefined)?.fields.length ?? 0
const LATER: Partial<Cause> = { at: START + 1000 }

t.test('a row is inserted with defaults', async (t) => {
  const { events, reply, state } = created().when('row.insert', {
    data: { key: 'a', title: null },
    facts: facts(),
  })
  t.strictSame(events, [
    {
      type: 'table.row_inserted',
      table_name: 'tickets',
      change: 1,
      row: {
        id: 'row_1',
        identity: 'a',
        data: { count: 0, key: 'a' },
        version: 1,
        created_at: NOW,
        updated_at: NOW,
      },
    },
  ])
  t.strictSame(reply, { ids: ['row_1'], created_at: NOW, defaults: { count: 0 } })
  t.match(state, { rows: 1, change: 1 })
})

t.test('the events of a change by a run continue its causal chain', async (t) => {
  const causation = { depth: 3, chain: { root: 'sevt_1', loops: ['loop_1'] } }
  const stored = row()
  const known = facts(0, stored)
  const commands: readonly [string, object][] = [
    ['row.insert', { data: { key: 'b' }, facts: facts() }],
    ['row.bulk', { rows: [{ key: 'b' }, { key: 'c' }], facts: facts() }],
    ['row.upsert', { data: { key: 'b' }, facts: facts() }],
    ['row.upsert', { data: { key: 'a', count: 4 }, facts: known }],
    ['row.update', { row_id: 'row_9', data: { count: 4 }, facts: known }],
    ['row.delete', { row_id: 'row_9', facts: known }],
  ]
  for (const [name, input] of commands) {
    const { events, effects } = created().when(name, { ...input, causation })
    t.match(events, [{ causation }], name)
    t.match(effects[0], { tell: { input: causation } }, name)
  }
})

t.test('an insertion is published', async (t) => {
  const { effects } = created().when('row.insert', { data: { key: 'a' }, facts: facts() })
  const meta = { table_id: 'table_1', table_name: 'tickets', row_id: 'row_1' }
  t.strictSame(effects, [
    {
      tell: {
        to: { kind: 'events', id: 'prj_1' },
        name: 'source.publish',
        input: {
          event_type: 'table.row.inserted',
          source_kind: 'table_row',
          source_id: 'row_1',
          event: { ...meta, data: { count: 0, key: 'a' }, version: 1 },
          meta,
          record: { id: 'row_1', created_at: NOW, updated_at: NOW },
          depth: 0,
        },
      },
    },
  ])
})

t.test('invalid rows are refused with the path of each fault', async (t) => {
  const cases: readonly (readonly [data: object, fields: readonly object[]])[] = [
    [{}, [{ field: 'data.key', message: 'is required' }]],
    [{ key: null }, [{ field: 'data.key', message: 'is required' }]],
    [{ key: '' }, [{ field: 'data.key', actual: 0 }]],
    [{ key: 'é'.repeat(257) }, [{ field: 'data.key', actual: 514 }]],
    [{ key: 7 }, [{ field: 'data.key', expected: 'string', actual: 7 }]],
    [{ key: 'a', other: 1 }, [{ field: 'data.other' }]],
    [{ key: 'a', count: '1' }, [{ field: 'data.count', message: 'must be a finite number' }]],
    [{ key: 'a', title: 'x'.repeat(262_144) }, [{ field: 'data' }]],
  ]
  for (const [data, fields] of cases) {
    const { refused } = created().when('row.insert', { data, facts: facts() })
    t.match(refused, { refused: 'bad_request', details: { fields } })
    t.equal(faultsOf(refused), fields.length)
  }
})

t.test('an identity is unique', async (t) => {
  const data = { key: 'a' }
  t.match(
    created().when('row.insert', { data, facts: facts(9, row()) }).refused,
    { refused: 'already_exists', details: { row_id: 'row_9' } },
    'by the facts',
  )
  const first = created().when('row.insert', { data, facts: facts() })
  t.match(
    first.when('row.insert', { data, facts: facts() }).refused,
    { refused: 'already_exists', details: { row_id: 'row_1' } },
    'by the window, although the facts are older',
  )
  const gone = first.when('row.delete', { row_id: 'row_1', facts: facts() })
  t.match(
    gone.when('row.insert', { data, facts: facts(1, row({ id: 'row_1' })) }).events,
    [{ type: 'table.row_inserted', change: 3, row: { id: 'row_2', version: 1 } }],
    'it is free after the deletion',
  )
})

t.test('a bulk insert is one change of all rows or none', async (t) => {
  const rows = [{ key: 'a' }, { key: 'b', count: 2 }]
  const { events, reply, effects, state } = created().when('row.bulk', { rows, facts: facts() })
  t.match(events, [
    {
      type: 'table.rows_inserted',
      change: 1,
      rows: [
        { id: 'row_1', identity: 'a', data: { key: 'a', count: 0 } },
        { id: 'row_2', identity: 'b', data: { key: 'b', count: 2 } },
      ],
    },
  ])
  t.strictSame(reply, { ids: ['row_1', 'row_2'], created_at: NOW, defaults: { count: 0 } })
  t.match(
    effects,
    [
      {
        tell: {
          to: { kind: 'events', id: 'prj_1' },
          name: 'source.publish_all',
          input: { publications: [{ source_id: 'row_1' }, { source_id: 'row_2' }] },
        },
      },
    ],
    'published together and in order',
  )
  t.equal(state.rows, 2)
  t.match(
    created().when('row.bulk', { rows: [...rows, { key: 'c', count: '' }], facts: facts() })
      .refused,
    { refused: 'bad_request', details: { fields: [{ field: 'rows[2].count' }] } },
  )
  t.match(
    created().when('row.bulk', { rows: [...rows, { key: 'b' }], facts: facts(9, row()) }).refused,
    {
      refused: 'already_exists',
      details: {
        fields: [
          { field: 'rows[0].key', message: 'is the identity of a stored row', actual: 'a' },
          { field: 'rows[2].key', message: 'is the identity of another row of the request' },
        ],
      },
    },
  )
  const faulty = Array.from({ length: 1000 }, () => ({ wrong: 1 }))
  t.equal(faultsOf(created().when('row.bulk', { rows: faulty, facts: facts() }).refused), 100)
})

t.test('the ids of a bulk insert are in the order of its rows', async (t) => {
  let minted = 9
  const { reply } = created().when(
    'row.bulk',
    { rows: [{ key: 'a' }, { key: 'b' }, { key: 'c' }], facts: facts() },
    { mint: (prefix) => `${prefix}_${minted--}` },
  )
  t.match(reply, { ids: ['row_7', 'row_8', 'row_9'] })
})

t.test('the number of rows is limited', async (t) => {
  const one = created({}, 2).when('row.insert', { data: { key: 'a' }, facts: facts() })
  t.match(one.when('row.bulk', { rows: [{ key: 'b' }, { key: 'c' }], facts: facts() }).refused, {
    refused: 'conflict',
    details: { limit: 2 },
  })
  const two = one.when('row.upsert', { data: { key: 'b' }, facts: facts() })
  t.equal(two.state.rows, 2)
  t.match(two.when('row.upsert', { data: { key: 'c' }, facts: facts() }).refused, {
    refused: 'conflict',
  })
  t.match(
    two.when('row.upsert', { data: { key: 'a' }, facts: facts() }).reply,
    { created: false },
    'an update needs no room',
  )
})

t.test('an update merges members and counts the version', async (t) => {
  const input = { row_id: 'row_9', data: { title: 'x', count: null }, facts: facts(0, row()) }
  const { events, reply, effects } = created().when('row.update', input, LATER)
  const updated_at = '2026-01-01T00:00:01.000Z'
  t.strictSame(events, [
    {
      type: 'table.row_updated',
      table_name: 'tickets',
      change: 1,
      row: row({ data: { key: 'a', title: 'x' }, version: 5, updated_at }),
      changed: ['count', 'title'],
      previous: { count: 3 },
    },
  ])
  t.strictSame(reply, {
    row: {
      id: 'row_9',
      table_id: 'table_1',
      data: { key: 'a', title: 'x' },
      version: 5,
      created_at: NOW,
      updated_at,
    },
    change: 1,
  })
  t.match(effects, [
    {
      tell: {
        input: {
          event_type: 'table.row.updated',
          event: { version: 5, changed: ['count', 'title'], previous: { count: 3 } },
        },
      },
    },
  ])
  t.match(
    created().when('row.update', { ...input, data: {} }).events,
    [{ row: { version: 5 }, changed: [], previous: {} }],
    'an update without changes counts too',
  )
  t.match(created().when('row.update', { ...input, facts: facts() }).refused, {
    refused: 'not_found',
  })
  t.match(created().when('row.update', { ...input, data: { key: null } }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'data.key', message: 'is required' }] },
  })
})

t.test('an expected version is compared with the current one', async (t) => {
  const input = { row_id: 'row_9', data: {}, facts: facts(0, row()) }
  t.match(created().when('row.update', { ...input, version: 3 }).refused, {
    refused: 'conflict',
    details: { current_version: 4 },
  })
  for (const version of [0, 4, undefined])
    t.match(created().when('row.update', { ...input, version }).events, [{ row: { version: 5 } }])
})

t.test('an identity changes if the new one is free', async (t) => {
  const input = { row_id: 'row_9', data: { key: 'b' } }
  const other = row({ id: 'row_8', identity: 'b', data: { key: 'b' } })
  t.match(created().when('row.update', { ...input, facts: facts(0, row(), other) }).refused, {
    refused: 'already_exists',
    details: { row_id: 'row_8' },
  })
  const moved = created().when('row.update', { ...input, facts: facts(0, row()) })
  t.match(moved.events, [{ row: { identity: 'b' }, previous_identity: 'a', changed: ['key'] }])
  t.match(
    moved.when('row.upsert', { data: { key: 'a' }, facts: facts(0, row()) }).reply,
    { created: true },
    'the former identity is free',
  )
  t.match(
    moved.when('row.insert', { data: { key: 'b' }, facts: facts(0, row()) }).refused,
    { refused: 'already_exists', details: { row_id: 'row_9' } },
    'the new identity is taken',
  )
})

t.test('an upsert inserts or merges', async (t) => {
  const first = created().when('row.upsert', { data: { key: 'a' }, facts: facts() })
  t.strictSame(first.reply, {
    ids: ['row_1'],
    created_at: NOW,
    defaults: { count: 0 },
    created: true,
  })
  const second = first.when('row.upsert', { data: { key: 'a', title: 'x' }, facts: facts() })
  t.match(second.reply, {
    row: { id: 'row_1', version: 2, data: { key: 'a', title: 'x', count: 0 } },
    created: false,
  })
  t.match(created().when('row.upsert', { data: { title: 'x' }, facts: facts() }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'data.key' }] },
  })
})

t.test('a deletion removes the row', async (t) => {
  const { events, reply, effects, ...gone } = created()
    .when('row.insert', { data: { key: 'a' }, facts: facts() })
    .when('row.delete', { row_id: 'row_1', facts: facts() })
  t.match(events, [{ type: 'table.row_deleted', change: 2, row: { id: 'row_1', version: 1 } }])
  t.equal(reply, undefined)
  t.match(effects, [{ tell: { input: { event_type: 'table.row.deleted' } } }])
  t.equal(gone.state.rows, 0)
  for (const name of ['row.delete', 'row.update'])
    t.match(
      gone.when(name, { row_id: 'row_1', data: {}, facts: facts(1, row({ id: 'row_1' })) }).refused,
      { refused: 'not_found' },
      `${name} with facts from before the deletion`,
    )
})

t.test('a command with outdated facts about a large row stores nothing', async (t) => {
  const title = 'x'.repeat(2000)
  const large = created().when('row.insert', { data: { key: 'a', title }, facts: facts() })
  for (const [name, input] of [
    ['row.update', { row_id: 'row_1', data: {} }],
    ['row.upsert', { data: { key: 'a' } }],
    ['row.delete', { row_id: 'row_1' }],
  ] as const) {
    const stale = large.when(name, { ...input, facts: facts() })
    t.strictSame([stale.events, stale.reply], [[], { stale: 1 }], name)
    const known = [...rowsAfter(large.history).values()]
    t.match(large.when(name, { ...input, facts: facts(1, ...known) }).events, [{ change: 2 }], name)
  }
})

t.test('facts from before the window are outdated', async (t) => {
  const batch = (from: number) =>
    Array.from({ length: 1000 }, (_, i) => ({ key: `identity of row ${from + i}` }))
  let scene = created().when('row.bulk', { rows: batch(0), facts: facts() })
  for (let i = 1; i <= 8; i++)
    scene = scene.when('row.bulk', { rows: batch(i * 1000), facts: facts(i) })
  const data = { key: 'identity of row 1' }
  const stale = scene.when('row.insert', { data, facts: facts() })
  t.strictSame([stale.events, stale.reply], [[], { stale: scene.state.window.floor }])
  const { floor } = scene.state.window
  t.ok(floor > 0 && floor < 9)
  const known = [...rowsAfter(scene.history).values()].filter(
    ({ identity }) => identity === data.key,
  )
  t.match(scene.when('row.insert', { data, facts: facts(floor, ...known) }).refused, {
    refused: 'already_exists',
  })
})

t.test('the reply to an update omits data that is long', async (t) => {
  const title = 'x'.repeat(20_000)
  const { reply, events } = created().when('row.update', {
    row_id: 'row_9',
    data: { title },
    facts: facts(0, row()),
  })
  t.match(events, [{ row: { data: { title } } }])
  t.notOk('data' in (reply as { row: object }).row)
})

t.test('there are no rows before the creation and after the deletion of the table', async (t) => {
  for (const scene of [fresh(), created().when('table.delete')])
    for (const [name, input] of [
      ['row.insert', { data: { key: 'a' } }],
      ['row.bulk', { rows: [{ key: 'a' }] }],
      ['row.upsert', { data: { key: 'a' } }],
      ['row.update', { row_id: 'row_9', data: {} }],
      ['row.delete', { row_id: 'row_9' }],
    ] as const)
      t.match(scene.when(name, { ...input, facts: facts(0, row()) }).refused, {
        refused: 'not_found',
      })
})

t.test('members named like those of every object are ordinary', async (t) => {
  const data = JSON.parse('{"key":"__proto__","__proto__":"x","constructor":1}') as object
  const open = created({
    schema: {
      columns: [{ name: 'key', type: 'string', required: true }],
      identity_column: 'key',
      open: true,
    },
  })
  const first = open.when('row.insert', { data, facts: facts() })
  t.match(first.events, [{ row: { identity: '__proto__' } }])
  t.match(
    JSON.stringify(first.events),
    '"data":{"key":"__proto__","__proto__":"x","constructor":1}',
  )
  t.match(first.when('row.insert', { data: { key: '__proto__' }, facts: facts() }).refused, {
    refused: 'already_exists',
    details: { row_id: 'row_1' },
  })
})
