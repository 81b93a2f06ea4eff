/**
 * The organization actor: projects and their handles, keys of the organization, and reserved
 * workflow handles.
 */
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import { slotOf } from '../../../protocol/ids.ts'
import { type Played, played, START } from '../support/played.ts'

const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const ROOT = 'key_01AAAAAAAAAAAAAAAAAAAAAAAA'
const started = (max_projects?: number) => {
  const org = played(
    organizationActor({ brand: 'Service', ...(max_projects !== undefined && { max_projects }) }),
    { project: ORG, kind: 'organization', id: ORG },
  )
  org.send('organization.init', {
    name: 'Acme',
    project_id: PRJ,
    root_key: { id: ROOT, hash: 'root', key_prefix: 'bat_root' },
  })
  return org
}
const directory = (org: Played) => org.ask<OrganizationDirectory>('directory')
const material = (hash: string) => ({ hash, key_prefix: `bat_${hash}` })
const as = (id: string) => ({ credential: { type: 'api_key' as const, id } })
const future = new Date(START + 1000).toISOString()

t.test(
  'the first start creates the organization, its default project and an Owner key, once',
  async (t) => {
    const org = started()
    t.same(
      org.events.map((event) => event.type),
      ['organization.created', 'project.created', 'key.created'],
    )
    const known = directory(org)
    t.equal(known.id, ORG)
    t.equal(known.handles['default'], PRJ)
    t.match(known.projects[PRJ], {
      id: PRJ,
      name: 'default',
      handle: 'default',
      access_mode: 'open',
      created_at: '2026-01-01T00:00:00.000Z',
    })
    t.match(known.keys['root'], { id: ROOT, org_role: 'Owner', key_prefix: 'bat_root' })
    org.send('organization.init', {
      name: 'Other',
      project_id: 'prj_x',
      root_key: { id: 'key_x', hash: 'x', key_prefix: 'x' },
    })
    t.same(org.events, [])
  },
)

t.test('the default handle is derived from the name', async (t) => {
  const org = started()
  t.equal(org.send('project.create', { name: 'My  First Project!' }).handle, 'my-first-project')
  t.equal(org.send('project.create', { name: 'Été à Zürich' }).handle, 'ete-a-zurich')
  t.match(org.send('project.create', { name: '日本' }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'handle' }] },
  })
})
t.test('project ids are spread over the slots', async (t) => {
  const org = started()
  const slots = new Set(
    Array.from({ length: 8 }, (_, n) => slotOf(org.send('project.create', { name: `p${n}` }).id)),
  )
  t.ok(slots.size > 4)
})
t.test('a handle is never reused, not even after deletion', async (t) => {
  const org = started()
  const project = org.send('project.create', { name: 'Ops', handle: 'ops' })
  t.match(org.send('project.create', { name: 'Ops' }), {
    refused: 'already_exists',
    details: { handle: 'ops' },
  })
  t.equal(org.send('project.delete', { project: project.id }), undefined)
  t.notOk(Object.hasOwn(directory(org).handles, 'ops'))
  t.match(directory(org).projects[project.id], { deleted: true })
  t.match(org.send('project.create', { name: 'Ops' }), { refused: 'already_exists' })
  t.match(org.send('project.delete', { project: project.id }), { refused: 'not_found' })
  t.match(org.send('project.update', { project: project.id, name: 'x' }), { refused: 'not_found' })
})
t.test('the default project can be deleted', async (t) => {
  const org = started()
  t.equal(org.send('project.delete', { project: PRJ }), undefined)
  t.same(directory(org).handles, {})
})

t.test('creating a project with if_exists=adopt returns the existing one', async (t) => {
  const org = started(2)
  const create = { name: 'Tenant', handle: 'tenant', external_ref: 'ext-1', if_exists: 'adopt' }
  const project = org.send('project.create', create)
  t.notOk('status_code' in project, 'without a match it creates')
  const again = org.send('project.create', create)
  t.same(
    again,
    { ...project, status_code: 200 },
    'a match is answered with 200, also at the project limit',
  )
  t.same(org.events, [])
  t.match(
    org.send('project.create', { ...create, name: 'Another', handle: undefined }),
    { id: project.id },
    'a name does not identify',
  )
  t.match(org.send('project.create', { ...create, handle: 'other' }), {
    refused: 'external_identity_conflict',
  })
  t.match(org.send('project.create', { ...create, if_exists: 'error', handle: 'other' }), {
    refused: 'already_exists',
    details: { field: 'external_ref' },
  })
  t.match(org.send('project.create', { ...create, external_ref: 'ext-2', handle: 'other' }), {
    refused: 'project_capacity_reached',
  })
  org.send('project.delete', { project: project.id })
  t.match(
    org.send('project.create', create),
    { refused: 'external_identity_conflict' },
    'a deleted match is not brought back',
  )
})

