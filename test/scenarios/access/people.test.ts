/**
 * Users, roles and assignments on two gateways: a change acknowledged by one gateway applies to the
 * next request on the other.
 */
import t from 'tap'
import { type CallOptions, service } from '../../support/service.ts'
import { fieldsOf, ids, instant, listOf, pages, sleeping, until } from '../support/given.ts'

const s = await service({ BATON_NODE_ID: 'one' })
t.teardown(() => s.stop())
const other = await s.add({ BATON_NODE_ID: 'two', BATON_ROLES: 'gateway' })
const [A, B] = [s.url, other.url ?? '']
const person = async (name: string, more: object = {}) => {
  const user = await s.ok('user.create', { name, ...more })
  const token = await s.ok('token.create', { id: user['id'], name: 'laptop' })
  return {
    id: String(user['id']),
    token: String(token['id']),
    as: { key: String(token['key']) } satisfies CallOptions,
  }
}

t.test(
  'a user is created, gets a role, authenticates, acts under their own name, and is deleted',
  async (t) => {
    const { status, body: ann } = await s.call('user.create', {
      name: 'Ann Lee',
      email: 'ann@example.org',
      description: 'on call',
      tags: { team: 'red' },
    })
    t.equal(status, 201)
    t.match(ann, {
      id: /^user_/,
      kind: 'user',
      state: 'active',
      name: 'Ann Lee',
      email: 'ann@example.org',
      handle: 'user:ann-lee',
    })
    t.strictSame(await s.ok('user.get', { id: ann['id'] }), ann)
    t.strictSame(await s.ok('principal.get', { id: ann['id'] }), ann)
    const made = await s.call('token.create', {
      id: ann['id'],
      name: 'laptop',
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
    t.equal(made.status, 201)
    const { key: raw, ...token } = made.body
    t.match(made.body, {
      id: /^tok_/,
      principal_id: ann['id'],
      key: /^batc_[0-9a-f]{40}/,
      key_prefix: String(raw).slice(0, 8),
    })
    const as = { key: String(raw) }
    await s.refused('run.list', {}, 403, 'permission_denied', as)
    const given = await s.ok('assignment.create', { principal_id: ann['id'], role_name: 'Editor' })
    t.match(given, {
      id: /^asg_/,
      role_id: 'role_editor',
      role_name: 'Editor',
      granted_by: /^svc_/,
    })
    const run = await s.ok('run.start', { spec: instant() }, as)
    t.match(run, { initiated_by: 'Ann Lee' })
    const flow = await s.ok(
      'workflow.create',
      { name: 'By Ann', spec: instant() },
      { ...as, headers: { 'user-agent': 'ann/1', 'x-request-id': 'req-ann' } },
    )
    t.equal(flow['created_by'], ann['id'])
    const [entry] = listOf(await s.ok('audit.list', { user_id: ann['id'] }))
    t.match(entry, {
      actor_type: 'user',
      actor_id: ann['id'],
      user_id: ann['id'],
      credential_type: 'cli_token',
      credential_id: token['id'],
      request_id: 'req-ann',
      user_agent: 'ann/1',
      resource_id: flow['id'],
    })
    const [shown] = listOf(await s.ok('token.list', { id: ann['id'] }))
    t.match(
      await until(
        async () => listOf(await s.ok('token.list', { id: ann['id'] }))[0],
        (one) => one !== undefined && 'last_used_at' in one,
      ),
      token,
    )
    t.notOk('key' in (shown ?? {}), 'shown once')
    t.equal((await s.call('token.revoke', { id: ann['id'], token: token['id'] })).status, 204)
    await s.refused('run.list', {}, 401, 'unauthorized', as)
    await s.refused('token.revoke', { id: ann['id'], token: token['id'] }, 404, 'not_found')
    t.equal((await s.call('user.delete', { id: ann['id'] })).status, 204)
    for (const row of [
      'user.get',
      'user.update',
      'user.delete',
      'token.list',
      'principal.get',
    ] as const)
      await s.refused(row, { id: ann['id'] }, 404, 'not_found')
    t.strictSame(listOf(await s.ok('assignment.list', { principal_id: ann['id'] })), [])
  },
)

t.test('users are listed separately from services, in pages', async (t) => {
  const made = []
  for (const n of [1, 2, 3]) made.push(await s.ok('user.create', { name: `P${n}` }))
  const bot = await s.ok('principal.create', { name: 'P1' })
  await s.ok('user.update', { id: made[1]?.['id'], state: 'disabled' })
  t.strictSame(ids(await pages(s, 'user.list')), ids([made[2] ?? {}, made[0] ?? {}]))
  t.strictSame(
    ids(await pages(s, 'user.list', { include_disabled: true })),
    ids([...made].reverse()),
  )
  t.ok(
    ids(listOf(await s.ok('principal.list', { kind: 'user' }))).includes(String(made[0]?.['id'])),
  )
  const plain = ids(listOf(await s.ok('principal.list')))
  t.ok(
    plain.includes(String(bot['id'])) && !plain.some((id) => id.startsWith('user_')),
    'lists without a kind contain no users',
  )
  await s.refused('user.get', { id: bot['id'] }, 404, 'not_found')
  await s.refused('token.create', { id: bot['id'], name: 'x' }, 404, 'not_found')
  await s.refused(
    'key.create',
    { name: 'as P1', principal_id: made[0]?.['id'] },
    400,
    'bad_request',
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'user.create',
        { name: '', email: 'nobody', role_ids: [] },
        400,
        'bad_request',
      ),
    ).sort(),
    ['email', 'name', 'role_ids'],
  )
})

