/** Agents in the project actor: their records, their principals, and fields that must be unique. */
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ProjectDirectory } from '../../../protocol/access/directory.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import { played } from '../support/played.ts'

const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const fresh = () =>
  played(projectActor({ brand: 'Service' }), { project: PRJ, kind: 'project', id: PRJ })
type Sent = Record<string, unknown> & { id: string }

t.test('an agent is created together with its principal, under one id', async (t) => {
  const project = fresh()
  const agent = project.send('agent.create', {
    name: 'Ops Bot',
    model: 'baton/scripted',
    timeout_seconds: 0,
    thinking_effort: 'inherit',
    tags: {},
    description: '',
  }) as Sent
  t.same(agent, {
    id: agent.id,
    principal_id: agent.id,
    name: 'Ops Bot',
    model: 'baton/scripted',
    tool_presentation: 'meta',
    status: 'active',
    created_by: 'svc_tester',
    created_at: agent['created_at'],
    updated_at: agent['created_at'],
  })
  t.match(agent.id, /^agt_/)
  const known = project.ask<ProjectDirectory>('directory', { id: PRJ })
  t.same(known.agents, { [agent.id]: { name: 'Ops Bot', status: 'active' } })
  t.match(known.principals[agent.id], {
    id: agent.id,
    kind: 'agent',
    state: 'active',
    name: 'Ops Bot',
    handle: 'agent:ops-bot',
  })
  t.match(
    project.send('principal.delete', { id: agent.id }),
    { refused: 'conflict' },
    'a principal of an agent goes with its agent',
  )
  t.match(
    project.send('assignment.create', {
      principal_id: agent.id,
      role_name: 'Operator',
      holds: Object.keys(permissions),
    }),
    { principal_id: agent.id },
  )
})

t.test('names are unique among existing agents', async (t) => {
  const project = fresh()
  const first = project.send('agent.create', { name: 'A' }) as Sent
  const second = project.send('agent.create', { name: 'B' }) as Sent
  t.match(project.send('agent.create', { name: 'A' }), { refused: 'already_exists' })
  t.match(project.send('agent.update', { id: second.id, name: 'A' }), { refused: 'already_exists' })
  t.match(project.send('agent.update', { id: first.id, name: 'A', description: 'same name' }), {
    name: 'A',
    description: 'same name',
    updated_by: 'svc_tester',
  })
  project.send('agent.delete', { id: first.id })
  t.match(project.send('agent.update', { id: second.id, name: 'A' }), { name: 'A' })
  t.match(
    project.ask<ProjectDirectory>('directory', { id: PRJ }).principals[second.id],
    { name: 'A', handle: 'agent:b' },
    'the principal is renamed, its handle stays',
  )
  t.match(project.send('agent.delete', { id: first.id }), { refused: 'not_found' })
})

t.test('an external reference is set once and never reused', async (t) => {
  const project = fresh()
  const create = (more: object) =>
    project.send('agent.create', { name: 'A', external_ref: 'crm', ...more }) as Sent
  const agent = create({ if_exists: 'adopt' })
  t.notOk('status_code' in agent, 'made')
  t.same(create({ if_exists: 'adopt', system_prompt: 'ignored' }), { ...agent, status_code: 200 })
  t.same(project.events, [], 'adopting writes nothing')
  t.match(create({ name: 'B' }), { refused: 'already_exists' })
  t.match(create({ name: 'B', if_exists: 'adopt' }), { refused: 'external_identity_conflict' })
  t.match(project.send('agent.update', { id: agent.id, external_ref: 'other' }), {
    refused: 'conflict',
  })
  t.match(project.send('agent.update', { id: agent.id, external_ref: 'crm' }), {
    external_ref: 'crm',
  })
  t.same(project.events, [], 'a repeat changes nothing')
  const late = project.send('agent.create', { name: 'Late' }) as Sent
  t.match(project.send('agent.update', { id: late.id, external_ref: 'crm' }), {
    refused: 'already_exists',
  })
  t.match(project.send('agent.update', { id: late.id, external_ref: 'erp' }), {
    external_ref: 'erp',
  })
  project.send('agent.delete', { id: agent.id })
  t.match(create({ if_exists: 'adopt' }), { refused: 'external_identity_conflict' })
  t.match(create({}), { refused: 'already_exists' })
})

t.test('settings can be replaced and cleared, and are validated together', async (t) => {
  const project = fresh()
  const agent = project.send('agent.create', {
    name: 'A',
    system_prompt: 'Be brief.',
    timeout_seconds: 60,
    compaction_policy: { threshold: 'md' },
    memory_context: { mode: 'off' },
    thinking_effort: 'high',
    color: 'teal',
    tags: { team: 'ops' },
  }) as Sent
  const change = (more: object) => project.send('agent.update', { id: agent.id, ...more }) as Sent
  t.match(change({ compaction_policy: { strategy: 'manual' } }), {
    compaction_policy: { strategy: 'manual' },
  })
  const bare = change({
    system_prompt: '',
    timeout_seconds: 0,
    compaction_policy: {},
    memory_context: {},
    thinking_effort: 'inherit',
    color: '',
    tags: {},
  })
  t.same(Object.keys(bare).sort(), [
    'created_at',
    'created_by',
    'id',
    'name',
    'principal_id',
    'status',
    'tool_presentation',
    'updated_at',
    'updated_by',
  ])
  t.same(
    (project.events[0] as unknown as { changes: Record<string, unknown> }).changes['system_prompt'],
    { from: { characters: 9 }, to: { characters: 0 } },
    'texts stay out of the audit log',
  )
  t.match(change({ model_route: { mode: 'worker' } }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'model_route.provider' }] },
  })
  t.match(change({ model: 'ollama/llama3', model_route: { mode: 'worker' } }), {
    model_route: { mode: 'worker' },
  })
  t.match(change({ model: '' }), { refused: 'bad_request' }, 'the route needs the model')
  t.match(change({ status: 'inactive' }), { status: 'inactive' })
  t.match(change({ tags: { 'service:x': '' } }), { refused: 'bad_request' })
})

t.test('deleting an agent revokes its keys', async (t) => {
  const project = fresh()
  const agent = project.send('agent.create', { name: 'A' }) as Sent
  project.send('key.create', {
    name: 'as A',
    principal_id: agent.id,
    allow_unassigned_principal: true,
    hash: 'h',
    key_prefix: 'bat_h',
    holds: [],
  })
  project.send('agent.delete', { id: agent.id })
  t.same(
    project.events.map(({ type }) => type),
    ['key.revoked', 'agent.deleted', 'principal.deleted', 'parting.begun'],
  )
  const known = project.ask<ProjectDirectory>('directory', { id: PRJ })
  t.same([known.agents, known.principals, known.keys], [{}, {}, {}])
})
