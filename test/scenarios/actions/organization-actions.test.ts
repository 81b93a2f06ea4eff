/**
 * Management of organization actions by administrators. Calls over TLS are tested in
 * actions-kill.test.ts, whose processes trust a certificate.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, idsOf, listOf, pages } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
t.setTimeout(60_000)

t.test('administrators create, read and update organization actions', async (t) => {
  const made = await s.ok('organization_action.create', {
    name: 'ledger.post',
    endpoint_url: 'https://ledger.example.org/',
    title: 'Post',
    annotations: { idempotent: true },
    input_schema: { type: 'object', required: ['amount'] },
  })
  t.match(made, {
    id: /^act_/,
    enabled: true,
    invocation_format: 'signed_context_v1',
    secret_ref: `service/org-action/${made['id']}`,
    active_signing_version: 1,
    secret_versions: [{ version: 1, status: 'active' }],
  })
  t.equal(Buffer.from(String(made['signing_secret']), 'base64').length, 32)
  const action_id = String(made['id'])
  const read = await s.ok('organization_action.get', { action_id })
  t.match(read, { title: 'Post' })
  t.notOk('signing_secret' in read, 'the secret is shown only once')
  const other = await s.ok('organization_action.create', {
    name: 'other.one',
    endpoint_url: 'https://example.org/',
    enabled: false,
  })
  t.strictSame(idsOf(await s.ok('organization_action.list')), [other['id'], action_id])
  t.equal((await pages(s, 'organization_action.list', {}, 1)).length, 2)
  t.match(
    await s.ok('organization_action.update', {
      action_id,
      name: 'ledger.add',
      title: '',
      annotations: null,
    }),
    { name: 'ledger.add' },
  )
  await s.refused(
    'organization_action.update',
    { action_id, name: 'other.one' },
    409,
    'already_exists',
  )
  await s.refused(
    'organization_action.create',
    { name: 'other.one', endpoint_url: 'https://example.org/' },
    409,
    'already_exists',
  )
  for (const [body, field] of [
    [{ endpoint_url: 'http://example.org/' }, 'endpoint_url'],
    [{ name: 'service.x' }, 'name'],
    [{ name: 'plain' }, 'name'],
    [{ name: 'a..b' }, 'name'],
    [{ input_schema: { $ref: '#/x' } }, 'input_schema.$ref'],
    [{ invocation_format: 'legacy' }, 'invocation_format'],
  ] as const) {
    t.strictSame(
      fieldsOf(
        await s.refused(
          'organization_action.create',
          Object.assign({ name: 'bad.one', endpoint_url: 'https://example.org/' }, body),
          400,
          'bad_request',
        ),
      ),
      [field],
    )
  }
  const key = String(
    (
      await s.ok('key.create', {
        name: 'inside',
        principal_id: (
          await s.ok('principal.create', { name: 'inside', role_ids: ['role_owner'] })
        )['id'],
      })
    )['key'],
  )
  await s.refused('organization_action.list', {}, 403, 'permission_denied', { key })
  t.match(
    listOf(await s.ok('catalog.actions', {}, { key }))
      .filter(({ source }) => source !== 'platform')
      .map(({ name, readiness, readiness_reason, definition_scope, risk }) => [
        name,
        definition_scope,
        readiness,
        readiness_reason,
        risk,
      ]),
    [
      ['ledger.add', 'organization', 'ready', undefined, 'medium'],
      ['other.one', 'organization', 'needs_setup', 'inactive', 'medium'],
    ],
  )
  await s.refused('action.invoke', { action_name: 'other.one' }, 409, 'conflict', { key })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'action.invoke',
        { action_name: 'ledger.add', input: {} },
        400,
        'bad_request',
      ),
    ),
    ['input.amount'],
  )
})

t.test('the secret of an organization action is rotated, activated and revoked', async (t) => {
  const [, { id: action_id } = { id: '' }] = listOf(await s.ok('organization_action.list'))
  const rotated = await s.ok('organization_action.rotate_secret', { action_id })
  t.match(rotated, {
    signing_secret: /=$/,
    active_signing_version: 1,
    secret_versions: [{ status: 'active' }, { version: 2, status: 'pending' }],
  })
  const headers = { 'idempotency-key': 'rotate once' }
  const [one, two] = [
    await s.ok('organization_action.rotate_secret', { action_id }, { headers }),
    await s.ok('organization_action.rotate_secret', { action_id }, { headers }),
  ]
  t.strictSame(one, two, 'a repeat with one key returns the same secret')
  t.match(one, {
    secret_versions: [{}, { version: 2, status: 'revoked' }, { version: 3, status: 'pending' }],
  })
  await s.refused('organization_action.activate_secret', { action_id, version: 2 }, 409, 'conflict')
  t.strictSame(
    fieldsOf(
      await s.refused(
        'organization_action.activate_secret',
        { action_id, version: 3, overlap_seconds: 86_401 },
        400,
        'bad_request',
      ),
    ),
    ['overlap_seconds'],
  )
  t.match(await s.ok('organization_action.activate_secret', { action_id, version: 3 }), {
    active_signing_version: 3,
    secret_versions: [{ status: 'retiring', accept_until: /Z$/ }, {}, { status: 'active' }],
  })
  await s.refused('organization_action.revoke_secret', { action_id, version: 3 }, 409, 'conflict')
  t.match(await s.ok('organization_action.revoke_secret', { action_id, version: 1 }), {
    secret_versions: [{ status: 'revoked' }, {}, {}],
  })
  await s.refused('organization_action.revoke_secret', { action_id, version: 9 }, 404, 'not_found')
})

t.test('saving an action with an internal address is rejected', async (t) => {
  for (const endpoint_url of [
    'https://127.0.0.1:9/',
    'https://169.254.169.254/latest',
    'https://2130706433:9/',
    'https://[::ffff:10.0.0.1]/',
    'https://[::1]/',
    'https://localhost:9/',
    'https://a.localhost/',
  ])
    for (const row of ['organization_action.create', 'action.create'] as const) {
      const action = { name: 'inside.one', endpoint_url }
      const { details } = await s.refused(row, action, 400, 'bad_request')
      t.match(
        details,
        {
          fields: [
            {
              field: 'endpoint_url',
              message: /not a public address|not resolve to|cannot be resolved/,
            },
          ],
        },
        `${row} ${endpoint_url}`,
      )
    }
  await s.ok('action.create', { name: 'outside', endpoint_url: 'https://calls.invalid/' })
  const moved = { action_name: 'outside', endpoint_url: 'https://10.0.0.1/' }
  await s.refused('action.update', moved, 400, 'bad_request')
})

t.test('redirecting the calls of an action needs project.admin', async (t) => {
  await s.ok('organization_action.create', {
    name: 'pay.out',
    endpoint_url: 'https://example.com/pay',
  })
  const http = { name: 'pay.mine', endpoint_url: 'https://example.com/mine' }
  const worker = { endpoint_kind: 'worker' }
  const role = await s.ok('role.create', {
    name: 'Author',
    permissions: ['service.project.view', 'service.project.edit'],
  })
  const bot = await s.ok('principal.create', { name: 'author', role_ids: [role['id']] })
  const made = await s.ok('key.create', { name: 'author', principal_id: bot['id'] })
  const author = { key: String(made['key']) }
  const refused = async (...call: ['action.create' | 'action.delete', Record<string, unknown>]) =>
    t.match((await s.refused(...call, 403, 'permission_denied', author)).details, {
      permission: 'service.project.admin',
    })
  await s.ok('action.create', http, author)
  await refused('action.delete', { action_name: 'pay.mine' })
  await refused('action.create', { ...http, name: 'pay.out' })
  await refused('action.create', { ...worker, name: 'pay.out' })
  await s.ok('action.create', { ...worker, name: 'pay.worked' }, author)
  await s.ok('action.delete', { action_name: 'pay.worked' }, author)
  await s.ok('action.delete', { action_name: 'pay.mine' })
  await s.ok('action.create', { ...http, name: 'pay.out' })
})

t.test('an organization action is deleted', async (t) => {
  for (const { id } of listOf(await s.ok('organization_action.list')))
    await s.ok('organization_action.delete', { action_id: id })
  t.strictSame(idsOf(await s.ok('organization_action.list')), [])
  await s.refused('organization_action.get', { action_id: 'act_1' }, 404, 'not_found')
  for (const name of [
    'organization_action.update',
    'organization_action.delete',
    'organization_action.rotate_secret',
  ] as const)
    await s.refused(name, { action_id: 'act_1' }, 404, 'not_found')
})