t.test('disabling a user ends their open streams and sockets, and can be undone', async (t) => {
  const { id, as } = await person('Dan', { role_ids: ['role_operator'] })
  const run = await s.ok('run.start', { spec: sleeping() })
  const stream = s.follow('run.events', { id: run['id'] }, () => false, { ...as, url: B })
  const worker = await s.worker({ action_names: ['dan'] }, { ...as, url: B })
  const began = Date.now()
  await s.ok('user.update', { id, state: 'disabled' }, { url: A })
  await s.refused('run.list', {}, 401, 'unauthorized', { ...as, url: B })
  await stream
  await worker.closed
  t.ok(Date.now() - began < 5000, `${Date.now() - began} ms`)
  await t.rejects(s.worker({ action_names: ['dan'] }, { ...as, url: A }), /401/)
  await s.ok('user.update', { id, state: 'active' }, { url: A })
  await s.ok('run.list', {}, { ...as, url: B })
})

t.test(
  'a custom role is created, assigned, updated and deleted, with immediate effect on the other gateway',
  async (t) => {
    const { status, body: role } = await s.call('role.create', {
      name: 'Reader of runs',
      permissions: ['service.project.view'],
      description: 'd',
      tags: { a: 'b' },
    })
    t.equal(status, 201)
    t.match(role, {
      id: /^role_/,
      system_defined: false,
      project_id: /^prj_/,
      permissions: ['service.project.view'],
    })
    t.strictSame(await s.ok('role.get', { id: role['id'] }, { url: B }), role)
    const roles = await pages(s, 'role.list')
    t.strictSame(
      roles.map(({ name }) => name),
      ['Viewer', 'Operator', 'Editor', 'Admin', 'Owner', 'Reader of runs'],
      'system roles come first',
    )
    await s.refused(
      'role.create',
      { name: 'reader of RUNS', permissions: [] },
      409,
      'already_exists',
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'role.create',
          {
            name: 'x',
            permissions: ['service.project.view', 'service.fly', 'service.organization.admin'],
          },
          400,
          'bad_request',
        ),
      ),
      ['permissions[1]', 'permissions[2]'],
    )
    for (const row of ['role.update', 'role.delete'] as const)
      await s.refused(row, { id: 'role_admin' }, 403, 'forbidden')
    const { id, as } = await person('Eve', { role_ids: [role['id']] })
    await s.ok('run.list', {}, { ...as, url: B })
    t.match(
      await s.refused('run.start', { spec: instant() }, 403, 'permission_denied', {
        ...as,
        url: B,
      }),
      { details: { permission: 'service.runs.operate' } },
    )
    t.match(
      await s.ok(
        'role.update',
        { id: role['id'], permissions: ['service.runs.operate'], description: '' },
        { url: A },
      ),
      { permissions: ['service.runs.operate'], description: undefined },
    )
    await s.ok('run.start', { spec: instant() }, { ...as, url: B })
    await s.refused('run.list', {}, 403, 'permission_denied', { ...as, url: B })
    t.equal((await s.call('role.delete', { id: role['id'] }, { url: A })).status, 204)
    await s.refused('run.start', { spec: instant() }, 403, 'permission_denied', { ...as, url: B })
    t.notOk('role_ids' in (await s.ok('user.get', { id }, { url: B })))
    await s.refused('role.get', { id: role['id'] }, 404, 'not_found')
  },
)

