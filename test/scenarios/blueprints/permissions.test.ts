/**
 * Permissions: for each resource, an apply needs the permission of the row that directly changes
 * the resource.
 */
import t, { type Test } from 'tap'
import { api, type RowName } from '../../../protocol/api.ts'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
/** Creates a principal with these permissions. Returns call options with its key. */
async function keyWith(name: string, ...permissions: string[]): Promise<{ key: string }> {
  const role = await s.ok('role.create', {
    name,
    permissions: ['service.project.view', ...permissions],
  })
  const { id } = await s.ok('principal.create', { name, role_ids: [role['id']] })
  return { key: String((await s.ok('key.create', { name, principal_id: id }))['key']) }
}
const viewer = await keyWith('may-viewer')
const editor = await keyWith('may-editor', 'service.project.edit')
const author = await keyWith('may-author', 'service.project.edit', 'actions.execute.crm.*')
const denied = [403, 'permission_denied'] as const
const schema = {
  columns: [{ name: 'n', type: 'string', required: true }],
  identity_column: 'n',
}
/** Asserts that a preview and an apply with this key are refused, and that nothing is written. */
async function refused(t: Test, resources: Open, options: { key: string }, more: Open = {}) {
  const call = { blueprint_key: 'denied', resources, ...more }
  const preview = await s.refused(
    'blueprint.apply',
    { ...call, mode: 'preview' },
    ...denied,
    options,
  )
  const applied = await s.refused('blueprint.apply', call, ...denied, options)
  t.strictSame(applied, preview, 'preview and apply are refused alike')
  const { items } = await s.ok('blueprint.bindings', {
    blueprint_key: 'denied',
    include: ['further_types'],
  })
  t.strictSame(items, [])
  return applied.details
}
const roles = (permissions: string[], name = 'made') => [{ key: 'r', name, permissions }]
const step = (action_name: string) => ({ id: 'a', kind: 'action', config: { action_name } })

t.test('an apply needs project.edit, and protection and deletion need project.admin', async (t) => {
  const skills = { skills: [{ key: 's', name: 'S' }] }
  t.match(await refused(t, skills, viewer), { permission: 'service.project.edit' })
  await s.ok('blueprint.apply', { blueprint_key: 'plain', resources: skills }, editor)
  const plain = { blueprint_key: 'plain' }
  t.match(await s.ok('blueprint.bindings', plain, viewer), { items: [{ key: 's' }] })
  await s.ok('blueprint.drift', plain, viewer)
  await s.ok('blueprint.export', plain, viewer)
  for (const [name, input] of [
    ['blueprint.protect', { ...plain, protected: true }],
    ['blueprint.delete', plain],
  ] as const)
    t.match((await s.refused(name, input, ...denied, editor)).details, {
      permission: 'service.project.admin',
    })
})

t.test('roles and webhooks need the permission of their rows, also to be bound', async (t) => {
  const admin = { permission: 'service.project.admin' }
  t.match(await refused(t, { roles: roles(['service.project.view']) }, editor), admin)
  const webhooks = [{ key: 'w', name: 'made', url: 'https://example.com/hook' }]
  t.match(await refused(t, { webhooks }, editor), admin)
  await s.ok('role.create', { name: 'present', permissions: ['service.project.view'] })
  const present = { roles: roles(['service.project.view'], 'present') }
  t.match(await refused(t, present, editor), admin, 'a role is not adopted either')
  t.match(
    await refused(t, present, editor, { protect_resources: true }),
    admin,
    'nor protected from its owners',
  )
  const all = { ...present, skills: [{ key: 's', name: 'Never made' }] }
  await refused(t, all, editor)
  t.strictSame(
    listOf(await s.ok('skill.list')).filter(({ name }) => `${name}` === 'Never made'),
    [],
    'permissions are checked before anything is written',
  )
})

