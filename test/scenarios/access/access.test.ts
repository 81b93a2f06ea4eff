/**
 * Organization keys, project keys, principals and roles over HTTP: which requests they permit, and
 * when keys and assignments stop being valid.
 */
import t from 'tap'
import {
  brandedPermission,
  organizationOnly,
  permissions,
  systemRoleNames,
  systemRoles,
} from '../../../protocol/access/schema.ts'
import { api, type RowName } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, instant, listOf, pages, sleeping, until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const later = (ms: number) => new Date(Date.now() + ms).toISOString()
const never = () => false

t.test(
  'organization keys work in both path forms: shown once, listed, valid in any project, revocable',
  async (t) => {
    const forms = [
      [
        'key.create_organization',
        'key.get_organization',
        'key.list_organization',
        'key.revoke_organization',
      ],
      [
        'key.create_organization_old',
        'key.get_organization_old',
        'key.list_organization_old',
        'key.revoke_organization_old',
      ],
    ] as const
    for (const [create, get, list, revoke] of forms) {
      const { status, body: made } = await s.call(create, {
        name: create,
        role: 'Viewer',
        tags: { a: 'b' },
      })
      t.equal(status, 201)
      t.match(made, {
        id: /^key_/,
        name: create,
        org_role: 'Viewer',
        principal_id: /^svc_/,
        tags: { a: 'b' },
        key: /^bat_[0-9a-f]{40}$/,
      })
      t.equal(String(made['key']).slice(0, 8), made['key_prefix'])
      const { key, ...record } = made
      t.match(await s.ok(get, { id: made['id'] }), record)
      t.notMatch(JSON.stringify(await s.ok(list)), String(key), 'the key is shown only once')
      await s.ok('project.get', {}, { key: String(key) })
      await s.refused(create, { name: create }, 409, 'already_exists')
      t.equal((await s.call(revoke, { id: made['id'] })).status, 204)
      await s.refused('project.get', {}, 401, 'unauthorized', { key: String(key) })
      await s.refused(get, { id: made['id'] }, 404, 'not_found')
      await s.refused(revoke, { id: made['id'] }, 404, 'not_found')
    }
    for (const n of [1, 2, 3]) await s.ok('key.create_organization', { name: `page-${n}` })
    const names = (await pages(s, 'key.list_organization')).map(({ name }) => name)
    t.strictSame(
      names,
      ['page-3', 'page-2', 'page-1', 'root'],
      'newest first, without revoked ones',
    )
    t.match(await s.ok('key.create_organization', { name: 'standard' }), { org_role: 'Admin' })
  },
)

t.test(
  'the last Owner key cannot be revoked, and no key can grant or revoke a role above its own',
  async () => {
    const root = listOf(await s.ok('key.list_organization', { limit: 200 })).find(
      ({ name }) => name === 'root',
    )
    await s.refused('key.revoke_organization', { id: root?.['id'] }, 409, 'conflict')
    const admin = String((await s.ok('key.create_organization', { name: 'an admin' }))['key'])
    await s.refused(
      'key.create_organization',
      { name: 'up', role: 'Owner' },
      403,
      'permission_denied',
      { key: admin },
    )
    await s.refused('key.revoke_organization', { id: root?.['id'] }, 403, 'permission_denied', {
      key: admin,
    })
  },
)

t.test(
  'project keys are shown once, limited to their project, capped by a scope role, and revocable',
  async (t) => {
    await s.ok('project.create', { name: 'Elsewhere' })
    const { status, body: made } = await s.call('key.create', { name: 'ci' })
    t.equal(status, 201)
    const key = String(made['key'])
    t.match(made, { id: /^key_/, key: /^bat_/, principal_id: /^svc_/, org_role: undefined })
    t.match(await s.ok('principal.get', { id: made['principal_id'] }), {
      name: 'ci',
      kind: 'service',
      state: 'active',
      role_ids: ['role_editor'],
    })
    t.match(await s.ok('key.get', { id: made['id'] }), { id: made['id'], name: 'ci' })
    t.notMatch(JSON.stringify(await s.ok('key.list')), key)
    await s.ok('run.start', { spec: instant() }, { key })
    await s.ok('run.start', { spec: instant() }, { key: `${key}.default` })
    await s.refused('run.start', { spec: instant() }, 403, 'forbidden', { key: `${key}.elsewhere` })
    await s.refused('run.list', { project: 'elsewhere' }, 403, 'forbidden', { key })
    await s.refused('key.list_organization', {}, 403, 'permission_denied', { key })
    t.strictSame(
      listOf(await s.ok('project.list', {}, { key })).map(({ handle }) => handle),
      ['default'],
      'the key sees only its own project',
    )
    await s.refused('key.create', { name: 'ci' }, 409, 'already_exists')

    const capped = String(
      (
        await s.ok('key.create', {
          name: 'reader',
          principal_id: made['principal_id'],
          scope_role_id: 'role_viewer',
        })
      )['key'],
    )
    await s.ok('run.list', {}, { key: capped })
    t.match(
      await s.refused('run.start', { spec: instant() }, 403, 'permission_denied', { key: capped }),
      { details: { permission: 'service.runs.operate' } },
    )

    await until(
      () => s.ok('key.get', { id: made['id'] }),
      (record) => 'last_used_at' in record,
    )
    t.equal((await s.call('key.revoke', { id: made['id'] })).status, 204)
    await s.refused('run.list', {}, 401, 'unauthorized', { key })
    await s.refused('key.get', { id: made['id'] }, 404, 'not_found')
    await s.refused('key.revoke', { id: made['id'] }, 404, 'not_found')
    for (const n of [1, 2, 3]) await s.ok('key.create', { name: `page-${n}` })
    t.strictSame(
      (await pages(s, 'key.list')).map(({ name }) => name),
      ['page-3', 'page-2', 'page-1', 'reader'],
    )
  },
)