t.test(
  'a revoked assignment applies to the next request on the other gateway, however busy it is',
  async (t) => {
    const { id, as } = await person('Fay')
    let stop = false
    // Requests run continuously, so that gateway B evaluates the user's permissions throughout.
    const busy = (async () => {
      const seen: number[] = []
      while (!stop) seen.push((await s.call('run.list', {}, { ...as, url: B })).status)
      return seen
    })()
    for (let round = 0; round < 15; round++) {
      const { id: assignment } = await s.ok(
        'assignment.create',
        { principal_id: id, role_id: 'role_viewer' },
        { url: A },
      )
      t.equal((await s.call('run.list', {}, { ...as, url: B })).status, 200, 'granted at once')
      t.equal((await s.call('assignment.delete', { id: assignment }, { url: A })).status, 204)
      t.equal((await s.call('run.list', {}, { ...as, url: B })).status, 403, 'revoked at once')
    }
    stop = true
    t.strictSame(new Set(await busy), new Set([200, 403]), 'no other status')
    const given = await s.ok('assignment.create', { principal_id: id, role_name: 'Viewer' })
    await s.refused(
      'assignment.create',
      { principal_id: id, role_id: 'role_viewer' },
      409,
      'already_exists',
    )
    t.strictSame(
      fieldsOf(await s.refused('assignment.create', { principal_id: id }, 400, 'bad_request')),
      ['role_id'],
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'assignment.create',
          { principal_id: 'user_x', role_id: 'role_x' },
          400,
          'bad_request',
        ),
      ),
      ['principal_id', 'role_id'],
    )
    t.strictSame(listOf(await s.ok('assignment.list', { principal_id: id })), [given])
    t.strictSame(
      listOf(await s.ok('assignment.list', { principal_id: id, role_id: 'role_editor' })),
      [],
    )
    await s.refused('assignment.delete', { id: 'asg_x' }, 404, 'not_found')
  },
)

t.test('a stream ends when its reader loses the role that opened it', async (t) => {
  const { id, as } = await person('Gus', { role_ids: ['role_viewer'] })
  const run = await s.ok('run.start', { spec: sleeping() })
  const stream = s.follow('run.events', { id: run['id'] }, () => false, { ...as, url: B })
  const began = Date.now()
  await new Promise((resolve) => setTimeout(resolve, 200))
  await s.ok('user.update', { id, role_ids: [] }, { url: A })
  await stream
  t.ok(Date.now() - began < 5000)
})

t.test(
  'a user who manages access creates tokens for others, but none with more permissions than their own',
  async (t) => {
    const keeper = await s.ok('role.create', {
      name: 'Keeper',
      permissions: ['service.access.manage', 'service.project.admin', 'service.project.view'],
    })
    const { as } = await person('Kim', { role_ids: [keeper['id']] })
    const humble = await s.ok('user.create', { name: 'Lou', role_ids: ['role_viewer'] })
    const mighty = await s.ok('user.create', { name: 'Max', role_ids: ['role_admin'] })
    await s.ok('token.create', { id: humble['id'], name: 'by Kim' }, as)
    t.match(
      await s.refused(
        'token.create',
        { id: mighty['id'], name: 'by Kim' },
        403,
        'permission_denied',
        as,
      ),
      { details: { permission: 'service.runs.operate' } },
    )
    await s.refused(
      'assignment.create',
      { principal_id: humble['id'], role_name: 'Admin' },
      403,
      'permission_denied',
      as,
    )
    await s.refused(
      'role.update',
      { id: keeper['id'], permissions: ['service.access.manage', 'service.project.edit'] },
      403,
      'permission_denied',
      as,
    )
    await s.refused('key.create', { name: 'of an editor' }, 403, 'permission_denied', as)
    t.strictSame(await s.ok('project.capabilities', {}, as), {
      can_manage_project: true,
      can_manage_access: true,
    })
  },
)

