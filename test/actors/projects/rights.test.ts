/**
 * Roles, assignments, people and tokens in the project actor: what is stored, and who may grant
 * what.
 */
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ProjectDirectory } from '../../../protocol/access/directory.ts'
import { permissions, systemRoles } from '../../../protocol/access/schema.ts'
import { given, type Outcome, START, typesOf } from '../../support/given.ts'

const actor = projectActor({ brand: 'Service' })
const all = Object.keys(permissions)
const material = (hash: string) => ({ hash, key_prefix: 'bat_abcd' })
const directory = (scene: { ask(name: string, input?: unknown): unknown }) =>
  scene.ask('directory', { id: 'project_1' }) as ProjectDirectory
const refusal = ({ refused }: Outcome<unknown>) => refused
const fieldsOf = (outcome: Outcome<unknown>) =>
  (refusal(outcome)?.details?.['fields'] as { field: string }[] | undefined)?.map(
    ({ field }) => field,
  )
const begin = () => given(actor)

t.test(
  'role permissions come from the catalog; clients send the brand prefix, storage omits it',
  async (t) => {
    const made = begin().when('role.create', {
      name: 'Deployer',
      permissions: ['service.project.view', 'actions.execute.deploy.*'],
      description: 'ships',
      tags: { a: 'b' },
      holds: all,
    })
    t.match(made.reply, {
      id: 'role_1',
      name: 'Deployer',
      permissions: ['service.project.view', 'actions.execute.deploy.*'],
      system_defined: false,
      project_id: 'project_1',
      description: 'ships',
      tags: { a: 'b' },
    })
    t.match(made.events, [
      { type: 'role.created', role: { permissions: ['project.view', 'actions.execute.deploy.*'] } },
    ])
    t.match(directory(made).roles['role_1'], { name: 'Deployer' })
    const bad = [
      'project.view',
      'service.project.fly',
      'service.organization.admin',
      'service.organization.delete',
      'actions.execute',
      'actions.execute.',
      'actions.execute.*.x',
      'service.actions.execute.*',
      'service.constructor',
      'constructor',
      '*',
    ]
    t.same(
      fieldsOf(
        made.when('role.create', {
          name: 'x',
          permissions: ['service.project.view', ...bad],
          holds: all,
        }),
      ),
      bad.map((_, index) => `permissions[${index + 1}]`),
    )
    for (const name of ['Deployer', 'DEPLOYER', 'viewer', 'Owner'])
      t.match(
        refusal(made.when('role.create', { name, permissions: [], holds: all })),
        { refused: 'already_exists' },
        name,
      )
    t.same(
      fieldsOf(
        made.when('role.create', {
          name: 'x',
          permissions: [],
          tags: { 'service:a': '' },
          holds: all,
        }),
      ),
      ['tags.service:a'],
    )
  },
)

t.test('an updated role changes for all its principals; its name stays', async (t) => {
  const made = begin().when('role.create', {
    name: 'R',
    permissions: ['service.project.view'],
    description: 'd',
    holds: all,
  })
  const changed = made.when(
    'role.update',
    {
      id: 'role_1',
      permissions: ['service.project.view', 'service.runs.operate'],
      description: '',
      tags: { a: 'b' },
      holds: all,
    },
    { at: made.at + 1000 },
  )
  t.match(changed.reply, {
    name: 'R',
    permissions: ['service.project.view', 'service.runs.operate'],
    tags: { a: 'b' },
    updated_at: '2026-01-01T00:00:01.000Z',
  })
  t.notOk('description' in (changed.reply as object))
  t.same(changed.events[0]?.['changes'], {
    description: { from: 'd' },
    tags: { to: { a: 'b' } },
    permissions: {
      from: ['service.project.view'],
      to: ['service.project.view', 'service.runs.operate'],
    },
  })
  t.same(
    typesOf(
      changed.when('role.update', {
        id: 'role_1',
        permissions: ['service.project.view', 'service.runs.operate'],
        holds: all,
      }),
    ),
    [],
    'the same again',
  )
  const empty = changed.when('role.update', { id: 'role_1', permissions: [], holds: all })
  t.same((empty.reply as { permissions: unknown }).permissions, [])
  t.same(directory(empty).roles['role_1']?.permissions, [])
  t.match(refusal(changed.when('role.update', { id: 'role_9', holds: all })), {
    refused: 'not_found',
  })
  for (const name of ['role.update', 'role.delete'])
    t.match(
      refusal(changed.when(name, { id: 'role_editor', holds: all })),
      { refused: 'forbidden' },
      name,
    )
})