t.test('a revoked key ends its open streams within seconds', async (t) => {
  const { id: run } = await s.ok('run.start', { spec: sleeping() })
  const made = await s.ok('key.create', { name: 'streaming' })
  const key = { key: String(made['key']) }
  const streams = Promise.all([
    s.follow('run.events', { id: run }, never, key),
    s.follow('run.feed', {}, never, key),
    s.follow('run.events_stream', { id: run }, never, key),
  ])
  await new Promise((resolve) => setTimeout(resolve, 200))
  const began = Date.now()
  await s.ok('key.revoke', { id: made['id'] })
  await streams
  t.ok(Date.now() - began < 5000, `${Date.now() - began} ms`)
})

t.test('a key is rejected after it expires', async (t) => {
  for (const row of ['key.create', 'key.create_organization'] as const) {
    const made = await s.ok(row, { name: 'brief', expires_at: later(700) })
    t.match(made, { expires_at: /Z$/ })
    const key = String(made['key'])
    await s.ok('run.list', {}, { key })
    await until(
      () => s.call('run.list', {}, { key }),
      ({ status }) => status === 401,
    )
  }
  t.strictSame(
    fieldsOf(
      await s.refused(
        'key.create',
        { name: 'past', expires_at: '2001-01-01T00:00:00Z' },
        400,
        'bad_request',
      ),
    ),
    ['expires_at'],
  )
})

t.test('principals are created, found, updated, disabled and deleted', async (t) => {
  const { status, body: made } = await s.call('principal.create', {
    name: 'Deploy Bot',
    description: 'd',
    role_ids: ['role_operator'],
    metadata: { team: 'x' },
    tags: { a: 'b' },
    owner_id: 'user_1',
  })
  t.equal(status, 201)
  t.match(made, {
    id: /^svc_/,
    kind: 'service',
    state: 'active',
    name: 'Deploy Bot',
    handle: 'svc:deploy-bot',
    role_ids: ['role_operator'],
    owner_id: 'user_1',
  })
  t.strictSame(await s.ok('principal.get', { id: made['id'] }), made)
  await s.refused('principal.create', { name: 'Deploy Bot' }, 409, 'already_exists')
  t.strictSame(
    fieldsOf(
      await s.refused(
        'principal.create',
        { name: 'x', role_ids: ['role_operator', 'role_king'] },
        400,
        'bad_request',
      ),
    ),
    ['role_ids[1]'],
  )
  const held = await s.ok('key.create', { name: 'bot key', principal_id: made['id'] })
  const key = String(held['key'])
  t.equal(held['principal_id'], made['id'])
  await s.refused('workflow.create', { name: 'x', spec: instant() }, 403, 'permission_denied', {
    key,
  })
  t.match(
    await s.ok('principal.update', { id: made['id'], role_ids: ['role_editor'], description: '' }),
    { role_ids: ['role_editor'], description: undefined },
  )
  await s.ok('workflow.create', { name: 'by bot', spec: instant() }, { key })
  await s.ok('principal.update', { id: made['id'], state: 'disabled' })
  await s.refused('run.list', {}, 401, 'unauthorized', { key })
  const listed = async (query: object) =>
    ids(listOf(await s.ok('principal.list', { limit: 200, ...query }))).includes(String(made['id']))
  t.notOk(await listed({}))
  t.ok(await listed({ include_disabled: true }))
  t.ok(await listed({ include_disabled: true, kind: 'service' }))
  t.notOk(await listed({ include_disabled: true, kind: 'agent' }))
  await s.ok('principal.update', { id: made['id'], state: 'active' })
  await s.ok('run.list', {}, { key })
  await s.ok('principal.update', { id: made['id'], role_ids: [] })
  await s.refused('run.list', {}, 403, 'permission_denied', { key })
  await s.refused(
    'key.create',
    { name: 'no roles', principal_id: made['id'] },
    409,
    'principal_has_no_roles',
  )
  await s.ok('key.create', {
    name: 'no roles',
    principal_id: made['id'],
    allow_unassigned_principal: true,
  })
  await s.refused('principal.delete', { id: made['id'] }, 409, 'conflict')
  for (const one of listOf(await s.ok('key.list', { limit: 200 })).filter(
    (one) => one['principal_id'] === made['id'],
  ))
    await s.ok('key.revoke', { id: one['id'] })
  t.equal((await s.call('principal.delete', { id: made['id'] })).status, 204)
  for (const row of ['principal.get', 'principal.update', 'principal.delete'] as const)
    await s.refused(row, { id: made['id'] }, 404, 'not_found')
  t.strictSame(
    fieldsOf(
      await s.refused('key.create', { name: 'x', principal_id: made['id'] }, 400, 'bad_request'),
    ),
    ['principal_id'],
  )
})

