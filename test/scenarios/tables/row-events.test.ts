/** Source events of rows: their content, and the triggers and waits that they reach. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, type Found, listOf, timelineOf, until } from '../support/given.ts'
import { dataOf, insertAll, tableOf } from '../support/tables.ts'

const s = await service()
t.teardown(() => s.stop())

/** Creates a loop that is triggered by an event of a table. Its runs return the event. */
const loopOn = (event_type: string, condition: string): Promise<Found> =>
  s.ok('loop.create', {
    name: `On ${event_type}`,
    triggers: [{ kind: 'event', key: 'row', config: { event_type, condition } }],
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
    output: { event: '${{ event }}' },
  }) as Promise<Found>
/** Returns the results of a loop's runs, oldest first, once `count` runs have completed. */
async function resultsOf(loop: Found, count: number): Promise<Found[]> {
  const page = await until(
    () => s.ok('run.list', { loop_id: loop['id'], limit: 200 }),
    (runs) => listOf(runs).filter(({ status }) => status === 'completed').length === count,
  )
  return Promise.all(
    listOf(page)
      .reverse()
      .map(async ({ id }) => {
        const { result } = await s.ok('run.get', { id })
        return result as unknown as Found
      }),
  )
}

t.test('changes of rows are published with their content', async (t) => {
  const table = await tableOf(s)
  const { id, name } = table
  // An event is stored even if no trigger or wait matches it.
  const row = await s.ok('row.insert', { id, data: { number: '1', amount: 1, customer: 'ann' } })
  const row_id = row['id']
  await s.ok('row.update', { id, row_id, data: { amount: 2, due: '2026-01-01', customer: null } })
  await s.ok('row.delete', { id, row_id })
  const all = await until(
    () => s.ok('event.list', { source_kind: 'table_row', source_id: row_id }),
    (page) => listOf(page).length === 3,
  )
  const [deleted, updated, inserted] = listOf(all)
  const meta = { table_id: id, table_name: name, row_id }
  t.match(inserted, {
    event_type: 'table.row.inserted',
    source_kind: 'table_row',
    source_id: row_id,
    meta,
    event: { ...meta, version: 1, data: { number: '1', amount: 1, customer: 'ann', paid: false } },
  })
  const after = { number: '1', amount: 2, due: '2026-01-01', paid: false }
  t.match(updated, {
    event_type: 'table.row.updated',
    meta,
    event: { ...meta, version: 2, data: after },
  })
  const event = updated?.['event'] as unknown as Found
  t.strictSame(event['changed'], ['amount', 'customer', 'due'])
  t.strictSame(event['previous'], { amount: 1, customer: 'ann' })
  t.match(deleted, {
    event_type: 'table.row.deleted',
    meta,
    event: { ...meta, version: 2, data: after },
  })
})

t.test('a trigger starts a run for each row of a bulk, in order', async (t) => {
  const { id } = await tableOf(s)
  const { id: other } = await tableOf(s)
  const loop = await loopOn('table.row.inserted', `meta.table_id == '${id}'`)
  await insertAll(s, other, [{ number: 'elsewhere' }])
  await insertAll(
    s,
    id,
    Array.from({ length: 5 }, (_, i) => ({ number: `n${i}` })),
  )
  const results = await resultsOf(loop, 5)
  t.strictSame(results.map(({ event }) => dataOf(event)['number']).sort(), [
    'n0',
    'n1',
    'n2',
    'n3',
    'n4',
  ])
  const events = listOf(
    await s.ok('event.list', { event_type: 'table.row.inserted', limit: 5 }),
  ).map(({ event }) => dataOf(event)['number'])
  t.strictSame(
    events,
    ['n4', 'n3', 'n2', 'n1', 'n0'],
    'they are published in the order of the bulk',
  )
})

t.test('a run waits for a change of a row', async (t) => {
  const { id, name } = await tableOf(s)
  const row = await s.ok('row.insert', { id, data: { number: '1' } })
  const run = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'paid',
          kind: 'wait_for_event',
          config: {
            event_type: 'table.row.updated',
            source_id: row['id'],
            match: { 'meta.table_name': name },
            condition: 'event.data.paid == true',
            payload_mapping: { amount: 'event.data.amount', changed: 'event.changed' },
          },
        },
      ],
      output: {
        amount: '${{ steps.paid.output.amount }}',
        changed: '${{ steps.paid.output.changed }}',
      },
    },
  })
  await until(
    () => timelineOf(s, run['id']),
    (types) => types.includes('wait.opened'),
  )
  await s.ok('row.update', { id, row_id: row['id'], data: { amount: 7 } })
  await s.ok('row.upsert', { id, data: { number: '1', paid: true } })
  t.match(await ended(s, run['id']), {
    status: 'completed',
    result: { amount: 7, changed: ['paid'] },
  })
})

t.test('requests that change nothing publish nothing', async (t) => {
  const { id } = await tableOf(s)
  const headers = { 'idempotency-key': 'one-event' }
  for (const _ of [1, 2]) await s.ok('row.insert', { id, data: { number: '1' } }, { headers })
  await s.refused('row.insert', { id, data: { number: '1' } }, 409, 'already_exists')
  await s.refused('row.bulk', { id, rows: [{ number: '2' }, {}] }, 400, 'bad_request')
  const { id: last } = await s.ok('row.insert', { id, data: { number: '3' } })
  const events = await until(
    () => s.ok('event.list', { source_kind: 'table_row', limit: 200 }),
    (page) => listOf(page).some(({ source_id }) => source_id === last),
  )
  t.equal(
    listOf(events).filter(({ meta }) => (meta as unknown as Found)['table_id'] === id).length,
    2,
  )
  await s.ok('table.delete', { id })
})

t.test('the catalog lists the events of tables as ready', async (t) => {
  const sources = listOf(await s.ok('catalog.events'))
  const source = sources.find(({ prefix }) => String(prefix) === 'table')
  t.match(source, { kind: 'capability', readiness: 'ready' })
  t.strictSame(
    listOf(source as object, 'event_types').map(({ name }) => name),
    ['table.row.inserted', 'table.row.updated', 'table.row.deleted'],
  )
})
