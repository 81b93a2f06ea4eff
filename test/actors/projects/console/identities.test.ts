/**
 * People who sign in with OpenID Connect: their users in a project, and the roles of these users.
 */
import t from 'tap'
import { projectActor } from '../../../../actors/projects/project.ts'
import type { ProjectState } from '../../../../actors/projects/state.ts'
import { SIGN_IN_PRINCIPAL } from '../../../../protocol/access/identity.ts'
import { given, type Scene, typesOf } from '../../../support/given.ts'

const identity = { issuer: 'https://idp.example', subject: 'ann' }
const by = { principal: { type: 'system' as const, id: SIGN_IN_PRINCIPAL } }
const signIn = (scene: Scene<ProjectState>, roles: string[], more: object = {}) =>
  scene.when(
    'person.sign_in',
    { identity, name: 'Ann', email: 'ann@acme.example', roles, ...more },
    by,
  )
const bare = () => given<ProjectState>(projectActor({ brand: 'Service' }))
const admin = { principal: { type: 'service_account' as const, id: 'svc_1' } }
const rolesIn = ({ state }: Scene<ProjectState>) =>
  Object.values(state.assignments)
    .map(({ role_id }) => role_id)
    .sort()

t.test('the first sign-in creates a user, a repeat changes nothing', async (t) => {
  const first = signIn(bare(), ['Admin', 'role_viewer', 'unknown'])
  t.match(first.reply, { user: { active: true, roles: 2 }, changed: true, unknown: ['unknown'] })
  t.match(first.events[0], { principal: { kind: 'user', name: 'Ann', identity } })
  t.same(rolesIn(first), ['role_admin', 'role_viewer'])
  const again = signIn(first, ['Admin', 'role_viewer'])
  t.same(again.events, [])
  t.match(again.reply, { changed: false })
  t.same(signIn(bare(), []).events, [], 'without roles, no user is created')
})

t.test('roles of former groups are removed, those of administrators stay', async (t) => {
  const first = signIn(bare(), ['Admin', 'Viewer'])
  const id = (first.reply as { user: { id: string } }).user.id
  const assigned = first.when(
    'assignment.create',
    {
      principal_id: id,
      role_name: 'Operator',
      holds: [
        'project.view',
        'runs.operate',
        'work.execute',
        'agent.invoke',
        'interaction.respond',
        'channel.write',
        'actions.execute.*',
      ],
    },
    admin,
  )
  t.same(typesOf(assigned).includes('assignment.created'), true)
  t.same(rolesIn(signIn(assigned, ['Editor'])), ['role_editor', 'role_operator'])
  t.same(rolesIn(signIn(assigned, ['Operator'])), ['role_operator'], 'not assigned twice')
  t.same(rolesIn(signIn(assigned, [])), ['role_operator'])
})

t.test('an identity belongs to one user; an address links a user without identity', async (t) => {
  const made = bare().when(
    'user.create',
    { name: 'Ann', email: 'ANN@acme.example', holds: [] },
    admin,
  )
  const id = (made.reply as { id: string }).id
  t.match(signIn(made, ['Viewer']).reply, { user: { id } })
  const unverified = signIn(made, ['Viewer'], { email: undefined })
  t.not((unverified.reply as { user: { id: string } }).user.id, id)
  const linked = signIn(made, ['Viewer'])
  const other = signIn(linked, ['Viewer'], { identity: { ...identity, subject: 'bob' } })
  t.not((other.reply as { user: { id: string } }).user.id, id)
  t.match(other.events[0], { type: 'principal.created' })
  t.notOk('email' in (other.events[0] as unknown as { principal: object }).principal)
})

t.test('a disabled user stays disabled', async (t) => {
  const first = signIn(bare(), ['Viewer'])
  const id = (first.reply as { user: { id: string } }).user.id
  const disabled = first.when('user.update', { id, state: 'disabled', holds: [] }, admin)
  const again = signIn(disabled, ['Viewer', 'Editor'])
  t.match(again.reply, { user: { id, active: false } })
  t.equal(again.state.principals[id]?.state, 'disabled')
})