t.test(
  'system roles and the permission catalog are listed, with the brand as prefix',
  async (t) => {
    const roles = await pages(s, 'role.list')
    t.strictSame(
      roles.map(({ name }) => name),
      systemRoleNames,
    )
    for (const role of roles) t.strictSame(await s.ok('role.get', { id: role['id'] }), role)
    t.match(roles[0], {
      id: 'role_viewer',
      system_defined: true,
      permissions: ['service.project.view'],
    })
    await s.refused('role.get', { id: 'role_king' }, 404, 'not_found')
    const catalog = await s.ok('permission.list')
    t.strictSame(
      listOf(catalog).map(({ id }) => id),
      Object.keys(permissions).map((id) => (id.startsWith('actions.') ? id : `service.${id}`)),
    )
    t.equal(listOf(catalog, 'presets').length, systemRoleNames.length)
  },
)

t.test(
  'a role grants exactly its permissions: every other operation is refused with the missing one',
  async (t) => {
    const table: Readonly<Record<string, Row>> = api
    const keys = await Promise.all(
      systemRoleNames.flatMap((role) =>
        [false, true].map(async (organization) => {
          const { id } = organization
            ? { id: '' }
            : await s.ok('principal.create', {
                name: `role ${role}`,
                role_ids: [`role_${role.toLowerCase()}`],
              })
          const made = organization
            ? await s.ok('key.create_organization', { name: `role ${role}`, role })
            : await s.ok('key.create', { name: `role ${role}`, principal_id: id })
          return { role, organization, key: String(made['key']) }
        }),
      ),
    )
    for (const { role, organization, key } of keys) {
      const granted = new Set<string>(
        systemRoles[role].filter((permission) => organization || !organizationOnly.has(permission)),
      )
      for (const [name, row] of Object.entries(table)) {
        const { permission, stream } = row.shape
        if (stream === 'socket' || stream === 'sse' || permission === 'authenticated') continue
        const slots = [...row.route.matchAll(/:(\w+)/g)].flatMap(([, slot = '']) =>
          slot === 'project' ? [] : ([[slot, 'nobody']] as const),
        )
        const { status, body } = await s.call(
          name as RowName,
          {
            ...Object.fromEntries(slots),
            ...(name === 'project.delete' && { project: 'nothing-here' }),
          },
          { key },
        )
        const denied = status === 403
        if (name === 'project.delete')
          t.equal(
            status,
            organization ? (granted.has(permission) || status === 404 ? 404 : 403) : 404,
            `${name} by ${role}`,
          )
        else if (denied === granted.has(permission))
          t.fail(
            `${name} (${permission}) answered ${status} to the ` +
              `${organization ? 'organization' : 'project'} role ${role}`,
          )
        else if (denied)
          t.match(
            body,
            {
              error: {
                code: 'permission_denied',
                details: {
                  permission:
                    permission === 'actions.execute.*'
                      ? 'actions.execute.nobody'
                      : brandedPermission(permission, 'service'),
                },
              },
            },
            `${name} by ${role}`,
          )
      }
      const can = (permission: string) => granted.has(permission)
      t.strictSame(await s.ok('project.capabilities', {}, { key }), {
        can_manage_project: can('project.admin'),
        can_manage_access: can('access.manage'),
      })
    }
  },
)
