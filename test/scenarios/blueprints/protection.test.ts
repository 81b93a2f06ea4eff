/**
 * Every row that changes a resource is refused for a protected resource. A new row that could
 * change a resource must be classified in this file.
 */
import t from 'tap'
import { api, type RowName } from '../../../protocol/api.ts'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { service } from '../../support/service.ts'
import { ended, type Found, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const identity = { namespace: 'ops', blueprint_key: 'protected/desk' }
const further = { include: ['further_types'] }
const step = { id: 'nap', kind: 'sleep', config: { duration: '0' } }
const schema = {
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'title', type: 'string' },
  ],
  identity_column: 'number',
}
const resources = {
  tables: [{ key: 'table', name: 'guarded_table', description: 'd', schema }],
  actions: [{ key: 'action', name: 'guarded.do', endpoint: 'https://example.com/do', title: 'T' }],
  skills: [{ key: 'skill', name: 'Guarded skill', instructions: 'Do.' }],
  roles: [{ key: 'role', name: 'guarded', permissions: ['service.project.view'] }],
  webhooks: [{ key: 'webhook', name: 'guarded', url: 'https://example.com/hook', enabled: false }],
  environments: [{ key: 'environment', name: 'guarded', provider: 'local', tags: { a: 'b' } }],
  toolkits: [{ key: 'toolkit', name: 'Guarded kit', actions: [{ selector: 'guarded.do' }] }],
  agents: [
    {
      key: 'agent',
      name: 'guarded',
      description: 'd',
      color: 'red',
      status: 'active',
      model_route: { mode: 'worker', provider: 'local', model: 'none' },
      toolkits: [{ key: 'toolkit' }],
      skills: [{ key: 'skill' }],
    },
  ],
  workflows: [
    {
      key: 'workflow',
      name: 'Guarded',
      handle: 'guarded',
      description: 'd',
      spec: { steps: [step] },
    },
  ],
  loops: [
    {
      key: 'loop',
      name: 'Guarded loop',
      agent: { key: 'agent' },
      status: 'active',
      triggers: [{ key: 'hand', kind: 'manual' }],
      steps: [step],
    },
  ],
  channels: [{ key: 'channel', name: 'guarded', topic: 'T' }],
}
type Bound = keyof typeof ids
const applied = await s.ok('blueprint.apply', {
  ...identity,
  protect_resources: true,
  resources,
  ...further,
})
const ids = Object.fromEntries(
  listOf(applied, 'bindings').map(({ resource_type, resource_id }) => [resource_type, resource_id]),
) as Record<Exclude<ResourceTypeName, 'secret'>, string>
const drift = async () =>
  listOf(await s.ok('blueprint.drift', { ...identity, ...further })).filter(
    ({ state }) => `${state}` !== 'unchanged',
  )

/** Rows that change a resource, each with an input that would change it. */
const changing: Partial<Record<RowName, Open>> = {
  'table.update': { id: ids.table, description: 'changed' },
  'table.delete': { id: ids.table },
  'action.update': { action_name: 'guarded.do', title: 'changed' },
  'action.delete': { action_name: 'guarded.do' },
  'skill.replace': { id: ids.skill, name: 'Guarded skill', instructions: 'changed' },
  'skill.delete': { id: ids.skill },
  'role.update': { id: ids.role, description: 'changed' },
  'role.delete': { id: ids.role },
  'webhook.update': { webhook_id: ids.webhook, enabled: true },
  'webhook.delete': { webhook_id: ids.webhook },
  'environment.update': { environment_id: ids.environment, tags: {} },
  'environment.delete': { environment_id: ids.environment },
  'toolkit.replace': { id: ids.toolkit, name: 'changed' },
  'toolkit.delete': { id: ids.toolkit },
  'agent.update': { id: ids.agent, description: 'changed' },
  'agent.delete': { id: ids.agent },
  'agent.assign_toolkits': { id: ids.agent, toolkit_ids: [] },
  'agent.assign_skills': { id: ids.agent, skill_ids: [] },
  'workflow.update': { id: ids.workflow, description: 'changed' },
  'workflow.delete': { id: ids.workflow },
  'loop.update': { id: ids.loop, status: 'paused' },
  'loop.delete': { id: ids.loop },
  'channel.update': { id: ids.channel, topic: 'changed' },
  'channel.delete': { id: ids.channel },
}