t.test('a role cannot grant permissions that the caller does not have', async (t) => {
  const manager = await keyWith(
    'may-manager',
    'service.project.edit',
    'service.project.admin',
    'service.access.manage',
  )
  const call = (permissions: string[]) => ({
    blueprint_key: 'roles',
    resources: { roles: roles(permissions, 'granted') },
    include: ['further_types'],
  })
  await s.refused(
    'blueprint.apply',
    call(['service.project.view', 'actions.execute.*']),
    ...denied,
    manager,
  )
  t.strictSame((await s.ok('blueprint.bindings', { blueprint_key: 'roles' }))['items'], [])
  await s.ok('blueprint.apply', call(['service.project.view']), manager)
  await s.refused(
    'blueprint.apply',
    call(['service.project.view', 'actions.execute.*']),
    ...denied,
    manager,
  )
  await s.ok('blueprint.apply', call(['service.project.view', 'actions.execute.*']))
})

t.test('definitions need the permission to execute the actions that they name', async (t) => {
  for (const [resources, field] of [
    [
      { loops: [{ key: 'l', name: 'L', steps: [step('pay.out')] }] },
      'resources.loops[0].steps[0].config.action_name',
    ],
    [
      { workflows: [{ key: 'w', name: 'W', handle: 'w', spec: { steps: [step('pay.out')] } }] },
      'resources.workflows[0].spec.steps[0].config.action_name',
    ],
    [
      { loops: [{ key: 'l', name: 'L', steps: [], cleanup: [step('pay.out')] }] },
      'resources.loops[0].cleanup[0].config.action_name',
    ],
  ] as const) {
    const details = await refused(t, resources, author)
    t.match(details, { permission: 'actions.execute.pay.out' })
    t.strictSame(fieldsOf({ details }), [field])
  }
  const allowed = { loops: [{ key: 'l', name: 'Allowed', steps: [step('crm.find')] }] }
  await s.ok('blueprint.apply', { blueprint_key: 'r18', resources: allowed }, author)
  const changed = { loops: [{ key: 'l', name: 'Allowed', steps: [step('pay.out')] }] }
  await s.refused(
    'blueprint.apply',
    { blueprint_key: 'r18', resources: changed },
    ...denied,
    author,
  )
})

t.test('the address of an existing action needs project.admin', async (t) => {
  const actions = (endpoint: string) => ({
    actions: [{ key: 'a', name: 'crm.moved', endpoint }],
  })
  const call = { blueprint_key: 'moved' }
  const first = actions('https://example.com/one')
  await s.ok('blueprint.apply', { ...call, resources: first }, author)
  const moved = { ...call, resources: actions('https://evil.example/two') }
  for (const mode of ['preview', 'apply'])
    t.match(
      (await s.refused('blueprint.apply', { ...moved, mode }, ...denied, author)).details,
      { permission: 'service.project.admin' },
      mode,
    )
  await s.ok('blueprint.apply', moved)
})

t.test(
  'pruning an HTTP action needs project.admin, pruning an action of workers not',
  async (t) => {
    const prune = async (actions: Open[], call: Open) => {
      await s.ok('blueprint.apply', { ...call, resources: { actions } }, author)
      const pruning = { ...call, resources: {}, prune: true, include: ['plan'] }
      return { ...pruning, plan_id: undefined, mode: 'preview' }
    }
    const http = { key: 'a', name: 'crm.pruned', endpoint: 'https://example.com/one' }
    const first = await prune([http], { blueprint_key: 'pruned-http' })
    const { plan_id } = await s.ok('blueprint.apply', first)
    for (const more of [{}, { mode: 'apply', plan_id }])
      t.match(
        (await s.refused('blueprint.apply', { ...first, ...more }, ...denied, author)).details,
        { permission: 'service.project.admin', resource_type: 'action', key: 'a' },
      )
    await s.ok('action.get', { action_name: 'crm.pruned' })
    const worker = { key: 'a', name: 'crm.worked', type: 'worker' }
    const second = await prune([worker], { blueprint_key: 'pruned-worker' })
    const plan = await s.ok('blueprint.apply', second, author)
    await s.ok('blueprint.apply', { ...second, mode: 'apply', plan_id: plan['plan_id'] }, author)
    await s.refused('action.get', { action_name: 'crm.worked' }, 404, 'not_found')
  },
)

