/**
 * How resources are identified: bindings, adoption, moved keys, immutable fields, ownership, drift,
 * orphans, and applies of a given plan.
 */
import t, { type Test } from 'tap'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const apply = (blueprint_key: string, resources: Open, more: Open = {}) =>
  s.ok('blueprint.apply', { blueprint_key, resources, ...more })
const refused = (blueprint_key: string, resources: Open, code: string, more: Open = {}) =>
  s.refused('blueprint.apply', { blueprint_key, resources, ...more }, 409, code)
/**
 * Asserts that a preview and an apply are refused identically. Returns the details of the refusal.
 */
async function bothRefused(t: Test, blueprint_key: string, resources: Open, code: string) {
  const preview = await refused(blueprint_key, resources, code, { mode: 'preview' })
  const applied = await refused(blueprint_key, resources, code)
  t.strictSame(applied, preview, 'preview and apply are refused alike')
  return applied.details
}
const actionsOf = (result: object) =>
  listOf(result, 'changes').map(({ key, action }) => [key, action])
const idOf = (result: object, key: string) =>
  listOf(result, 'changes').find((change) => change['key'] === key)?.['resource_id']
const bindings = async (blueprint_key: string) =>
  listOf(await s.ok('blueprint.bindings', { blueprint_key, include: ['further_types'] }))
const schema = {
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'title', type: 'string' },
  ],
  identity_column: 'number',
}

t.test(
  'a unique name of a resource without a binding is adopted, except of toolkits',
  async (t) => {
    const spec = { steps: [{ id: 'a', kind: 'sleep', config: { duration: '0' } }] }
    const made = {
      table: await s.ok('table.create', { name: 'free_table', schema }),
      action: await s.ok('action.create', { name: 'free.do', endpoint_kind: 'worker' }),
      skill: await s.ok('skill.create', { name: 'Free skill', instructions: 'Old.' }),
      agent: await s.ok('agent.create', { name: 'free-agent', color: 'red' }),
      loop: await s.ok('loop.create', { name: 'Free loop', status: 'draft' }),
      toolkit: await s.ok('toolkit.create', { name: 'Free kit' }),
      workflow: await s.ok('workflow.create', {
        name: 'Free workflow',
        handle: 'free-workflow',
        spec,
      }),
      channel: await s.ok('channel.create', { name: 'free-channel' }),
      webhook: await s.ok('webhook.create', { name: 'free', url: 'https://example.com/hook' }),
      role: await s.ok('role.create', { name: 'free', permissions: ['service.project.view'] }),
      environment: await s.ok('environment.create', { name: 'free', provider: 'local' }),
    }
    const resources = {
      tables: [{ key: 'table', name: 'free_table', schema }],
      actions: [{ key: 'action', name: 'free.do', type: 'worker' }],
      skills: [{ key: 'skill', name: 'Free skill', instructions: 'New.' }],
      agents: [{ key: 'agent', name: 'free-agent' }],
      loops: [{ key: 'loop', name: 'Free loop' }],
      toolkits: [{ key: 'toolkit', name: 'Free kit' }],
      workflows: [{ key: 'workflow', name: 'Free workflow', handle: 'free-workflow', spec }],
      channels: [{ key: 'channel', name: 'free-channel', topic: 'New' }],
      webhooks: [{ key: 'webhook', name: 'free' }],
      roles: [{ key: 'role', name: 'free', permissions: ['service.project.view'] }],
      environments: [{ key: 'environment', name: 'free' }],
    }
    const preview = await apply('adopts', resources, { mode: 'preview' })
    const applied = await apply('adopts', resources)
    for (const change of listOf(applied, 'changes')) {
      const { action, resource_id } = change
      const key = String(change['key'])
      t.equal(action, key === 'toolkit' ? 'created' : 'adopted', key)
      if (key !== 'toolkit') t.equal(resource_id, made[key as keyof typeof made]['id'], key)
    }
    t.strictSame(actionsOf(preview), actionsOf(applied))
    for (const { key, delete_on_destroy } of await bindings('adopts'))
      t.equal(delete_on_destroy, String(key) === 'toolkit', `${key} is deleted with its blueprint`)
    t.match(await s.ok('skill.get', { id: made.skill['id'] }), { instructions: 'New.' })
    t.match(await s.ok('agent.get', { id: made.agent['id'] }), { color: 'red' })
    t.match(await s.ok('channel.get', { id: made.channel['id'] }), { topic: 'New' })
    const again = await apply('adopts', resources)
    t.ok(
      listOf(again, 'changes').every(({ action }) => `${action}` === 'unchanged'),
      JSON.stringify(actionsOf(again)),
    )
    t.strictSame(again['bindings'], applied['bindings'])
  },
)