t.test('updating a project', async (t) => {
  const org = started()
  const other = org.send('project.create', { name: 'Other', external_ref: 'taken' })
  org.at += 5000
  const next = org.send('project.update', {
    project: PRJ,
    name: 'Main',
    external_ref: 'ext',
    tags: { team: 'a' },
  })
  t.match(next, {
    name: 'Main',
    external_ref: 'ext',
    tags: { team: 'a' },
    updated_at: '2026-01-01T00:00:05.000Z',
    created_at: '2026-01-01T00:00:00.000Z',
  })
  t.same(org.events[0]?.['changes'], {
    name: { from: 'default', to: 'Main' },
    external_ref: { to: 'ext' },
    tags: { to: { team: 'a' } },
  })
  t.same(directory(org).projects[PRJ], next)
  t.same(org.send('project.update', { project: PRJ, name: 'Main', external_ref: 'ext' }), next)
  t.same(org.events, [], 'an update without a change writes nothing')
  t.match(org.send('project.update', { project: PRJ, external_ref: 'ext-2' }), {
    refused: 'conflict',
  })
  t.match(org.send('project.update', { project: PRJ, tags: { 'service:x': '1' } }), {
    refused: 'bad_request',
    details: { fields: [{ field: 'tags.service:x' }] },
  })
  t.notOk('tags' in org.send('project.update', { project: PRJ, tags: {} }), 'an empty map clears')
  t.match(
    org.send('project.update', {
      project: PRJ,
      access_mode: 'restricted',
      seed_existing_members: true,
    }),
    { access_mode: 'restricted' },
  )
  t.match(org.send('project.update', { project: PRJ, seed_existing_members: true }), {
    refused: 'bad_request',
  })
  const third = org.send('project.create', { name: 'Third' })
  t.match(org.send('project.update', { project: third.id, external_ref: 'taken' }), {
    refused: 'already_exists',
  })
  t.ok(other.id)
})

t.test('organization keys', async (t) => {
  const org = started()
  const key = org.send('key.create_organization', {
    name: 'ci',
    ...material('h1'),
    expires_at: future,
  })
  t.match(key, { name: 'ci', org_role: 'Admin', key_prefix: 'bat_h1', expires_at: future })
  t.notOk('key' in key || 'hash' in key)
  t.match(org.send('key.create_organization', { name: 'ci', ...material('h2') }), {
    refused: 'already_exists',
  })
  t.match(
    org.send('key.create_organization', {
      name: 'old',
      ...material('h2'),
      expires_at: '2025-01-01T00:00:00Z',
    }),
    { refused: 'bad_request', details: { fields: [{ field: 'expires_at' }] } },
  )
  t.match(
    org.send('key.create_organization', {
      name: 'x',
      ...material('h2'),
      tags: { 'Service:a': 'b' },
    }),
    { refused: 'bad_request' },
  )
  t.equal(org.send('key.revoke_organization', { id: key.id }), undefined)
  t.same(Object.keys(directory(org).keys), ['root'])
  t.match(org.send('key.revoke_organization', { id: key.id }), { refused: 'not_found' })
  t.match(org.send('key.revoke_organization', { id: '__proto__' }), { refused: 'not_found' })
  t.match(
    org.send('key.create_organization', { name: 'ci', ...material('h3') }),
    { name: 'ci' },
    'a revoked name is free again',
  )
})
t.test('at least one valid Owner key always remains', async (t) => {
  const org = started()
  t.match(org.send('key.revoke_organization', { id: ROOT }), { refused: 'conflict' })
  const brief = org.send('key.create_organization', {
    name: 'brief',
    role: 'Owner',
    expires_at: future,
    ...material('h1'),
  })
  org.at += 2000
  t.match(
    org.send('key.revoke_organization', { id: ROOT }),
    { refused: 'conflict' },
    'an expired key does not count',
  )
  t.equal(org.send('key.revoke_organization', { id: brief.id }), undefined)
  org.send('key.create_organization', { name: 'second', role: 'Owner', ...material('h2') })
  t.equal(org.send('key.revoke_organization', { id: ROOT }), undefined)
})
t.test('no key can grant or revoke a role above its own', async (t) => {
  const org = started()
  const admin = org.send('key.create_organization', { name: 'admin', ...material('h1') })
  t.match(
    org.send(
      'key.create_organization',
      { name: 'o', role: 'Owner', ...material('h2') },
      as(admin.id),
    ),
    { refused: 'permission_denied', details: { permission: 'service.organization.delete' } },
  )
  t.match(org.send('key.revoke_organization', { id: ROOT }, as(admin.id)), {
    refused: 'permission_denied',
  })
  t.match(
    org.send(
      'key.create_organization',
      { name: 'v', role: 'Viewer', ...material('h2') },
      as(admin.id),
    ),
    { org_role: 'Viewer' },
  )
  t.match(
    org.send('key.create_organization', { name: 'o', role: 'Owner', ...material('h3') }, as(ROOT)),
    { org_role: 'Owner' },
  )
})
t.test('the last use of a key is recorded at most once a minute', async (t) => {
  const org = started()
  org.send('key.touch', { ids: [ROOT, ROOT, 'key_gone'] })
  t.same(org.events, [{ type: 'key.used', id: ROOT, at: START }])
  t.equal(directory(org).keys['root']?.last_used_at, '2026-01-01T00:00:00.000Z')
  org.at += 59_999
  org.send('key.touch', { ids: [ROOT] })
  t.same(org.events, [])
  org.at += 1
  org.send('key.touch', { ids: [ROOT] })
  t.equal(org.events.length, 1)
})