t.test(
  'a deleted role is removed from all principals, and a key capped by it has no permissions',
  async (t) => {
    const scene = begin()
      .when('role.create', { name: 'R', permissions: ['service.project.view'], holds: all })
      .when('principal.create', { name: 'bot', role_ids: ['role_1', 'role_viewer'], holds: all })
    t.match(directory(scene).principals['svc_1'], { role_ids: ['role_1', 'role_viewer'] })
    const gone = scene.when('role.delete', { id: 'role_1' })
    t.match(gone.events, [
      {
        type: 'assignment.deleted',
        id: 'asg_1',
        assignment: { principal_id: 'svc_1', role_id: 'role_1', role_name: 'R' },
      },
      { type: 'role.deleted', id: 'role_1', name: 'R' },
    ])
    t.match(directory(gone).principals['svc_1'], { role_ids: ['role_viewer'] })
    t.same(
      directory(gone).assignments.map(({ role_id }) => role_id),
      ['role_viewer'],
    )
    t.match(refusal(gone.when('role.delete', { id: 'role_1' })), { refused: 'not_found' })
    t.same(
      fieldsOf(gone.when('principal.update', { id: 'svc_1', role_ids: ['role_1'], holds: all })),
      ['role_ids[0]'],
    )
    t.same(
      fieldsOf(
        gone.when('key.create', {
          name: 'k',
          principal_id: 'svc_1',
          scope_role_id: 'role_1',
          ...material('h'),
          holds: all,
        }),
      ),
      ['scope_role_id'],
    )
  },
)

t.test('deleting a role of many principals writes bounded events', async (t) => {
  let scene = begin().when('role.create', { name: 'R', permissions: [], holds: all })
  for (let n = 0; n < 401; n++)
    scene = scene.when('principal.create', { name: `bot ${n}`, role_ids: ['role_1'], holds: all })
  const gone = scene.when('role.delete', { id: 'role_1' })
  t.equal(gone.events.length, 401)
  t.same(directory(gone).assignments, [], 'and takes all of them')
})

t.test('a role is assigned once, by id or by name, and can be removed', async (t) => {
  const scene = begin()
    .when('principal.create', { name: 'bot', holds: all })
    .when('role.create', { name: 'R', permissions: [], holds: all })
  const made = scene.when('assignment.create', {
    principal_id: 'svc_1',
    role_name: 'Operator',
    holds: all,
  })
  t.same(made.reply, {
    id: 'asg_1',
    principal_id: 'svc_1',
    role_id: 'role_operator',
    role_name: 'Operator',
    created_at: '2026-01-01T00:00:00.000Z',
    granted_by: 'user_1',
  })
  const both = made.when('assignment.create', {
    principal_id: 'svc_1',
    role_id: 'role_1',
    holds: all,
  })
  t.match(both.reply, { role_name: 'R' })
  t.match(directory(both).principals['svc_1'], { role_ids: ['role_operator', 'role_1'] })
  t.match(
    refusal(both.when('assignment.create', { principal_id: 'svc_1', role_name: 'R', holds: all })),
    { refused: 'already_exists', details: { id: 'asg_2' } },
  )
  t.same(
    fieldsOf(
      both.when('assignment.create', { principal_id: 'svc_9', role_id: 'role_9', holds: all }),
    ),
    ['principal_id', 'role_id'],
  )
  t.same(
    fieldsOf(
      both.when('assignment.create', { principal_id: 'svc_1', role_name: 'operator', holds: all }),
    ),
    ['role_name'],
  )
  const taken = both.when('assignment.delete', { id: 'asg_1' })
  t.match(taken.events, [
    { type: 'assignment.deleted', id: 'asg_1', assignment: { role_name: 'Operator' } },
  ])
  t.same(directory(taken).principals['svc_1']?.role_ids, ['role_1'])
  t.match(refusal(taken.when('assignment.delete', { id: 'asg_1' })), { refused: 'not_found' })
})

