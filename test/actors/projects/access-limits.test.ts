/** Limits on the numbers of keys, tokens and principals of a project and of the organization. */
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { systemRoles } from '../../../protocol/access/schema.ts'
import { given, type Outcome } from '../../support/given.ts'

const holds = [...systemRoles.Owner]
const refusal = ({ refused }: Outcome<unknown>) => refused
let made = 0
const key = (more: object = {}) => {
  const hash = `hash_${++made}`
  return { name: hash, hash, key_prefix: 'bat_abcd', holds, ...more }
}

t.test('people and services are limited in number; agents do not count', async (t) => {
  const scene = given(projectActor({ brand: 'Service', max_principals: 2 }))
    .when('agent.create', { name: 'helper' })
    .when('principal.create', { name: 'one', holds })
    .when('user.create', { name: 'Ada', holds })
  const full = { refused: 'conflict', details: { limit: 2 } }
  t.match(refusal(scene.when('principal.create', { name: 'two', holds })), full)
  t.match(refusal(scene.when('user.create', { name: 'Bo', holds })), full)
  t.match(
    refusal(scene.when('key.create', key())),
    full,
    'its new principal would exceed the limit',
  )
  t.notOk(refusal(scene.when('key.create', key({ name: 'one', allow_unassigned_principal: true }))))
  t.notOk(refusal(scene.when('agent.create', { name: 'other' })))
  const less = scene.when('user.delete', { id: 'user_1' })
  t.notOk(refusal(less.when('principal.create', { name: 'two', holds })))
})

t.test('keys and tokens of a project share one limit', async (t) => {
  const scene = given(projectActor({ brand: 'Service', max_keys: 2 }))
    .when('user.create', { name: 'Ada', holds })
    .when('key.create', key())
    .when('token.create', key({ id: 'user_1' }))
  const full = { refused: 'conflict', details: { limit: 2 }, message: /revoke some first/ }
  t.match(refusal(scene.when('key.create', key())), full)
  t.match(refusal(scene.when('token.create', key({ id: 'user_1' }))), full)
  const less = scene.when('key.revoke', { id: 'key_1' })
  t.notOk(refusal(less), 'revoking is always possible')
  t.notOk(refusal(less.when('token.create', key({ id: 'user_1' }))))
})

t.test('one principal can have at most 100 keys', async (t) => {
  let scene = given(projectActor({ brand: 'Service' })).when('principal.create', {
    name: 'bot',
    role_ids: ['role_editor'],
    holds,
  })
  const { id: principal_id } = scene.reply as { id: string }
  for (let n = 0; n < 100; n++) scene = scene.when('key.create', key({ principal_id }))
  t.notOk(refusal(scene))
  t.match(refusal(scene.when('key.create', key({ principal_id }))), {
    refused: 'conflict',
    details: { limit: 100, principal_id },
  })
  t.notOk(refusal(scene.when('key.create', key())), 'other principals have keys of their own')
})

t.test('organization keys are limited in number', async (t) => {
  const root = { credential: { type: 'api_key', id: 'key_0' } } as const
  const scene = given(organizationActor({ brand: 'Service', max_keys: 2 }))
    .when('organization.init', {
      name: 'Acme',
      project_id: 'project_1',
      root_key: { id: 'key_0', hash: 'root', key_prefix: 'bat_root' },
    })
    .when('key.create_organization', key({ role: 'Viewer' }), root)
  t.match(refusal(scene.when('key.create_organization', key(), root)), {
    refused: 'conflict',
    details: { limit: 2 },
  })
})