/**
 * Rows that are decided by the actors of resources, but change no existing resource that can have a
 * binding.
 */
const apart: readonly RowName[] = [
  'key.create',
  'key.revoke',
  'principal.create',
  'user.create',
  'user.update',
  'user.delete',
  'token.create',
  'token.revoke',
  'me.create_token',
  'me.revoke_token',
  'me.save_preferences',
  'saved_view.create',
  'saved_view.update',
  'saved_view.delete',
  'cli_credential.revoke',
  'run.bulk',
  'webhook.resend',
  'stream.follow',
  'assignment.create',
  'assignment.delete',
  'secret.put',
  'secret.delete',
  'repository_host.put',
  'repository_host.delete',
  // These rows create resources.
  'skill.import',
  'environment.attach',
  'environment.acquire_matching',
]
let lease: Found
let row: Found
let message: Found
const member = await s.ok('user.create', { name: 'member', role_ids: ['role_editor'] })
const operator = await s.ok('principal.create', { name: 'leaves', role_ids: ['role_editor'] })
/**
 * Rows that use a resource or change its runtime data, each with an input. They also work on
 * protected resources, and leave the definitions unchanged.
 */
const runtime: Partial<Record<RowName, () => Open>> = {
  'row.insert': () => ({ id: ids.table, data: { number: '1' } }),
  'row.update': () => ({ id: ids.table, row_id: row['id'], data: { title: 'a' } }),
  'row.upsert': () => ({ id: ids.table, data: { number: '1', title: 'b' } }),
  'row.upsert_at_rows': () => ({ id: ids.table, data: { number: '1', title: 'c' } }),
  'row.bulk': () => ({ id: ids.table, rows: [{ number: '2' }] }),
  'row.bulk_at_rows': () => ({ id: ids.table, rows: [{ number: '3' }] }),
  'row.delete': () => ({ id: ids.table, row_id: row['id'] }),
  'action.rotate_secret': () => ({ action_name: 'guarded.do' }),
  'webhook.rotate_secret': () => ({ webhook_id: ids.webhook }),
  'webhook.ping': () => ({ webhook_id: ids.webhook }),
  'agent.inbox': () => ({ id: ids.agent }),
  'agent.set_binding': () => ({ id: ids.agent, provider: 'slack', integration_id: 'int_1' }),
  'agent.delete_binding': () => ({ id: ids.agent, binding_id: 'mbind_none' }),
  'principal.update': () => ({ id: ids.agent, role_ids: ['role_operator'] }),
  'principal.delete': () => ({ id: operator['id'] }),
  'loop.start': () => ({ id: ids.loop }),
  'loop.fire': () => ({ id: ids.loop, trigger_id: 'hand' }),
  'channel.add_member': () => ({ id: ids.channel, user_id: member['id'] }),
  'channel.send': () => ({ id: ids.channel, content: 'hello' }),
  'channel.edit': () => ({ id: ids.channel, message_id: message['id'], content: 'bye' }),
  'channel.mark_read': () => ({ id: ids.channel, user_id: message['sender_id'], seq: 1 }),
  'channel.remove_member': () => ({ id: ids.channel, user_id: member['id'] }),
  'environment.acquire': () => ({ environment_id: ids.environment }),
  'environment.release': () => ({ environment_id: ids.environment, ...lease }),
  'environment.start_worker': () => ({ environment_id: ids.environment }),
}
/** Rows that the table assigns to no actor. None of them changes a resource. */
const without: readonly RowName[] = [
  'run.cancel_many',
  'run.retry_many',
  'mcp.send',
  'table.query',
  'table.search',
  'row.query',
  'row.search',
  'artifact.create',
  'artifact.signed_url',
  'environment.git_credentials',
]
/** Kinds of actors whose rows cannot change a resource directly. */
const elsewhere = new Set<string>([
  'organization',
  'run',
  'session',
  'interaction',
  'worker',
  'events',
  'memory',
  'artifact',
  'blueprint',
])