t.test("role_ids replaces a principal's roles, and only the difference is written", async (t) => {
  const scene = begin().when('principal.create', {
    name: 'bot',
    role_ids: ['role_viewer', 'role_operator'],
    holds: all,
  })
  t.same(typesOf(scene), ['principal.created', 'assignment.created', 'assignment.created'])
  const changed = scene.when(
    'principal.update',
    { id: 'svc_1', role_ids: ['role_editor', 'role_operator'], holds: all },
    { at: START + 1000 },
  )
  t.match(changed.events, [
    {
      type: 'principal.updated',
      principal: { updated_at: '2026-01-01T00:00:01.000Z' },
      changes: {
        role_ids: { from: ['role_viewer', 'role_operator'], to: ['role_operator', 'role_editor'] },
      },
    },
    { type: 'assignment.deleted', assignment: { role_id: 'role_viewer' } },
    { type: 'assignment.created', assignment: { role_id: 'role_editor' } },
  ])
  t.match(changed.reply, {
    role_ids: ['role_operator', 'role_editor'],
    updated_at: '2026-01-01T00:00:01.000Z',
  })
  t.same(
    typesOf(
      changed.when('principal.update', {
        id: 'svc_1',
        role_ids: ['role_operator', 'role_editor'],
        holds: all,
      }),
    ),
    [],
  )
  const none = changed.when('principal.update', {
    id: 'svc_1',
    role_ids: [],
    description: 'idle',
    holds: all,
  })
  t.same(typesOf(none), ['principal.updated', 'assignment.deleted', 'assignment.deleted'])
  t.notOk('role_ids' in (none.reply as object))
  const gone = changed.when('principal.delete', { id: 'svc_1' })
  t.same(directory(gone).assignments, [], 'assignments go with their principal')
})

t.test('no caller can grant more than its own permissions', async (t) => {
  const scene = begin()
    .when('principal.create', { name: 'bot', holds: all })
    .when('principal.create', { name: 'boss', role_ids: ['role_admin'], holds: all })
    .when('user.create', { name: 'Ann', role_ids: ['role_editor'], holds: all })
    .when('role.create', { name: 'R', permissions: ['service.work.execute'], holds: all })
  const holds = ['project.admin', 'access.manage', 'project.view', 'actions.execute.crm.*']
  const tries: [name: string, input: object, missing: string | undefined][] = [
    [
      'role.create',
      {
        name: 'x',
        permissions: [
          'service.project.view',
          'actions.execute.crm.contact.create',
          'actions.execute.crm.deal.*',
        ],
      },
      undefined,
    ],
    [
      'role.create',
      { name: 'x', permissions: ['service.project.view', 'service.runs.operate'] },
      'service.runs.operate',
    ],
    ['role.create', { name: 'x', permissions: ['actions.execute.*'] }, 'actions.execute.*'],
    ['role.create', { name: 'x', permissions: ['actions.execute.mail'] }, 'actions.execute.mail'],
    [
      'role.update',
      { id: 'role_1', permissions: ['service.work.execute', 'service.project.view'] },
      undefined,
    ],
    [
      'role.update',
      { id: 'role_1', permissions: ['service.project.edit'] },
      'service.project.edit',
    ],
    ['assignment.create', { principal_id: 'svc_1', role_id: 'role_viewer' }, undefined],
    ['assignment.create', { principal_id: 'svc_1', role_id: 'role_1' }, 'service.work.execute'],
    ['assignment.create', { principal_id: 'svc_1', role_name: 'Owner' }, 'service.runs.operate'],
    ['principal.create', { name: 'x', role_ids: ['role_viewer'] }, undefined],
    ['principal.create', { name: 'x', role_ids: ['role_operator'] }, 'service.runs.operate'],
    ['principal.update', { id: 'svc_2', role_ids: ['role_admin'], description: 'x' }, undefined],
    ['principal.update', { id: 'svc_2', role_ids: ['role_owner'] }, 'service.runs.operate'],
    ['user.create', { name: 'x', role_ids: ['role_1'] }, 'service.work.execute'],
    ['user.update', { id: 'user_1', role_ids: ['role_editor'], name: 'Anna' }, undefined],
    ['user.update', { id: 'user_1', role_ids: ['role_admin'] }, 'service.runs.operate'],
    ['key.create', { name: 'k', principal_id: 'svc_2', ...material('h') }, 'service.runs.operate'],
    [
      'key.create',
      { name: 'k', principal_id: 'svc_2', scope_role_id: 'role_viewer', ...material('h') },
      undefined,
    ],
    [
      'key.create',
      { name: 'k', principal_id: 'svc_1', allow_unassigned_principal: true, ...material('h') },
      undefined,
    ],
    ['key.create', { name: 'fresh', ...material('h') }, 'service.runs.operate'],
    ['token.create', { id: 'user_1', name: 'k', ...material('h') }, 'service.runs.operate'],
  ]
  for (const [name, input, permission] of tries) {
    const outcome = scene.when(name, { ...input, holds })
    if (permission === undefined)
      t.equal(refusal(outcome), undefined, `${name} ${JSON.stringify(input)}`)
    else
      t.match(
        refusal(outcome),
        { refused: 'permission_denied', details: { permission } },
        `${name} ${JSON.stringify(input)}`,
      )
    t.equal(
      refusal(scene.when(name, { ...input, holds: systemRoles.Admin })),
      undefined,
      `an admin may ${name}`,
    )
  }
})