t.test('me.get returns the caller, and users manage their own tokens', async (t) => {
  const { id, token, as } = await person('Nia', { role_ids: ['role_viewer'] })
  t.strictSame(await s.ok('me.get', {}, as), {
    principal: { id, kind: 'user', name: 'Nia' },
    credential: { id: token, type: 'cli_token', name: 'laptop' },
    permissions: ['service.project.view'],
  })
  t.match(await s.ok('me.get'), {
    principal: { kind: 'service', name: 'root' },
    credential: { type: 'api_key' },
  })
  const made = await s.ok('me.create_token', { name: 'phone' }, as)
  t.match(made, { id: /^tok_/, principal_id: id, key: /^batc_/ })
  const phone = { key: String(made['key']) }
  t.strictSame(
    listOf(await s.ok('me.list_tokens', {}, phone)).map(({ name }) => name),
    ['phone', 'laptop'],
  )
  t.equal((await s.call('me.revoke_token', { token }, phone)).status, 204)
  await s.refused('me.get', {}, 401, 'unauthorized', { ...as, url: B })
  const brief = await s.ok('token.create', {
    id,
    name: 'brief',
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  })
  const options = { key: String(brief['key']) }
  for (const wish of [{}, { expires_at: new Date(Date.now() + 120_000).toISOString() }])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'me.create_token',
          { name: 'eternal', ...wish },
          400,
          'bad_request',
          options,
        ),
      ),
      ['expires_at'],
    )
  await s.ok('me.create_token', { name: 'as brief', expires_at: brief['expires_at'] }, options)
  const { id: mine } = listOf(await s.ok('token.list', { id }))[0] ?? {}
  for (const [row, input] of [
    ['me.create_token', { name: 'x' }],
    ['me.list_tokens', {}],
    ['me.revoke_token', { token: mine }],
  ] as const)
    await s.refused(row, input, 404, 'not_found')
})

t.test('each change is logged once with the changed fields and without any token', async (t) => {
  const { id, token, as } = await person('Zoe', {
    role_ids: ['role_viewer'],
    email: 'zoe@example.org',
  })
  await s.ok('user.update', { id, email: 'z@example.org', role_ids: ['role_editor'] })
  await s.ok('token.revoke', { id, token })
  const role = await s.ok('role.create', { name: 'Zoo', permissions: ['service.project.view'] })
  await s.ok('role.update', {
    id: role['id'],
    permissions: ['service.project.view', 'actions.execute.zoo.*'],
  })
  await s.ok('assignment.create', { principal_id: id, role_id: role['id'] })
  await s.ok('role.delete', { id: role['id'] })
  await s.ok('user.delete', { id })
  const entries = (await pages(s, 'audit.list', {}, 50)).slice(0, 13)
  t.strictSame(
    entries.map(
      ({ resource_type, action, resource_name }) => `${resource_type} ${action} ${resource_name}`,
    ),
    [
      'principal delete Zoe',
      'role delete Zoo',
      'role_assignment delete Zoo',
      'role_assignment create Zoo',
      'role update Zoo',
      'role create Zoo',
      'personal_token delete laptop',
      'role_assignment create Editor',
      'role_assignment delete Viewer',
      'principal update Zoe',
      'personal_token create laptop',
      'role_assignment create Viewer',
      'principal create Zoe',
    ],
  )
  t.match(entries[4], {
    changes: {
      permissions: {
        from: ['service.project.view'],
        to: ['service.project.view', 'actions.execute.zoo.*'],
      },
    },
  })
  t.match(entries[2], { changes: { principal_id: { from: id }, role_id: { from: role['id'] } } })
  t.match(entries[3], { changes: { principal_id: { to: id }, role_id: { to: role['id'] } } })
  t.match(entries[8], {
    changes: { principal_id: { from: id }, role_id: { from: 'role_viewer' } },
  })
  t.strictSame((entries[9] as { changes: unknown } | undefined)?.changes, {
    email: { from: 'zoe@example.org', to: 'z@example.org' },
    role_ids: { from: ['role_viewer'], to: ['role_editor'] },
  })
  const text = JSON.stringify(entries)
  t.notOk(text.includes(as.key) || text.includes(as.key.slice(9, 40)) || text.includes('hash'))
})
