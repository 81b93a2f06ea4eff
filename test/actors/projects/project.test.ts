/** Workflows, keys and principals in the project actor. */
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ProjectDirectory } from '../../../protocol/access/directory.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import { played, START } from '../support/played.ts'

const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
/**
 * Creates a project whose callers have all permissions, unless a command specifies other
 * permissions.
 */
const fresh = () => {
  const project = played(projectActor({ brand: 'Service' }), {
    project: PRJ,
    kind: 'project',
    id: PRJ,
  })
  const { send } = project
  project.send = (name, input = {}, origin = {}) =>
    send(name, { holds: Object.keys(permissions), ...(input as object) }, origin)
  return project
}
const spec = { steps: [{ kind: 'sleep', config: { duration: '1s' } }] }
const longer = { steps: [{ kind: 'sleep', config: { duration: '2s' } }] }
const reserved = (id: string, handle: string) => ({ reserved: { id, handle, organization: ORG } })
const material = (hash: string) => ({ hash, key_prefix: `bat_${hash}` })
const directory = (project: ReturnType<typeof fresh>) =>
  project.ask<ProjectDirectory>('directory', { id: PRJ })

t.test('a workflow is created with version 1', async (t) => {
  const project = fresh()
  const workflow = project.send('workflow.create', {
    name: 'Deploy',
    spec,
    ...reserved('wfd_1', 'deploy'),
  })
  t.same(workflow, {
    id: 'wfd_1',
    handle: 'deploy',
    name: 'Deploy',
    published_as_tool: false,
    latest_version: 1,
    created_by: 'svc_tester',
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    spec,
  })
  t.notOk(Object.hasOwn(project.events[0]?.['workflow'] ?? {}, 'spec'))
  t.same(directory(project).workflows, {
    wfd_1: { handle: 'deploy', latest_version: 1, published_as_tool: false },
  })
  t.same(project.ask('definition', { id: 'wfd_1' }), { id: 'wfd_1', version: 1, spec })
  t.equal(project.ask('definition', { id: 'constructor' }), undefined)
  t.match(
    project.send('workflow.create', { name: 'Deploy', spec, ...reserved('wfd_2', 'deploy') }),
    { refused: 'already_exists', details: { handle: 'deploy' } },
  )
  t.match(
    project.send('workflow.create', {
      name: 'D',
      spec,
      tags: { 'service:a': '' },
      ...reserved('wfd_2', 'd'),
    }),
    { refused: 'bad_request' },
  )
})
t.test('each spec creates a new version, even an equal one; other fields do not', async (t) => {
  const project = fresh()
  project.send('workflow.create', {
    name: 'Deploy',
    spec,
    description: 'x',
    ...reserved('wfd_1', 'deploy'),
  })
  project.at += 1000
  t.match(project.send('workflow.update', { id: 'wfd_1', spec: longer }), {
    latest_version: 2,
    spec: longer,
    updated_at: '2026-01-01T00:00:01.000Z',
  })
  t.same(
    project.events[0]?.['changes'],
    { latest_version: { from: 1, to: 2 } },
    'specs stay out of the audit log',
  )
  t.match(project.send('workflow.update', { id: 'wfd_1', spec: longer }), { latest_version: 3 })
  t.match(
    project.send('workflow.update', {
      id: 'wfd_1',
      name: 'Ship',
      published_as_tool: true,
      description: '',
    }),
    { latest_version: 3, name: 'Ship', spec: longer },
  )
  t.same(project.events[0]?.['changes'], {
    name: { from: 'Deploy', to: 'Ship' },
    published_as_tool: { from: false, to: true },
    description: { from: 'x' },
  })
  t.notOk('spec' in (project.events[0] ?? {}))
  t.match(project.send('workflow.update', { id: 'wfd_1', name: 'Ship' }), { latest_version: 3 })
  t.same(project.events, [])
  t.match(project.ask('definition', { id: 'wfd_1' }), { version: 3, spec: longer })
})
t.test('an expected version other than the latest is a conflict', async (t) => {
  const project = fresh()
  project.send('workflow.create', { name: 'Deploy', spec, ...reserved('wfd_1', 'deploy') })
  t.match(project.send('workflow.update', { id: 'wfd_1', spec, expected_version: 1 }), {
    latest_version: 2,
  })
  t.match(project.send('workflow.update', { id: 'wfd_1', spec, expected_version: 1 }), {
    refused: 'conflict',
    details: { expected_version: 1, latest_version: 2 },
  })
  t.match(project.send('workflow.update', { id: 'wfd_9', spec }), { refused: 'not_found' })
})
t.test('a deleted workflow releases its handle', async (t) => {
  const project = fresh()
  project.send('workflow.create', { name: 'Deploy', spec, ...reserved('wfd_1', 'deploy') })
  project.send('workflow.delete', { id: 'wfd_1' })
  t.same(project.effects, [
    {
      tell: {
        to: { kind: 'organization', id: ORG, project: ORG },
        name: 'handle.release',
        input: { id: 'wfd_1' },
      },
    },
  ])
  t.same(directory(project).workflows, {})
  t.match(project.send('workflow.delete', { id: 'wfd_1' }), { refused: 'not_found' })
  t.match(
    project.send('workflow.create', { name: 'Deploy', spec, ...reserved('wfd_2', 'deploy') }),
    { latest_version: 1 },
  )
})
t.test(
  'a reservation that was not used in time is released and cannot be used later',
  async (t) => {
    const project = fresh()
    project.send('workflow.create', { name: 'Deploy', spec, ...reserved('wfd_1', 'deploy') })
    project.send('handle.settle', { id: 'wfd_1', organization: ORG })
    t.same(project.events, [], 'a used reservation is kept')
    project.send('handle.settle', { id: 'wfd_2', organization: ORG })
    t.match(project.effects, [{ tell: { name: 'handle.release', input: { id: 'wfd_2' } } }])
    t.match(project.send('workflow.create', { name: 'Late', spec, ...reserved('wfd_2', 'late') }), {
      refused: 'service_unavailable',
    })
  },
)

