/**
 * Causal chains through rows: when runs change rows, the changes start more runs, up to a limit.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { agentWithTables, dataOf, numbersOf, tableOf, tableStep } from '../support/tables.ts'
import { invoke, turnIn } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

t.test('a loop that changes the rows that start it stops at the limit', async (t) => {
  const { id, name } = await tableOf(s)
  const loop = await s.ok('loop.create', {
    name: 'Echo',
    triggers: [
      {
        kind: 'event',
        key: 'row',
        config: {
          event_type: 'table.row.updated',
          condition: `meta.table_name == '${name}'`,
        },
      },
    ],
    steps: [
      tableStep('upsert', {
        table: name,
        data: { number: 'n', amount: '${{ event.data.amount + 1.0 }}' },
      }),
    ],
  })
  const row = await s.ok('row.insert', { id, data: { number: 'n', amount: 0 } })
  const depths = async (): Promise<number[]> =>
    listOf(await s.ok('event.list', { source_id: row['id'], limit: 200 }))
      .filter(({ event_type }) => event_type === 'table.row.updated')
      .map(({ causation }) => (causation as { depth?: number } | undefined)?.depth ?? 0)
      .sort((a, b) => a - b)
  await until(
    async () => {
      // A new loop may miss a change that precedes the registration of its trigger. Therefore, the
      // row is changed until the loop reacts.
      if ((await depths()).length < 2)
        await s.ok('row.update', { id, row_id: row['id'], data: { amount: 0 } })
      return depths()
    },
    (all) => all.includes(9),
  )
  await until(
    () => s.ok('loop.triggers', { id: loop['id'] }),
    (page) => listOf(page)[0]?.['last_skipped_start'] !== undefined,
  )
  t.match(listOf(await s.ok('loop.triggers', { id: loop['id'] }))[0], {
    last_skipped_start: { reason: /chain of more than 8 runs/ },
  })
  t.equal((await depths()).at(-1), 9, 'no change has a greater depth')
  t.ok(Number(dataOf(await s.ok('row.get', { id, row_id: row['id'] }))['amount']) >= 9)
})

t.test('changes by an agent in a run carry the depth of the run', async (t) => {
  const { id, name } = await tableOf(s)
  const agent = await agentWithTables(
    s,
    `script:
  - when: {step: 1}
    call: {service.table.insert: {table: ${name}, data: {number: "{{text}}"}}}
  - say: done
`,
    ['service.table.write'],
  )
  const loop = await s.ok('loop.create', {
    name: 'Agent',
    triggers: [{ kind: 'event', key: 'go', config: { event_type: 'go.agent' } }],
    steps: [
      {
        id: 'ask',
        kind: 'agent',
        config: { agent_id: agent['id'], instructions: '${{ event.name }}' },
      },
    ],
  })
  let published = 0
  await until(
    async () => {
      if (listOf(await s.ok('run.list', { loop_id: loop['id'] })).length === 0)
        await s.ok('event.publish', {
          event_type: 'go.agent',
          event: { name: `n${++published}` },
        })
      return s.ok('table.query', { id })
    },
    (page) => numbersOf(page).length > 0,
  )
  const [row] = listOf(await s.ok('table.query', { id }))
  t.match(listOf(await s.ok('event.list', { source_id: row?.['id'] })), [
    { event_type: 'table.row.inserted', causation: { depth: 1 } },
  ])
  // A turn that no run requested has no depth.
  await turnIn(s, await invoke(s, agent, 'direct'), 'completed', 'failed')
  const [direct] = listOf(await s.ok('table.query', { id, filter: { number: 'direct' } }))
  const [event] = await until(
    async () => listOf(await s.ok('event.list', { source_id: direct?.['id'] })),
    (all) => all.length === 1,
  )
  t.notMatch(event, { causation: { depth: 1 } })
})

t.test('a run that an agent starts for a run continues the chain', async (t) => {
  const { id, name } = await tableOf(s)
  await s.ok('workflow.create', {
    name: 'Store',
    handle: 'store',
    spec: {
      steps: [tableStep('insert', { table: name, data: { number: '${{ input.number }}' } })],
    },
  })
  const agent = await agentWithTables(
    s,
    `script:
  - when: {step: 1}
    call: {service.run.start: {workflow: store, input: {number: "{{text}}"}}}
  - say: done
`,
    ['service.run'],
  )
  const { id: run_id } = await s.ok('run.start', {
    spec: {
      steps: [{ id: 'ask', kind: 'agent', config: { agent_id: agent['id'], instructions: 'n1' } }],
    },
  })
  const [row] = await until(
    async () => listOf(await s.ok('table.query', { id })),
    (rows) => rows.length === 1,
  )
  // The run of the agent step has depth 0, and the run that the agent starts has depth 1.
  // Therefore, the change by the second run has depth 2.
  const [event] = await until(
    async () => listOf(await s.ok('event.list', { source_id: row?.['id'] })),
    (events) => events.length === 1,
  )
  t.match(event, { causation: { depth: 2 } }, String(run_id))
})