t.test('pruning needs the permissions of the deletions', async (t) => {
  const tables = [{ key: 't', name: 'pruned_table', schema }]
  const call = { blueprint_key: 'pruned', prune: true, include: ['plan'] }
  await s.ok('blueprint.apply', { blueprint_key: 'pruned', resources: { tables } }, editor)
  const preview = await s.ok('blueprint.apply', { ...call, resources: {}, mode: 'preview' })
  const { plan_id } = preview
  t.match(
    (await s.refused('blueprint.apply', { ...call, resources: {}, plan_id }, ...denied, editor))
      .details,
    { permission: 'service.project.admin' },
  )
  t.equal(listOf(await s.ok('blueprint.bindings', { blueprint_key: 'pruned' })).length, 1)
})

t.test('a key of another project reaches no row', async (t) => {
  const { id } = await s.ok('project.create', { name: 'Other', handle: 'other' })
  const made = await s.ok('principal.create', {
    project: id,
    name: 'stranger',
    role_ids: ['role_admin'],
  })
  const key = await s.ok('key.create', { project: id, name: 'k', principal_id: made['id'] })
  const options = { key: String(key['key']) }
  const rows = Object.keys(api).filter((name) => name.startsWith('blueprint.')) as RowName[]
  t.ok(rows.length >= 6)
  for (const name of rows) {
    const input = {
      'blueprint.apply': { resources: {} },
      'blueprint.protect': { blueprint_key: 'plain', protected: true },
    }[name as string] ?? { blueprint_key: 'plain' }
    await s.refused(name, input, 403, 'forbidden', options)
    await s.refused(name, { ...input, project: 'none' }, 404, 'not_found', options)
    await s.refused(name, input, 401, 'unauthorized', { key: null })
  }
  const skills = { skills: [{ key: 's', name: 'S' }] }
  await s.ok('blueprint.apply', { project: id, blueprint_key: 'plain', resources: skills }, options)
  const other = await s.ok('blueprint.bindings', { project: id }, options)
  t.equal(listOf(other).length, 1, 'the bindings of projects are separate')
  const foreign = listOf(await s.ok('blueprint.bindings', { blueprint_key: 'plain' }))[0]
  const agents = [{ key: 'a', name: 'a', skills: [{ id: foreign?.['resource_id'] }] }]
  await s.refused(
    'blueprint.apply',
    { project: id, resources: { agents } },
    404,
    'not_found',
    options,
  )
})

t.test('a private channel is not described to principals that may not see it', async (t) => {
  const secret = 'The takeover of a competitor'
  const member = await keyWith('may-member', 'service.project.edit', 'service.channel.write')
  const other = await keyWith('may-other', 'service.project.edit', 'service.channel.write')
  const blueprint = { blueprint_key: 'rooms' }
  const rooms = (topic: string) => ({
    ...blueprint,
    resources: { channels: [{ key: 'deal', name: 'deal', private: true, topic }] },
  })
  await s.ok('blueprint.apply', rooms(secret), member)
  const own = await s.ok('channel.create', { name: 'free', private: true, topic: secret }, member)
  const detail = { include: ['further_types', 'plan', 'drift'] }
  for (const key of [viewer, other]) {
    for (const input of [{}, blueprint])
      t.notMatch(JSON.stringify(await s.ok('blueprint.export', input, key)), /takeover|"deal"/)
    t.strictSame((await s.ok('blueprint.drift', { ...blueprint, ...detail }, key))['items'], [])
    t.strictSame((await s.ok('blueprint.bindings', { ...blueprint, ...detail }, key))['items'], [])
  }
  const refusal = await s.refused(
    'blueprint.apply',
    { ...rooms('Other'), ...detail, mode: 'preview' },
    404,
    'not_found',
    other,
  )
  t.notMatch(JSON.stringify(refusal), /takeover/)
  const adopting = {
    blueprint_key: 'adopting',
    resources: { channels: [{ key: 'free', name: 'free', topic: 'Other' }] },
    ...detail,
  }
  const preview = await s.ok('blueprint.apply', { ...adopting, mode: 'preview' }, other)
  t.match(preview, { changes: [{ action: 'created' }] })
  t.notMatch(JSON.stringify(preview), new RegExp(`takeover|${own['id']}`))
  for (const key of [member, {}]) {
    t.match(await s.ok('blueprint.export', blueprint, key), {
      resources: { channels: [{ key: 'deal', topic: secret }] },
    })
    t.match(await s.ok('blueprint.drift', { ...blueprint, ...detail }, key), {
      items: [{ key: 'deal' }],
    })
  }
})