t.test('every row of the table that could change a resource is classified', async (t) => {
  const facts = Object.values(resourceFacts)
  const guarded = facts.flatMap(({ rows, fields }) => [
    ...(rows ? [rows.change, rows.remove] : []),
    ...Object.values(fields).flatMap(({ assigned }) => (assigned ? [assigned.row] : [])),
  ])
  t.strictSame([...new Set(guarded)].sort(), Object.keys(changing).sort())
  const classified = new Set<string>([
    ...guarded,
    ...facts.flatMap(({ rows }) => (rows ? [rows.create] : [])),
    ...apart,
    ...Object.keys(runtime),
    ...without,
  ])
  const all = Object.entries(api as Readonly<Record<string, Row>>)
    .filter(([, one]) => routeOf(one).method !== 'GET')
    .filter(([, { shape }]) => !(shape.to && elsewhere.has(shape.to.kind)))
    .map(([name]) => name)
  t.strictSame(
    all.filter((name) => !classified.has(name)),
    [],
    'rows that are not classified',
  )
  t.strictSame(
    [...classified].filter((name) => !all.includes(name)),
    [],
    'classified rows that do not exist',
  )
})

t.test('a protected resource refuses each of its rows', async (t) => {
  for (const [name, input] of Object.entries(changing)) {
    const { details } = await s.refused(name as RowName, input, 409, 'blueprint_resource_protected')
    t.match(details, { ...identity, resource_type: String, key: String, resource_id: String }, name)
    t.equal(ids[String(details['resource_type']) as Bound], details['resource_id'], name)
  }
  t.strictSame(await drift(), [], 'nothing was changed')
  const { items } = await s.ok('blueprint.bindings', { ...identity, ...further })
  t.strictSame(items, applied['bindings'])
})

t.test('the runtime data of a protected resource stays writable', async (t) => {
  for (const [name, input] of Object.entries(runtime)) {
    const answer = await s.call(name as RowName, input())
    const { code } = (answer.body['error'] ?? {}) as { code?: string }
    const is_refused = new Set(['agent.delete_binding', 'environment.start_worker']).has(name)
    t.ok(
      answer.status < 300 || (is_refused && code !== 'blueprint_resource_protected'),
      `${name}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`,
    )
    if (name === 'row.insert') row = (answer.body['row'] ?? answer.body) as Found
    if (name === 'channel.send') message = answer.body as Found
    if (name === 'environment.acquire')
      lease = { lease_token: (answer.body['lease'] as Found)['token'] } as never
    if (name === 'loop.start') await ended(s, answer.body['id'])
  }
  t.strictSame(await drift(), [], 'the definitions are as they were')
  const run = await s.ok('workflow.run', { id: ids.workflow })
  t.equal((await ended(s, run['id']))['status'], 'completed')
  t.ok(await s.ok('session.create', { agent_id: ids.agent }))
  await s.ok('memory.save', { id: ids.agent, memory_key: 'k', content: 'remember' })
})

t.test('a protected agent keeps the toolkits and skills that it has', async (t) => {
  const toolkit = await s.ok('toolkit.create', { name: 'Loose kit' })
  const skill = await s.ok('skill.create', { name: 'Loose skill', instructions: 'x' })
  const other = { namespace: 'ops', blueprint_key: 'other' }
  const agents = (toolkits: object[], skills: object[]) => ({
    agents: [{ key: 'agent', name: 'loose', toolkits, skills }],
  })
  await s.ok('blueprint.apply', {
    ...other,
    protect_resources: true,
    resources: agents([{ id: toolkit['id'] }], [{ id: skill['id'] }]),
  })
  for (const [name, { id }] of [
    ['toolkit.delete', toolkit],
    ['skill.delete', skill],
  ] as const)
    t.match(await s.refused(name, { id }, 409, 'blueprint_resource_protected'), {
      details: { ...other, resource_type: 'agent', key: 'agent' },
    })
  await s.ok('toolkit.replace', { id: toolkit['id'], name: 'Loose kit 2' })
  await s.ok('blueprint.apply', { ...other, resources: agents([], []) })
  await s.ok('toolkit.delete', { id: toolkit['id'] })
  await s.ok('skill.delete', { id: skill['id'] })
})