t.test('names of people may repeat, e-mail addresses may not', async (t) => {
  const ann = begin().when('user.create', {
    name: 'Ann Lee',
    email: 'Ann@Example.org',
    role_ids: ['role_viewer'],
    metadata: { desk: 3 },
    holds: all,
  })
  t.match(ann.reply, {
    id: 'user_1',
    kind: 'user',
    state: 'active',
    name: 'Ann Lee',
    email: 'Ann@Example.org',
    handle: 'user:ann-lee',
    role_ids: ['role_viewer'],
    metadata: { desk: 3 },
  })
  const two = ann.when('user.create', { name: 'Ann Lee', holds: all })
  t.match(two.reply, { id: 'user_2', handle: 'user:ann-lee-2' })
  t.match(refusal(two.when('user.create', { name: 'x', email: 'ann@example.ORG', holds: all })), {
    refused: 'already_exists',
    details: { field: 'email', user_id: 'user_1' },
    message: /e-mail/,
  })
  t.match(
    refusal(two.when('user.update', { id: 'user_2', email: 'ann@example.org', holds: all })),
    { refused: 'already_exists' },
  )
  const changed = two.when('user.update', {
    id: 'user_1',
    name: 'Ann Wu',
    email: 'ann@example.org',
    state: 'disabled',
    holds: all,
  })
  t.match(changed.reply, {
    name: 'Ann Wu',
    email: 'ann@example.org',
    state: 'disabled',
    handle: 'user:ann-lee',
    role_ids: ['role_viewer'],
  })
  t.same(changed.events[0]?.['changes'], {
    name: { from: 'Ann Lee', to: 'Ann Wu' },
    email: { from: 'Ann@Example.org', to: 'ann@example.org' },
    state: { from: 'active', to: 'disabled' },
  })
  t.notOk(
    'email' in
      (changed.when('user.update', { id: 'user_1', email: '', holds: all }).reply as object),
    'an empty address removes it',
  )
  const bot = changed.when('principal.create', { name: 'Ann Lee', holds: all })
  t.match(bot.reply, { kind: 'service' }, 'a service may have the name of a person')
  for (const name of ['user.update', 'user.delete', 'token.create'])
    t.match(
      refusal(bot.when(name, { id: 'svc_1', name: 'x', ...material('h'), holds: all })),
      { refused: 'not_found' },
      `${name} is about people`,
    )
  t.match(
    bot.when('principal.update', {
      id: 'user_2',
      role_ids: ['role_viewer'],
      state: 'disabled',
      holds: all,
    }).reply,
    { kind: 'user', state: 'disabled', role_ids: ['role_viewer'] },
    'people are principals',
  )
})

t.test('opening access to a principal requires the permissions of its roles', async (t) => {
  const admin = ['project.admin', 'project.view']
  const scene = begin()
    .when('user.create', { name: 'Boss', role_ids: ['role_admin'], holds: all })
    .when('user.create', { name: 'Vera', role_ids: ['role_viewer'], holds: all })
  const denied = { refused: 'permission_denied' }
  const address = { id: 'user_1', email: 'mallory@example.org' }
  t.match(refusal(scene.when('user.update', { ...address, holds: admin })), denied)
  t.match(scene.when('user.update', { ...address, holds: all }).reply, { email: address.email })
  t.match(
    scene.when('user.update', { ...address, id: 'user_2', holds: admin }).reply,
    { email: address.email },
    'the caller holds the permissions of this user',
  )
  t.match(
    scene.when('user.update', { ...address, role_ids: ['role_viewer'], holds: admin }).reply,
    { email: address.email, role_ids: ['role_viewer'] },
    'only the roles that remain count',
  )
  const known = scene.when('user.update', { ...address, holds: all })
  for (const [kept, change] of [
    ['the same address', { email: 'Mallory@Example.org' }],
    ['no address', { email: '' }],
    ['another name', { name: 'Chief' }],
    ['a disabled user', { state: 'disabled' }],
  ] as const)
    t.equal(
      refusal(known.when('user.update', { id: 'user_1', ...change, holds: admin })),
      undefined,
      kept,
    )
  const off = known.when('user.update', { id: 'user_1', state: 'disabled', holds: admin })
  const enable = { id: 'user_1', state: 'active' }
  for (const name of ['user.update', 'principal.update']) {
    t.match(refusal(off.when(name, { ...enable, holds: admin })), denied, name)
    t.match(off.when(name, { ...enable, holds: all }).reply, { state: 'active' }, name)
  }

  const bot = begin()
    .when('principal.create', { name: 'bot', role_ids: ['role_admin'], holds: all })
    .when('principal.update', { id: 'svc_1', state: 'disabled', holds: all })
  const wake = { id: 'svc_1', state: 'active', holds: admin }
  t.match(bot.when('principal.update', wake).reply, { state: 'active' }, 'it has no key')
  const keyed = bot.when('key.create', {
    name: 'k',
    principal_id: 'svc_1',
    ...material('h'),
    holds: all,
  })
  t.match(refusal(keyed.when('principal.update', wake)), denied)
})

