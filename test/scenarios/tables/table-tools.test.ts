/**
 * Actions on tables: agents call them as tools and workflows as steps. The scripted model answers
 * for the agents, and no worker is connected.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, type Found, listOf } from '../support/given.ts'
import { as, person } from '../support/people.ts'
import {
  agentWithTables,
  columns,
  insertAll,
  numbersOf,
  schema,
  tableOf,
  tableStep,
} from '../support/tables.ts'
import { invoke, placeOf, said, says, text, turnIn } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const agentWith = (script: string, groups: readonly string[]) => agentWithTables(s, script, groups)
const ranWith = async (steps: readonly Open[], more: Open = {}): Promise<Found> =>
  ended(s, (await s.ok('run.start', { spec: { steps, ...more } }))['id'])
/** Returns the results of the tool calls of a turn, as texts. */
const resultsOf = async (ack: Found): Promise<string[]> =>
  listOf(await s.ok('session.turn_messages', { turn_id: placeOf(ack).turn_id }))
    .flatMap(({ content }) => content as unknown as Open[])
    .filter(({ type }) => type === 'tool_result')
    .map(({ content }) => String(content))

t.test('the catalog and the manifest list the actions and their groups', async (t) => {
  const all = listOf(await s.ok('catalog.actions')).filter(({ name }) =>
    String(name).startsWith('service.table.'),
  )
  t.strictSame(
    all.map(({ name, risk }) => `${name} ${risk}`),
    [
      'service.table.delete high',
      'service.table.insert medium',
      'service.table.query low',
      'service.table.search low',
      'service.table.upsert medium',
    ],
  )
  t.match(all[0], {
    endpoint_kind: 'builtin',
    readiness: 'ready',
    description: /Only agents and steps call this\.$/,
    input_schema: { required: ['table', 'row_id'] },
  })
  const agent = await agentWith('', ['service.table.read', 'service.table.write'])
  t.match(await s.ok('agent.tools', { id: agent['id'] }), {
    tools: all.map(({ name }) => ({ name })),
    groups_resolved: [
      {
        name: 'service.table.read',
        members: ['service.table.query', 'service.table.search'],
      },
      {
        name: 'service.table.write',
        members: ['service.table.delete', 'service.table.insert', 'service.table.upsert'],
      },
    ],
    warnings: [],
  })
  const reader = await agentWith('', ['service.table.read'])
  const { tools } = await s.ok('agent.tools', { id: reader['id'] })
  t.strictSame(
    (tools as unknown as Found[]).map(({ name }) => name),
    ['service.table.query', 'service.table.search'],
  )
  await s.refused(
    'action.invoke',
    { action_name: 'service.table.insert', input: {} },
    409,
    'conflict',
  )
})

t.test('an agent with the group of reading searches and answers', async (t) => {
  const table = await tableOf(s)
  await insertAll(s, table['id'], [
    { number: 'A-1', customer: 'Ann Example', amount: 3 },
    { number: 'A-2', customer: 'Bob', amount: 4 },
  ])
  const agent = await agentWith(
    `script:
  - when: {text: "who ordered *", step: 1}
    call: {service.table.search: {table: ${table['name']}, query: "{{1}}"}}
  - when: {after: service.table.search, error: true}
    say: "Not found: {{result}}"
  - when: {after: service.table.search}
    say: "{{result.items.0.data.customer}}, for {{result.items.0.data.amount}}"
`,
    ['service.table.read'],
  )
  const ack = await invoke(s, agent, 'Who ordered a-1')
  t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
  t.equal((await said(s, ack)).at(-1), 'assistant: Ann Example, for 3')
  const [result = ''] = await resultsOf(ack)
  t.match(JSON.parse(result), {
    items: [{ table_id: table['id'], version: 1, data: { number: 'A-1' } }],
    has_more: false,
    limit: 20,
  })
})

t.test('an agent without the group of writing cannot insert', async (t) => {
  const { id, name } = await tableOf(s)
  const script = `script:
  - when: {step: 1}
    call: {service.table.insert: {table: ${name}, data: {number: B-1}}}
  - say: "{{result}}"
`
  const reader = await agentWith(script, ['service.table.read'])
  const ack = await invoke(s, reader, 'insert')
  await turnIn(s, ack, 'completed', 'failed')
  t.match(await resultsOf(ack), [/has no command|no tool/])
  t.strictSame(numbersOf(await s.ok('table.query', { id })), [])
  const writer = await agentWith(script, ['service.table.write'])
  await turnIn(s, await invoke(s, writer, 'insert'), 'completed', 'failed')
  t.strictSame(numbersOf(await s.ok('table.query', { id })), ['B-1'])
})