t.test('another blueprint cannot delete the toolkit of a protected agent', async (t) => {
  const kits = { namespace: 'ops', blueprint_key: 'kits' }
  const toolkits = [{ key: 'k', name: 'Shared kit' }]
  const made = await s.ok('blueprint.apply', { ...kits, resources: { toolkits } })
  const id = listOf(made, 'changes')[0]?.['resource_id']
  const user = { namespace: 'ops', blueprint_key: 'user' }
  const agent = (held: object[]) => ({ agents: [{ key: 'a', name: 'user', toolkits: held }] })
  await s.ok('blueprint.apply', { ...user, protect_resources: true, resources: agent([{ id }]) })
  const denied = [409, 'blueprint_resource_protected'] as const
  const none = { ...kits, resources: {}, prune: true }
  const preview = await s.refused('blueprint.apply', { ...none, mode: 'preview' }, ...denied)
  t.match(preview.details, { ...user, key: 'k', resource_type: 'toolkit' })
  await s.refused('blueprint.delete', kits, ...denied)
  const assigned = await s.ok('agent.toolkits', {
    id: listOf(await s.ok('blueprint.bindings', user))[0]?.['resource_id'],
  })
  t.equal(listOf(assigned).length, 1, 'the agent is unchanged')
  await s.ok('blueprint.apply', { ...user, resources: agent([]) })
  await s.ok('blueprint.delete', kits)
})

t.test('the principal of a protected agent stays', async (t) => {
  await s.refused('principal.delete', { id: ids.agent }, 409, 'conflict')
  await s.call('principal.update', { id: ids.agent, state: 'archived' })
  await s.call('principal.update', { id: ids.agent, name: 'renamed' })
  t.match(await s.ok('agent.get', { id: ids.agent }), { name: 'guarded', status: 'active' })
  t.strictSame(await drift(), [])
})

t.test('an apply and a deletion of the blueprint still change protected resources', async (t) => {
  const changed = await s.ok('blueprint.apply', {
    ...identity,
    resources: { agents: [{ key: 'agent', name: 'guarded', description: 'by apply' }] },
  })
  t.match(listOf(changed, 'changes'), [{ action: 'updated' }])
  t.ok(
    listOf(changed, 'bindings').every((binding) => binding['protected'] as unknown),
    'an apply without protect_resources keeps the protection',
  )
  const path = encodeURIComponent(identity.blueprint_key)
  const protect = (on: boolean) =>
    s.raw('PUT', `/v1/projects/default/blueprints/${path}/protection?namespace=ops`, {
      body: JSON.stringify({ protected: on }),
      headers: { 'content-type': 'application/json' },
    })
  const off = await protect(false)
  t.equal(off.status, 200, 'the key is percent-encoded in the path')
  t.ok(listOf(off.body).every((binding) => !binding['protected']))
  await s.ok('agent.update', { id: ids.agent, description: 'by hand' })
  const on = await protect(true)
  t.ok(listOf(on.body).every((binding) => binding['protected'] as unknown))
  t.strictSame((await protect(true)).body, on.body, 'a repeat answers the same')
  const gone = await s.ok('blueprint.delete', { ...identity, ...further })
  t.equal(listOf(gone, 'deleted').length, 11)
  t.strictSame(await s.ok('blueprint.bindings', { ...identity, ...further }), { items: [] })
  for (const [name, input] of [
    ['agent.get', { id: ids.agent }],
    ['table.get', { id: ids.table }],
    ['loop.get', { id: ids.loop }],
    ['workflow.get', { id: ids.workflow }],
    ['channel.get', { id: ids.channel }],
  ] as const)
    await s.refused(name, input, 404, 'not_found')
})