t.test('several resources with the name are a conflict, which names them', async (t) => {
  for (let n = 0; n < 2; n++) {
    await s.ok('skill.create', { name: 'Twin', instructions: 'A' })
    await s.ok('loop.create', { name: 'Twin', status: 'draft' })
  }
  for (const [type, resources] of [
    ['skill', { skills: [{ key: 'twin', name: 'Twin' }] }],
    ['loop', { loops: [{ key: 'twin', name: 'Twin' }] }],
  ] as const) {
    const details = await bothRefused(t, 'twins', resources, 'blueprint_ambiguous_name')
    t.match(details, { resource_type: type, key: 'twin', field: `resources.${type}s[0]` })
    t.equal(listOf(details, 'resource_ids').length, 2)
  }
  t.strictSame(await bindings('twins'), [])
})

t.test('a resource of another blueprint is not taken', async (t) => {
  const agents = [{ key: 'a', name: 'owned' }]
  const first = await apply('owner', { agents }, { namespace: 'one' })
  const details = await bothRefused(t, 'thief', { agents }, 'blueprint_owned_elsewhere')
  t.match(details, {
    resource_type: 'agent',
    key: 'a',
    resource_id: idOf(first, 'a'),
    owner: { namespace: 'one', blueprint_key: 'owner', key: 'a' },
  })
  await bothRefused(t, 'owner', { agents }, 'blueprint_owned_elsewhere')
  const skills = [{ key: 'a', name: 'Owned skill' }]
  const one = await apply('owner', { skills }, { namespace: 'one' })
  const two = await apply('thief', { skills })
  t.strictSame(actionsOf(two), [['a', 'created']], 'names of skills may repeat')
  t.not(idOf(two, 'a'), idOf(one, 'a'), 'and two blueprints may use the same key')
})

t.test('immutable fields are refused with their names', async (t) => {
  await apply('fixed', {
    actions: [
      { key: 'a', name: 'fixed.do', type: 'worker' },
      { key: 'h', name: 'fixed.http', endpoint: 'https://example.com/a' },
    ],
    tables: [{ key: 't', name: 'fixed_table', schema }],
  })
  for (const [action, field] of [
    [{ key: 'a', name: 'fixed.other', type: 'worker' }, 'name'],
    [{ key: 'a', name: 'fixed.do', type: 'http', endpoint: 'https://example.com/a' }, 'type'],
    [{ key: 'h', name: 'fixed.http', type: 'worker' }, 'type'],
  ] as const)
    t.match(
      await bothRefused(t, 'fixed', { actions: [action] }, 'blueprint_immutable_field'),
      { resource_type: 'action', key: action.key, field, resource_id: String },
      JSON.stringify(action),
    )
  const [number, title] = schema.columns
  const table = (await bindings('fixed')).find(({ key }) => `${key}` === 't')
  await s.ok('row.insert', { id: table?.['resource_id'], data: { number: '1', title: 'x' } })
  for (const changed of [
    { ...schema, identity_column: 'title', columns: [number, { ...title, required: true }] },
    { ...schema, secondary_key_column: 'title' },
    { ...schema, columns: [number, { ...title, required: true }] },
  ])
    t.match(
      await bothRefused(
        t,
        'fixed',
        { tables: [{ key: 't', name: 'fixed_table', schema: changed }] },
        'blueprint_immutable_field',
      ),
      { resource_type: 'table', key: 't', resource_id: table?.['resource_id'], field: /^schema/ },
      JSON.stringify(changed),
    )
  const renamed = await apply('fixed', {
    tables: [
      {
        key: 't',
        name: 'renamed_table',
        schema: { ...schema, columns: [...schema.columns, { name: 'more', type: 'string' }] },
      },
    ],
  })
  t.strictSame(actionsOf(renamed), [['t', 'updated']], 'the name and new columns may change')
})