t.test(
  'a key without a principal gets one with its own name and the role Editor, in the same commit',
  async (t) => {
    const project = fresh()
    const key = project.send('key.create', { name: 'My Worker', ...material('h1') })
    t.same(
      project.events.map((event) => event.type),
      ['principal.created', 'assignment.created', 'key.created'],
    )
    const principal = directory(project).principals[key.principal_id]
    t.match(principal, {
      kind: 'service',
      state: 'active',
      name: 'My Worker',
      handle: 'svc:my-worker',
      role_ids: ['role_editor'],
    })
    t.same(directory(project).keys, { h1: key })
    t.notOk('key' in key || 'org_role' in key)
    project.send('key.revoke', { id: key.id })
    t.same(project.events, [{ type: 'key.revoked', id: key.id, name: 'My Worker', at: START }])
    const next = project.send('key.create', { name: 'My Worker', ...material('h2') })
    t.equal(next.principal_id, key.principal_id, 'a principal of that name is used')
  },
)
t.test('the records that a key refers to must exist', async (t) => {
  const project = fresh()
  const principal = project.send('principal.create', { name: 'bot' })
  const create = (more: object) =>
    project.send('key.create', { name: 'k', ...material('h1'), ...more })
  t.match(create({ principal_id: 'svc_nobody' }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'principal_id' }] },
  })
  t.match(create({ scope_role_id: 'role_king' }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'scope_role_id' }] },
  })
  t.match(create({ expires_at: '2025-12-31T23:59:59Z' }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'expires_at' }] },
  })
  t.match(create({ principal_id: principal.id }), {
    refused: 'principal_has_no_roles',
    details: { principal_id: principal.id },
  })
  t.match(
    create({
      principal_id: principal.id,
      allow_unassigned_principal: true,
      scope_role_id: 'role_viewer',
      expires_at: '2026-02-01T00:00:00+01:00',
    }),
    { scope_role_id: 'role_viewer', expires_at: '2026-01-31T23:00:00.000Z' },
  )
  t.match(create({}), { refused: 'already_exists' })
  t.match(project.send('key.revoke', { id: 'key_nobody' }), { refused: 'not_found' })
})

t.test('principals', async (t) => {
  const project = fresh()
  const bot = project.send('principal.create', {
    name: 'Bot',
    role_ids: ['role_operator'],
    metadata: { a: 1 },
    owner_id: 'user_1',
  })
  t.match(bot, {
    kind: 'service',
    state: 'active',
    handle: 'svc:bot',
    role_ids: ['role_operator'],
    metadata: { a: 1 },
    owner_id: 'user_1',
  })
  t.match(project.send('principal.create', { name: 'Bot' }), { refused: 'already_exists' })
  t.equal(project.send('principal.create', { name: 'bot' }).handle, 'svc:bot-2')
  t.match(project.send('principal.create', { name: 'x', role_ids: ['role_editor', 'role_x'] }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'role_ids[1]' }] },
  })
  const off = project.send('principal.update', { id: bot.id, state: 'disabled', role_ids: [] })
  t.match(off, { state: 'disabled' })
  t.notOk('role_ids' in off, 'an empty list takes all roles')
  t.match(project.events, [
    {
      type: 'principal.updated',
      changes: {
        state: { from: 'active', to: 'disabled' },
        role_ids: { from: ['role_operator'], to: [] },
      },
    },
    { type: 'assignment.deleted', assignment: { principal_id: bot.id, role_name: 'Operator' } },
  ])
  t.same(directory(project).assignments, [])
  t.match(project.send('principal.update', { id: 'svc_x', state: 'disabled' }), {
    refused: 'not_found',
  })
})
t.test('a principal cannot be deleted before its active keys', async (t) => {
  const project = fresh()
  const bot = project.send('principal.create', { name: 'Bot', role_ids: ['role_viewer'] })
  const key = project.send('key.create', { name: 'k', principal_id: bot.id, ...material('h') })
  t.match(project.send('principal.delete', { id: bot.id }), {
    refused: 'conflict',
    details: { key_id: key.id },
  })
  project.send('key.revoke', { id: key.id })
  t.equal(project.send('principal.delete', { id: bot.id }), undefined)
  t.same(directory(project).principals, {})
  t.match(project.send('principal.delete', { id: bot.id }), { refused: 'not_found' })
})
