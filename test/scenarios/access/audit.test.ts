/**
 * The audit log over HTTP: which changes it contains, its filters, who may read it, and that it
 * contains no secrets.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, fieldsOf, ids, idsOf, instant, listOf, pages } from '../support/given.ts'
import { editor, person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const secrets: string[] = [s.key]
const all = () => pages(s, 'audit.list', {}, 7)
const told = (entries: readonly Found[]) =>
  entries.map(
    ({ resource_type, action, resource_name }) => `${resource_type} ${action} ${resource_name}`,
  )
let half = ''
let made: Record<string, unknown> = {}

t.test(
  'every configuration change is logged once, newest first, with its actor and the changed fields',
  async (t) => {
    t.strictSame(
      told(await all()),
      ['api_key create root', 'project create default', 'organization create default'],
      'the log begins with the installation',
    )
    const project = await s.ok('project.create', { name: 'Audited', tags: { a: 'b' } })
    await s.ok('project.update', { project: 'audited', name: 'Renamed', description: 'new' })
    await s.ok('project.update', { project: 'audited', name: 'Renamed' })
    const workflow = await s.ok('workflow.create', {
      name: 'Flow',
      spec: { ...instant(), output: { password: 'spec-secret' } },
    })
    await s.ok('workflow.update', {
      id: workflow['id'],
      name: 'Flow 2',
      spec: instant(),
      description: 'd',
    })
    await s.ok('workflow.delete', { id: workflow['id'] })
    const principal = await s.ok('principal.create', { name: 'Bot', role_ids: ['role_admin'] })
    await s.ok('principal.update', { id: principal['id'], state: 'disabled' })
    await s.ok('principal.update', { id: principal['id'], state: 'active' })
    half = new Date().toISOString()
    await new Promise((resolve) => setTimeout(resolve, 5))
    const key = await s.ok('key.create', { name: 'bot key', principal_id: principal['id'] })
    const organization = await s.ok('key.create_organization', { name: 'org key' })
    secrets.push(String(key['key']), String(organization['key']))
    await s.ok(
      'workflow.create',
      { name: 'By the bot', spec: instant() },
      { key: String(key['key']), headers: { 'user-agent': 'robot/1', 'x-request-id': 'req-7' } },
    )
    await s.ok('key.revoke_organization', { id: organization['id'] })
    await s.ok('project.delete', { project: 'audited' })
    made = {
      project: project['id'],
      workflow: workflow['id'],
      principal: principal['id'],
      key: key['id'],
    }
    const entries = await all()
    t.strictSame(told(entries).slice(0, -3), [
      'project delete Renamed',
      'api_key delete org key',
      'workflow create By the bot',
      'api_key create org key',
      'api_key create bot key',
      'principal update Bot',
      'principal update Bot',
      'role_assignment create Admin',
      'principal create Bot',
      'workflow delete Flow 2',
      'workflow update Flow 2',
      'workflow create Flow',
      'project update Renamed',
      'project create Audited',
    ])
    const entry = (text: string) => entries.find((_, index) => told(entries)[index] === text)
    t.match(entry('project update Renamed'), {
      changes: { name: { from: 'Audited', to: 'Renamed' }, description: { to: 'new' } },
      resource_id: project['id'],
      project_id: project['id'],
    })
    t.match(entry('workflow update Flow 2'), {
      changes: { name: { from: 'Flow', to: 'Flow 2' }, latest_version: { from: 1, to: 2 } },
    })
    t.match(entry('principal update Bot'), {
      changes: { state: { from: 'disabled', to: 'active' } },
    })
    t.match(entry('workflow create By the bot'), {
      id: /^aud_/,
      org_id: /^org_/,
      actor_type: 'service_account',
      actor_id: principal['id'],
      credential_type: 'api_key',
      credential_id: key['id'],
      request_id: 'req-7',
      user_agent: 'robot/1',
      ip_address: '127.0.0.1',
    })
    t.match(entry('organization create default'), { actor_type: 'system' })
    t.equal(new Set(ids(entries)).size, entries.length)
  },
)

t.test('rejected changes and the execution of runs are not logged', async (t) => {
  const before = (await all()).length
  await s.refused('workflow.create', { name: 'x', spec: {} }, 400, 'bad_request')
  await s.refused('key.create', { name: 'bot key' }, 409, 'already_exists')
  const { id } = await s.ok('run.start', {
    spec: { steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1h' } }] },
  })
  await s.ok('run.cancel', { id })
  t.equal((await all()).length, before)
})

t.test('audit entries are filtered by every field, alone and combined', async (t) => {
  const list = async (query: object) =>
    told(listOf(await s.ok('audit.list', { limit: 200, ...query })))
  t.strictSame(await list({ resource_type: 'principal' }), [
    'principal update Bot',
    'principal update Bot',
    'principal create Bot',
  ])
  t.equal((await list({ resource_type: ['principal', 'organization'] })).length, 4)
  t.equal((await list({ resource_type: 'principal,organization' })).length, 4)
  t.strictSame(await list({ project_id: made['project'] }), [
    'project delete Renamed',
    'project update Renamed',
    'project create Audited',
  ])
  t.strictSame(await list({ resource_id: made['workflow'] }), [
    'workflow delete Flow 2',
    'workflow update Flow 2',
    'workflow create Flow',
  ])
  t.strictSame(await list({ actor_id: made['principal'] }), ['workflow create By the bot'])
  t.strictSame(
    await list({ principal_id: made['principal'] }),
    ['workflow create By the bot'],
    'the former name of the filter',
  )
  t.strictSame(await list({ principal_id: made['principal'], actor_id: 'svc_x' }), [])
  t.strictSame(await list({ user_id: 'user_x' }), [])
  t.strictSame(await list({ actor_type: 'system' }), [
    'api_key create root',
    'project create default',
    'organization create default',
  ])
  t.equal((await list({ actor_type: 'service_account' })).length, 14)
  t.equal((await list({ actor_type: 'service' })).length, 14)
  t.equal((await list({ actor_type: ['system', 'service'] })).length, 17)
  t.strictSame(await list({ action: 'delete' }), [
    'project delete Renamed',
    'api_key delete org key',
    'workflow delete Flow 2',
  ])
  t.strictSame(await list({ action: 'delete', resource_type: 'workflow' }), [
    'workflow delete Flow 2',
  ])
  const [after, before] = [
    await list({ created_after: half }),
    await list({ created_before: half }),
  ]
  t.strictSame([...after, ...before], told(await all()))
  t.equal(after.length, 5)
  t.strictSame(await list({ created_after: half, created_before: half }), [])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'audit.list',
        { action: 'look', created_after: 'yesterday' },
        400,
        'bad_request',
      ),
    ).sort(),
    ['action[0]', 'created_after'],
  )
})

t.test(
  'a project key reads only the log of its project, and only with the permission',
  async (t) => {
    const { id } = await s.ok('project.get')
    const { key } = await s.ok('key.create', { name: 'auditor', principal_id: made['principal'] })
    const options = { key: String(key) }
    const mine = await s.ok('audit.list', { limit: 200 }, options)
    t.ok(listOf(mine).length > 5 && listOf(mine).every(({ project_id }) => project_id === id))
    t.strictSame(
      idsOf(await s.ok('audit.list', { limit: 200, project_id: id }, options)),
      idsOf(mine),
    )
    await s.refused('audit.list', { project_id: made['project'] }, 403, 'forbidden', options)
    for (const who of [options, {}])
      t.strictSame(
        idsOf(await s.ok('audit.project', { limit: 200 }, who)),
        idsOf(mine),
        'the path of the project',
      )
    t.strictSame(
      idsOf(await s.ok('audit.project', { project_id: made['project'] })),
      [],
      'both filters apply',
    )
    const [first, second] = [
      await s.ok('audit.project', { limit: 1 }),
      await s.ok('audit.project', {
        limit: 1,
        cursor: (await s.ok('audit.project', { limit: 1 }))['next_cursor'],
      }),
    ]
    t.strictSame([...idsOf(first), ...idsOf(second)], idsOf(mine).slice(0, 2))
    const editor = String((await s.ok('key.create', { name: 'an editor' }))['key'])
    for (const row of ['audit.list', 'audit.project'] as const)
      await s.refused(row, {}, 403, 'permission_denied', { key: editor })
  },
)

t.test('private channels are in the log only for their members and administrators', async (t) => {
  const { id: role } = await s.ok('role.create', {
    name: 'log reader',
    permissions: ['service.project.view', 'service.access.manage', 'service.channel.write'],
  })
  const [auditor, member] = [
    await person(s, 'log reader', String(role)),
    await editor(s, 'founder'),
  ]
  const { id } = await member.ok('channel.create', { name: 'plans', private: true })
  const open = await member.ok('channel.create', { name: 'news', member_ids: [auditor.id] })
  await member.ok('channel.update', { id, topic: 'a merger' })
  const added = { id, user_id: auditor.id }
  const about = async (channel: unknown, by = auditor) =>
    [`${channel}`, `${channel}:${auditor.id}`].reduce(
      async (found, resource_id) => [
        ...(await found),
        ...told(listOf(await by.ok('audit.project', { resource_id }))),
      ],
      Promise.resolve<string[]>([]),
    )
  t.same(await about(id), [])
  t.same(await about(open['id']), ['channel create news'])
  await member.ok('channel.add_member', added)
  const whole = ['channel update plans', 'channel create plans', 'channel_member create undefined']
  t.same(await about(id), whole)
  await member.ok('channel.remove_member', added)
  t.same(await about(id), [])
  const admin = await person(s, 'log admin', 'role_admin')
  t.same(await about(id, admin), [
    'channel update plans',
    'channel create plans',
    'channel_member delete undefined',
    'channel_member create undefined',
  ])
})

t.test('the log contains no keys and no specs', async (t) => {
  const text = JSON.stringify(await s.ok('audit.list', { limit: 200 }))
  for (const secret of secrets) t.notOk(text.includes(secret) || text.includes(secret.slice(4, 24)))
  t.notMatch(text, /spec-secret|"hash"|"spec"/)
})