t.test('a name that another resource has is a conflict in the preview too', async (t) => {
  await apply('renames', {
    agents: [{ key: 'a', name: 'before' }],
    tables: [{ key: 't', name: 'before_table', schema }],
  })
  await s.ok('agent.create', { name: 'occupied' })
  await s.ok('table.create', { name: 'occupied_table', schema })
  await bothRefused(t, 'renames', { agents: [{ key: 'a', name: 'occupied' }] }, 'already_exists')
  await bothRefused(
    t,
    'renames',
    { tables: [{ key: 't', name: 'occupied_table', schema }] },
    'already_exists',
  )
})

t.test('a moved key keeps its resource', async (t) => {
  const before = await apply('moves', { skills: [{ key: 'old', name: 'Moved' }] })
  const skills = [{ key: 'new', name: 'Moved again', moved_from: 'old' }]
  const moved = await apply('moves', { skills })
  t.strictSame(actionsOf(moved), [['new', 'updated']])
  t.equal(idOf(moved, 'new'), idOf(before, 'old'))
  t.strictSame(
    (await bindings('moves')).map(({ key }) => key),
    ['new'],
  )
  t.strictSame(actionsOf(await apply('moves', { skills })), [['new', 'unchanged']])
  const agent = await apply('moves', { agents: [{ key: 'old', name: 'moved-agent' }] })
  const hint = await refused(
    'moves',
    { agents: [{ key: 'new', name: 'moved-agent' }] },
    'blueprint_owned_elsewhere',
  )
  t.match(hint.message, /moved_from/)
  const kept = { agents: [{ key: 'new', name: 'moved-agent', moved_from: 'old' }] }
  t.equal(idOf(await apply('moves', kept), 'new'), idOf(agent, 'old'))
})

t.test('a resource that was deleted outside is created again under its key', async (t) => {
  const resources = {
    tables: [{ key: 't', name: 'lost_table', schema }],
    skills: [{ key: 's', name: 'Lost' }],
    agents: [{ key: 'a', name: 'lost' }],
    loops: [{ key: 'l', name: 'Lost', agent: { key: 'a' } }],
  }
  const first = await apply('lost', resources)
  await s.ok('loop.delete', { id: idOf(first, 'l') })
  await s.ok('agent.delete', { id: idOf(first, 'a') })
  await s.ok('table.delete', { id: idOf(first, 't') })
  t.strictSame(
    (await bindings('lost')).map(({ key }) => key),
    ['s'],
  )
  const again = await apply('lost', resources)
  t.strictSame(actionsOf(again), [
    ['t', 'created'],
    ['s', 'unchanged'],
    ['a', 'created'],
    ['l', 'created'],
  ])
  for (const key of ['t', 'a', 'l']) t.not(idOf(again, key), idOf(first, key))
  const gone = await s.ok('blueprint.delete', { blueprint_key: 'lost' })
  t.equal(listOf(gone, 'deleted').length, 4)
})

t.test('drift is reported per field, and repaired by an apply', async (t) => {
  const resources = {
    agents: [{ key: 'a', name: 'drifts', color: 'red', system_prompt: 'Right.' }],
    skills: [{ key: 's', name: 'Drifts', instructions: 'Right.' }],
  }
  const applied = await apply('drifts', resources)
  const drift = async () =>
    listOf(await s.ok('blueprint.drift', { blueprint_key: 'drifts' })).map(
      ({ key, state, fields }) => [key, state, fields],
    )
  t.strictSame(
    await drift(),
    [
      ['a', 'unchanged', []],
      ['s', 'unchanged', []],
    ].sort(),
  )
  const id = idOf(applied, 'a')
  await s.ok('agent.update', { id, system_prompt: 'Wrong.', description: 'Not in the blueprint' })
  const found = (await drift()).find(([key]) => `${key}` === 'a')
  t.strictSame(found, ['a', 'changed', [{ field: 'system_prompt', to: 'Wrong.' }]])
  const preview = await apply('drifts', resources, {
    mode: 'preview',
    include: ['plan', 'drift'],
  })
  const changes = listOf(preview, 'changes')
  t.match(
    changes.find(({ key }) => `${key}` === 'a'),
    {
      action: 'updated',
      fields: [{ field: 'system_prompt', from: 'Wrong.', to: 'Right.' }],
      drift: [{ field: 'system_prompt', to: 'Wrong.' }],
    },
  )
  t.strictSame(actionsOf(await apply('drifts', resources)), [
    ['s', 'unchanged'],
    ['a', 'updated'],
  ])
  t.ok((await drift()).every(([, state]) => `${state}` === 'unchanged'))
  t.match(await s.ok('agent.get', { id }), {
    system_prompt: 'Right.',
    description: 'Not in the blueprint',
  })
})