t.test('a workflow handle is granted to one project at a time', async (t) => {
  const org = started()
  const other = org.send('project.create', { name: 'Other' })
  t.equal(org.send('handle.reserve', { id: 'w1', handle: 'h', project: PRJ }), undefined)
  t.equal(org.deadline(), START + 60_000)
  t.match(org.send('handle.reserve', { id: 'w2', handle: 'h', project: other.id }), {
    refused: 'already_exists',
    details: { handle: 'h' },
  })
  t.equal(
    org.send('handle.reserve', { id: 'w3', handle: 'h', project: PRJ }),
    undefined,
    'within a project, the project decides its use',
  )
  org.send('handle.release', { id: 'w1' })
  t.match(org.send('handle.reserve', { id: 'w2', handle: 'h', project: other.id }), {
    refused: 'already_exists',
  })
  org.send('handle.release', { id: 'w3' })
  t.equal(org.send('handle.reserve', { id: 'w2', handle: 'h', project: other.id }), undefined)
  org.send('handle.release', { id: 'w1' })
  t.same(org.events, [], 'a repeated release changes nothing')
  org.at += 60_000
  org.send('wake')
  t.same(org.effects, [
    {
      tell: {
        to: { kind: 'project', id: other.id, project: other.id },
        name: 'handle.settle',
        input: { id: 'w2', organization: ORG },
      },
    },
  ])
  t.equal(org.deadline(), undefined, 'a claim is asked about once')
  org.send('project.delete', { project: other.id })
  t.equal(
    org.send('handle.reserve', { id: 'w4', handle: 'h', project: PRJ }),
    undefined,
    'a deleted project holds nothing',
  )
  t.match(org.send('handle.reserve', { id: 'w5', handle: 'z', project: other.id }), {
    refused: 'not_found',
  })
})

t.test('a key revoked while its request was in flight cannot create or revoke keys', (t) => {
  const org = started()
  const admin = org.send('key.create_organization', { name: 'admin', ...material('h1') })
  org.send('key.revoke_organization', { id: admin.id })
  for (const role of ['Owner', 'Viewer'])
    t.match(
      org.send('key.create_organization', { name: role, role, ...material('h2') }, as(admin.id)),
      { refused: 'unauthorized' },
      role,
    )
  t.match(org.send('key.revoke_organization', { id: ROOT }, as(admin.id)), {
    refused: 'unauthorized',
  })
  t.end()
})

t.test('an idempotency key does not recreate the text of a revoked key', (t) => {
  const org = started()
  const derived = { ...material('h1'), derived: true as const }
  const first = org.send('key.create_organization', { name: 'ci', ...derived })
  t.match(
    org.send('key.create_organization', { name: 'ci 2', ...derived }),
    { refused: 'idempotency_key_conflict' },
    'two keys with one text',
  )
  org.send('key.revoke_organization', { id: first.id })
  t.match(org.send('key.create_organization', { name: 'ci', ...derived }), {
    refused: 'idempotency_key_conflict',
  })
  t.match(org.send('key.create_organization', { name: 'ci', ...material('h2') }), { name: 'ci' })
  t.end()
})