t.test('a refusal names the fields, so that a model can correct its call', async (t) => {
  const { name } = await tableOf(s)
  const agent = await agentWith(
    `script:
  - when: {text: "unknown", step: 1}
    call: {service.table.insert: {table: nothing, data: {}}}
  - when: {text: "wrong", step: 1}
    call: {service.table.insert: {table: ${name}, data: {number: x, amount: many, odd: 1}}}
  - when: {text: "taken", step: 1}
    call: {service.table.insert: {table: ${name}, data: {number: x}}}
  - when: {text: "taken", step: 2}
    call: {service.table.insert: {table: ${name}, data: {number: x, amount: 1}}}
  - say: done
`,
    ['service.table'],
  )
  const resultOf = async (text: string): Promise<string> => {
    const ack = await invoke(s, agent, text)
    await turnIn(s, ack, 'completed', 'failed')
    return (await resultsOf(ack)).at(-1) ?? ''
  }
  const unknown = await resultOf('unknown')
  t.match(unknown, /bad_request.*there is no such table/s)
  t.match(unknown, String(name), 'the names of tables are listed')
  const wrong = await resultOf('wrong')
  t.match(wrong, /bad_request/)
  t.match(wrong, /data\.amount/)
  t.match(wrong, /data\.odd/)
  t.match(await resultOf('taken'), /already_exists.*data\.number/s)
})

t.test('an agent deletes a row only after an approval', async (t) => {
  const { id, name } = await tableOf(s)
  const [row] = await insertAll(s, id, [{ number: 'gone' }])
  const agent = await agentWith(
    `script:
  - when: {step: 1}
    call: {service.table.delete: {table: ${name}, row_id: ${row?.['id']}}}
  - say: "{{result}}"
`,
    ['service.table.write'],
  )
  const ack = await invoke(s, agent, 'delete')
  t.match(await turnIn(s, ack, 'waiting', 'failed'), { status: 'waiting' })
  t.equal(numbersOf(await s.ok('table.query', { id })).length, 1)
  const [asked] = listOf(await s.ok('interaction.list', { session_id: placeOf(ack).session_id }))
  await s.ok('interaction.respond', { id: asked?.['id'], value: true })
  t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
  t.strictSame(numbersOf(await s.ok('table.query', { id })), [])
})

t.test('a workflow inserts, upserts, queries, searches and deletes', async (t) => {
  const { id, name } = await tableOf(s)
  const run = await ranWith(
    [
      tableStep('insert', { table: name, data: { number: 'W-1', amount: 1, customer: 'Wim' } }),
      tableStep('upsert', { table: id, data: { number: 'W-1', amount: 2 } }),
      tableStep('query', { table: name, filter: { amount: { $gte: 2 } }, limit: 1 }),
      tableStep('search', { table: name, query: 'wim' }),
      tableStep('delete', { table: name, row_id: '${{ steps.insert.output.id }}' }),
    ],
    {
      output: {
        inserted: '${{ steps.insert.output }}',
        upserted: '${{ steps.upsert.output }}',
        queried: '${{ steps.query.output }}',
        searched: '${{ steps.search.output.items.size() }}',
      },
    },
  )
  t.match(run, { status: 'completed' }, JSON.stringify(run['error_message'] ?? ''))
  t.match(run['result'], {
    inserted: { table_id: id, version: 1, data: { number: 'W-1', amount: 1, paid: false } },
    upserted: { created: false, row: { version: 2, data: { amount: 2, customer: 'Wim' } } },
    queried: { items: [{ data: { number: 'W-1' } }], has_more: false, limit: 1 },
    searched: 1,
  })
  t.strictSame(numbersOf(await s.ok('table.query', { id })), [])
})

t.test('the pages of a query continue by their cursor', async (t) => {
  const { id, name } = await tableOf(s)
  await insertAll(s, id, [{ number: 'a' }, { number: 'b' }, { number: 'c' }])
  const run = await ranWith(
    [
      tableStep('query', { table: name, limit: 2 }),
      {
        ...tableStep('query', {
          table: name,
          limit: 2,
          cursor: '${{ steps.query.output.next_cursor }}',
        }),
        id: 'rest',
      },
    ],
    { output: { first: '${{ steps.query.output }}', rest: '${{ steps.rest.output }}' } },
  )
  t.match(run, { status: 'completed' })
  const { first, rest } = run['result'] as unknown as { first: object; rest: object }
  t.strictSame([...numbersOf(first), ...numbersOf(rest)], ['a', 'b', 'c'])
})