t.test('orphans are listed on request, and deleted only with a plan', async (t) => {
  const adopted = await s.ok('agent.create', { name: 'orphan-adopted' })
  const all = {
    skills: [
      { key: 'stays', name: 'Stays' },
      { key: 'goes', name: 'Goes' },
    ],
    toolkits: [{ key: 'kit', name: 'Goes too' }],
    agents: [
      { key: 'a', name: 'orphan-agent', toolkits: [{ key: 'kit' }] },
      { key: 'b', name: 'orphan-adopted' },
    ],
  }
  await apply('orphans', all)
  const less = { skills: [{ key: 'stays', name: 'Stays' }] }
  const left = await apply('orphans', less, { include: ['orphans'] })
  t.strictSame(
    listOf(left, 'orphans').map(({ key }) => key),
    ['goes', 'kit', 'a', 'b'],
  )
  t.equal((await bindings('orphans')).length, 5, 'an apply does not delete them')
  t.equal(listOf(left, 'bindings').length, 5)
  await s.refused(
    'blueprint.apply',
    { blueprint_key: 'orphans', resources: less, prune: true },
    400,
    'bad_request',
  )
  const plan = { prune: true, include: ['plan'] }
  const preview = await apply('orphans', less, { ...plan, mode: 'preview' })
  const expected = [
    ['stays', 'unchanged'],
    ['a', 'deleted'],
    ['b', 'released'],
    ['kit', 'deleted'],
    ['goes', 'deleted'],
  ]
  t.strictSame(new Set(actionsOf(preview).map(String)), new Set(expected.map(String)))
  await s.ok('skill.create', { name: 'Elsewhere', instructions: 'x' })
  const { plan_id } = preview
  const applied = await apply('orphans', less, { ...plan, plan_id })
  t.strictSame(actionsOf(applied), actionsOf(preview))
  t.strictSame(
    (await bindings('orphans')).map(({ key }) => key),
    ['stays'],
  )
  t.match(await s.ok('agent.get', { id: adopted['id'] }), { name: 'orphan-adopted' })
  t.equal((await s.call('agent.get', { id: 'orphan-agent' })).status, 404)
})

t.test('a plan is refused after the project has moved', async (t) => {
  const resources = { agents: [{ key: 'a', name: 'planned', color: 'red' }] }
  const preview = await apply('planned', resources, { mode: 'preview', include: ['plan'] })
  const again = await apply('planned', resources, { mode: 'preview', include: ['plan'] })
  t.equal(again['plan_id'], preview['plan_id'], 'the same plan has the same id')
  const plan_id = preview['plan_id']
  const agent = await s.ok('agent.create', { name: 'planned' })
  await refused('planned', resources, 'blueprint_plan_outdated', { plan_id })
  t.strictSame(await bindings('planned'), [])
  const next = await apply('planned', resources, { mode: 'preview', include: ['plan'] })
  await s.ok('agent.update', { id: agent['id'], description: 'moved' })
  await refused('planned', resources, 'blueprint_plan_outdated', { plan_id: next['plan_id'] })
  const last = await apply('planned', resources, { mode: 'preview', include: ['plan'] })
  const applied = await apply('planned', resources, { plan_id: last['plan_id'] })
  t.strictSame(actionsOf(applied), [['a', 'adopted']])
  t.notOk('plan_id' in applied, 'plan_id is answered only on request')
  await refused('planned', resources, 'blueprint_plan_outdated', { plan_id: last['plan_id'] })
})
