/**
 * Authentication: credentials and their principals, the project in the request, and the recorded
 * use of keys.
 */
import t, { type Test } from 'tap'
import type { Caller } from '../../../gateway/auth/authenticate.ts'
import { authorize, enterProject } from '../../../gateway/auth/authorize.ts'
import { newKey, parseAuthorization } from '../../../gateway/auth/keys.ts'
import { grantedBy } from '../../../protocol/access/roles.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { bearer, edge, ORG, PRJ, type TestEdge } from '../support/given.ts'

const caller = async (it: TestEdge, key: string): Promise<Caller> => {
  const found = await it.authenticate(bearer(key))
  if (isRefusal(found)) throw new Error(`refused: ${found.refused}`)
  return found
}
const refusal = async (it: TestEdge, header: string | undefined) =>
  ((await it.authenticate(header)) as { refused?: string }).refused
const unauthorized = async (t: Test, it: TestEdge, key: string) =>
  t.equal(await refusal(it, bearer(key)), 'unauthorized')

t.test('the text of a key', async (t) => {
  const { world } = edge()
  const key = newKey(world, PRJ)
  t.match(key.key, /^bat_[0-9a-f]{40}AAAAAA0B$/)
  t.equal(key.key_prefix, key.key.slice(0, 8))
  t.match(newKey(world, undefined).key, /^bat_[0-9a-f]{40}$/)
  t.not(newKey(world, PRJ).key, key.key, 'random by default')
  t.equal(
    newKey(world, PRJ, 'cmd1').key,
    newKey(world, PRJ, 'cmd1').key,
    'a repeated creation makes the same key',
  )
  t.not(newKey(world, PRJ, 'cmd1').key, newKey(world, PRJ, 'cmd2').key)
  t.not(newKey(world, PRJ, 'cmd1').hash, newKey(world, undefined, 'cmd1').hash)
})
t.test('the Authorization header', async (t) => {
  t.same(parseAuthorization('Bearer bat_1.my-project'), { text: 'bat_1', handle: 'my-project' })
  t.same(parseAuthorization('bearer  bat_1 '), { text: 'bat_1' })
  for (const bad of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic bat_1',
    'Bearer a b',
    'Bearer bat_1.',
    'Bearer bat_1.A',
    'Bearer .x',
  ])
    t.equal(parseAuthorization(bad), undefined)
})

t.test('an organization key has its role in every project', async (t) => {
  const it = edge()
  const root = await caller(it, it.root)
  t.match(root, {
    scope: { kind: 'organization', role: 'Owner' },
    principal: { type: 'service_account', name: 'root' },
    credential: { type: 'api_key', name: 'root' },
  })
  t.equal(authorize('Service', 'organization.delete', root), undefined)
  const { key, hash, key_prefix } = newKey(it.world, undefined)
  it.change(ORG, 'key.create_organization', { name: 'viewer', role: 'Viewer', hash, key_prefix })
  const viewer = await caller(it, key)
  t.equal(authorize('Service', 'project.view', viewer), undefined)
  t.equal(authorize('Service', 'authenticated', viewer), undefined)
  t.match(authorize('Service', 'runs.operate', viewer), {
    refused: 'permission_denied',
    details: { permission: 'service.runs.operate' },
  })
  t.match(
    authorize('Service', 'actions.execute.*', viewer),
    { details: { permission: 'actions.execute.*' } },
    'permissions of actions carry no brand',
  )
  t.match(
    authorize('Service', 'actions.execute.*', viewer, 'crm.find'),
    { details: { permission: 'actions.execute.crm.find' } },
    'no more is asked for than is missing',
  )
})
t.test('a project key has the rights of its principal, capped by its scope role', async (t) => {
  const it = edge()
  const { text, principal_id } = it.projectKey(PRJ, 'worker')
  const worker = await caller(it, text)
  t.match(worker, {
    scope: { kind: 'project', project_id: PRJ },
    principal: { id: principal_id, name: 'worker' },
  })
  t.ok(worker.permissions.has('project.edit'))
  const capped = await caller(
    it,
    it.projectKey(PRJ, 'capped', { principal_id, scope_role_id: 'role_viewer' }).text,
  )
  t.same([...capped.permissions], ['project.view'])
  it.change(PRJ, 'principal.update', { id: principal_id, role_ids: ['role_owner'] })
  const owner = await caller(it, text)
  t.ok(owner.permissions.has('access.manage'), 'a change of roles acts at once')
  t.notOk(
    owner.permissions.has('organization.admin') || owner.permissions.has('organization.delete'),
    'never the organization’s',
  )
  t.same([...grantedBy({}, ['role_viewer'], 'role_owner')], ['project.view'], 'a cap gives nothing')
  t.same([...grantedBy({}, ['role_viewer'], 'role_gone')], [])
})