t.test('a step with wrong parameters fails with the fields', async (t) => {
  t.match(await ranWith([tableStep('insert', { data: 'text' })]), {
    status: 'failed',
    error_type: 'bad_request',
    error_message: /data.*table/s,
  })
  t.match(await ranWith([tableStep('search', { table: 'x', query: 'x', mode: 'semantic' })]), {
    status: 'failed',
    error_type: 'bad_request',
  })
  const { name } = await tableOf(s)
  t.match(await ranWith([tableStep('search', { table: name, query: 'x', mode: 'semantic' })]), {
    status: 'failed',
    error_type: 'table_semantic_search_unavailable',
  })
})

t.test('the author of a definition needs the permission of the endpoint', async (t) => {
  const operator = as(await person(s, 'Olga', 'role_operator'))
  const { name } = await tableOf(s)
  const start = (action: string, parameters: Open) => ({
    spec: { steps: [tableStep(action, { table: name, ...parameters })] },
  })
  t.match(
    await s.refused(
      'run.start',
      start('insert', { data: { number: '1' } }),
      403,
      'permission_denied',
      operator,
    ),
    { details: { permission: 'service.project.edit' } },
  )
  const run = await s.ok('run.start', start('query', {}), operator)
  t.match(await ended(s, run['id']), { status: 'completed' })
  const agent = await agentWith('', [])
  const inline = (actions: readonly string[]) => ({
    agent_ref: { id: agent['id'] },
    input: { content: [{ type: 'text', text: 'hi' }] },
    config: { toolkits: [{ name: 'inline', actions }] },
  })
  for (const actions of [['service.table.upsert'], ['service.table.*']])
    await s.refused('agent.invoke', inline(actions), 403, 'permission_denied', operator)
  await s.ok('agent.invoke', inline(['service.table.query']), operator)
})

t.test('a turn is shown the tables as they are when it starts', async (t) => {
  const project = String((await s.ok('project.create', { name: 'shown' }))['id'])
  const at = { project }
  const { id } = await s.ok('table.create', {
    ...at,
    name: 'contacts',
    description: 'People to call',
    instructions: 'Never delete a contact.',
    schema: {
      ...schema,
      columns: columns.map((column) =>
        column['name'] === 'amount' ? { ...column, description: 'In euros' } : column,
      ),
    },
  })
  const worker = await s.worker(
    { models: [{ provider: 'local', model: 'm' }], action_names: ['nothing'] },
    { project },
  )
  const agent = await s.ok('agent.create', {
    ...at,
    name: 'reader',
    system_prompt: 'Be kind.',
    model_route: { mode: 'worker', provider: 'local', model: 'm' },
  })
  const kit = await s.ok('toolkit.create', {
    ...at,
    name: 'Read',
    actions: [{ selector_type: 'group', selector: 'service.table.read' }],
  })
  await s.ok('agent.assign_toolkits', {
    ...at,
    id: agent['id'],
    toolkit_ids: [kit['id']],
  })
  const systemOf = async (): Promise<string[]> => {
    await s.ok('agent.invoke', {
      ...at,
      agent_ref: { id: agent['id'] },
      session: { mode: 'new' },
      input: { content: [{ type: 'text', text: 'hi' }] },
    })
    const job = await says(worker, [text('Hello')])
    const { request } = job['spec'] as unknown as { request: { system: { text: string }[] } }
    return request.system.map(({ text }) => text)
  }
  const [first, second] = await systemOf()
  t.equal(first, 'Be kind.')
  t.equal(
    second,
    [
      '# Tables',
      '## contacts: People to call',
      'Never delete a contact.',
      '- number (string, identity)',
      '- customer (string)',
      '- amount (number): In euros',
      '- paid (boolean)',
      '- due (date)',
      '- address (object)',
      '- tags (array)',
      '- note (any)',
    ].join('\n'),
  )
  await s.ok('table.update', { ...at, id, instructions: 'Contacts may be deleted.' })
  t.match((await systemOf())[1], /\nContacts may be deleted\.\n/)
})