t.test('personal tokens are separate from keys and are revoked with their user', async (t) => {
  const scene = begin()
    .when('user.create', { name: 'Ann', holds: all })
    .when('user.create', { name: 'Bob', holds: all })
  const made = scene.when('token.create', {
    id: 'user_1',
    name: 'laptop',
    expires_at: '2026-02-01T00:00:00Z',
    ...material('h1'),
    holds: all,
  })
  t.match(made.reply, {
    id: 'tok_1',
    name: 'laptop',
    principal_id: 'user_1',
    expires_at: '2026-02-01T00:00:00.000Z',
  })
  t.match(directory(made).keys, { h1: { id: 'tok_1' } })
  t.match(
    refusal(
      made.when('token.create', { id: 'user_1', name: 'laptop', ...material('h2'), holds: all }),
    ),
    { refused: 'already_exists' },
  )
  const more = made
    .when('token.create', { id: 'user_2', name: 'laptop', ...material('h2'), holds: all })
    .when('key.create', { name: 'laptop', ...material('h3'), holds: all })
  t.equal(refusal(more), undefined, 'names are unique for each person')
  t.match(refusal(more.when('key.revoke', { id: 'tok_1' })), { refused: 'not_found' })
  t.match(refusal(more.when('token.revoke', { id: 'user_2', token: 'tok_1' })), {
    refused: 'not_found',
  })
  t.match(refusal(more.when('token.revoke', { id: 'user_1', token: 'key_1' })), {
    refused: 'not_found',
  })
  t.match(more.when('token.revoke', { id: 'user_1', token: 'tok_1' }).events, [
    { type: 'key.revoked', id: 'tok_1' },
  ])
  t.same(
    fieldsOf(
      more.when('key.create', {
        name: 'as Ann',
        principal_id: 'user_1',
        allow_unassigned_principal: true,
        ...material('h9'),
        holds: all,
      }),
    ),
    ['principal_id'],
    'no key acts as a person',
  )
  for (const name of ['user.delete', 'principal.delete']) {
    const gone = more.when(name, { id: 'user_1' })
    t.same(typesOf(gone), ['key.revoked', 'principal.deleted', 'parting.begun'], name)
    t.same(Object.keys(directory(gone).keys), ['h2', 'h3'])
  }
  let many = scene
  for (let n = 0; n < 50; n++)
    many = many.when('token.create', {
      id: 'user_1',
      name: `t${n}`,
      ...material(`m${n}`),
      holds: all,
    })
  t.match(
    refusal(
      many.when('token.create', { id: 'user_1', name: 'one more', ...material('x'), holds: all }),
    ),
    { refused: 'conflict', details: { limit: 50 } },
  )
  t.equal(many.when('user.delete', { id: 'user_1' }).events.length, 52)
})

t.test('the principal of an agent cannot be deleted without the agent', async (t) => {
  const agent = {
    id: 'svc_7',
    kind: 'agent',
    state: 'active',
    name: 'helper',
    created_at: '',
    updated_at: '',
  }
  t.match(
    refusal(
      given(actor, { type: 'principal.created', id: 'svc_7', principal: agent } as never).when(
        'principal.delete',
        { id: 'svc_7' },
      ),
    ),
    { refused: 'conflict' },
  )
})

t.test('a snapshot of a release without roles can be recovered', async (t) => {
  t.match(
    actor.recover?.(
      { workflows: {}, keys: {}, principals: {}, claims: {}, unused: {} } as never,
      0,
    ),
    { roles: {}, assignments: {} },
  )
})