t.test('a bad credential is unauthorized', async (t) => {
  const it = edge()
  t.equal(await refusal(it, undefined), 'unauthorized')
  for (const bad of [
    'bat_unknown',
    `${it.root}x`,
    newKey(it.world, PRJ).key,
    newKey(it.world, 'prj_unknown0').key,
    'constructor',
    '__proto__',
  ])
    await unauthorized(t, it, bad)
  const mine = it.projectKey(PRJ, 'mine')
  await caller(it, mine.text)
  it.change(PRJ, 'principal.update', { id: mine.principal_id, state: 'disabled' })
  await unauthorized(t, it, mine.text)
  it.change(PRJ, 'principal.update', { id: mine.principal_id, state: 'active' })
  const held = await caller(it, mine.text)
  it.change(PRJ, 'key.revoke', { id: mine.id })
  await unauthorized(t, it, mine.text)
  t.match(await it.again(held), { refused: 'unauthorized' }, 'open connections, too')
  const brief = it.projectKey(PRJ, 'brief', {
    expires_at: new Date(it.world.now() + 1000).toISOString(),
  })
  await caller(it, brief.text)
  it.advance(1000)
  await unauthorized(t, it, brief.text)
})
t.test('a project key works in its project only', async (t) => {
  const it = edge()
  const other = it.change(ORG, 'project.create', { name: 'Other' })
  const mine = await caller(it, it.projectKey(PRJ, 'mine').text)
  const known = await it.directory.organization()
  if (isRefusal(known)) throw new Error('no directory')
  t.match(enterProject(mine, known, 'default'), { id: PRJ })
  t.match(enterProject(mine, known, PRJ), { id: PRJ }, 'ids name projects too')
  t.match(enterProject(mine, known, 'other'), { refused: 'forbidden' })
  t.match(enterProject(mine, known, 'nowhere'), { refused: 'not_found' })
  t.match(enterProject(mine, known, 'constructor'), { refused: 'not_found' })
  t.match(enterProject(await caller(it, it.root), known, 'other'), { id: other.id })
})
t.test('a handle after the key must belong to the project', async (t) => {
  const it = edge()
  it.change(ORG, 'project.create', { name: 'Other' })
  const known = await it.directory.organization()
  if (isRefusal(known)) throw new Error('no directory')
  const root = await caller(it, `${it.root}.other`)
  t.match(enterProject(root, known, 'other'), { handle: 'other' })
  t.match(enterProject(root, known, 'default'), { refused: 'forbidden' })
})
t.test('a deleted project is not found by handle but readable by id', async (t) => {
  const it = edge()
  const mine = it.projectKey(PRJ, 'mine')
  it.change(ORG, 'project.delete', { project: PRJ })
  const known = await it.directory.organization()
  if (isRefusal(known)) throw new Error('no directory')
  const me = await caller(it, mine.text)
  t.match(enterProject(me, known, 'default'), { refused: 'not_found' })
  t.match(enterProject(me, known, PRJ), { refused: 'not_found' })
  t.match(enterProject(me, known, PRJ, true), { id: PRJ })
})

t.test('if the directory cannot be read, a credential is not rejected as invalid', async (t) => {
  const it = edge()
  const mine = it.projectKey(PRJ, 'mine')
  it.broken = true
  t.equal(await refusal(it, bearer(it.root)), 'service_unavailable')
  it.broken = false
  await caller(it, it.root)
  it.broken = true
  t.equal(
    await refusal(it, bearer(mine.text)),
    'service_unavailable',
    'the organization is known, the project is not',
  )
  await caller(it, it.root)
})
t.test('uses of keys are reported in the background, once a minute', async (t) => {
  const it = edge()
  const mine = it.projectKey(PRJ, 'mine')
  await caller(it, it.root)
  await caller(it, mine.text)
  await caller(it, mine.text)
  t.same(it.commands, [])
  it.advance(1000)
  t.same(
    it.commands.map(({ kind, name, input }) => ({ kind, name, input })),
    [
      {
        kind: 'organization',
        name: 'key.touch',
        input: { ids: ['key_01AAAAAAAAAAAAAAAAAAAAAAAA'] },
      },
      { kind: 'project', name: 'key.touch', input: { ids: [mine.id] } },
    ],
  )
  await caller(it, mine.text)
  it.advance(30_000)
  t.equal(it.commands.length, 2)
  it.advance(30_000)
  await caller(it, mine.text)
  it.advance(1000)
  t.equal(it.commands.length, 3)
})

t.test('a console session with the shortest idle time stays open while it is used', async (t) => {
  const it = edge()
  const { id, principal_id, text } = it.projectKey(PRJ, 'mine')
  const key = { id, hash: it.world.hash(text) }
  const grant = { principal_id, project_id: PRJ, key }
  const times = { idle: 60_000, lifetime: 3_600_000 }
  it.change(ORG, 'console_session.open', { hash: 'cookie', ...times, grant })
  const use = async () => {
    const found = await it.console.find('cookie', {})
    if (isRefusal(found)) return found.refused
    it.note(found)
    return 'used'
  }
  for (let times = 0; times < 20; times++) {
    t.equal(await use(), 'used', `use ${times}`)
    it.advance(13_000)
    it.directory.forget(ORG)
  }
  it.advance(61_000)
  t.equal(await use(), 'unauthorized')
})
