/** Console sessions and sign-in links of the organization: who receives them and when they end. */
import t from 'tap'
import { organizationActor } from '../../../../actors/projects/organization/organization.ts'
import type { OrganizationState } from '../../../../actors/projects/organization/state.ts'
import type { ConsoleGrant, ConsoleSessionState } from '../../../../protocol/access/console-rows.ts'
import { given, type Outcome, type Scene, START, typesOf } from '../../../support/given.ts'

const HOUR_MS = 3_600_000
const TIMES = { idle: HOUR_MS, lifetime: 5 * HOUR_MS }
const grantOf = (principal_id: string, project_id?: string): ConsoleGrant => ({
  principal_id,
  ...(project_id !== undefined && { project_id }),
  key: { id: 'key_root', hash: `hash of ${principal_id}` },
})
const begun = (): Scene<OrganizationState> =>
  given<OrganizationState>(organizationActor({ brand: 'Service' })).when('organization.init', {
    name: 'Acme',
    project_id: 'prj_1',
    root_key: { id: 'key_root', hash: 'root', key_prefix: 'bat_root' },
  })
const open = (
  scene: Scene<OrganizationState>,
  hash: string,
  rights: object,
  at = scene.at,
  joins?: string,
) => scene.when('console_session.open', { hash, ...TIMES, ...rights, joins }, { at })
const found = (scene: Scene<OrganizationState>, hash: string) =>
  scene.ask('console_session', { hash }) as { session: ConsoleSessionState } | null
const idOf = (outcome: Outcome<OrganizationState>) => (outcome.reply as { id: string }).id

t.test('a session is found by its hash until it is idle, or too old', async (t) => {
  const first = open(begun(), 'one', { grant: grantOf('user_1', 'prj_1') })
  t.match(found(first, 'one'), { session: { method: 'credential', seen_at: START }, users: {} })
  t.equal(found(first, 'two'), null)
  t.equal(first.deadline(), START + HOUR_MS)
  const id = idOf(first)
  const used = first.when(
    'key.touch',
    { ids: [id, id, 'key_unknown'] },
    { at: START + HOUR_MS - 1 },
  )
  t.same(typesOf(used), ['console_session.used'])
  t.equal(used.deadline(), START + 2 * HOUR_MS - 1)
  t.same(typesOf(used.when('key.touch', { ids: [id] }, { at: START + HOUR_MS + 1000 })), [])
  const late = [2, 3, 4].reduce(
    (scene: Scene<OrganizationState>, hours) =>
      scene.when('key.touch', { ids: [id] }, { at: START + hours * (HOUR_MS - 1) }),
    used,
  )
  const last = late.when('key.touch', { ids: [id] }, { at: START + 5 * (HOUR_MS - 1) })
  t.equal(last.deadline(), START + 5 * HOUR_MS, 'the absolute end')
  const over = last.when('wake', {}, { at: START + 5 * HOUR_MS })
  t.match(over.events, [{ type: 'console_session.ended', id, reason: 'expired' }])
  t.equal(found(over, 'one'), null)
  const idle = first.when('key.touch', { ids: [id] }, { at: START + HOUR_MS })
  t.same(typesOf(idle), [], 'a use after the end does not revive a session')
  t.equal(found(idle, 'one'), null)
  t.same(typesOf(first.when('wake', {}, { at: START + HOUR_MS })), ['console_session.ended'])
})

t.test('a grant is added to a session, whose hash changes', async (t) => {
  const first = open(begun(), 'one', { grant: grantOf('user_1', 'prj_1') })
  const second = open(first, 'two', { grant: grantOf('user_2', 'prj_2') }, START + 1, 'one')
  t.match(second.reply, { id: idOf(first), expires_at: START + TIMES.lifetime, joined: true })
  t.equal(found(second, 'one'), null)
  t.equal(found(second, 'two')?.session.grants.length, 2)
  const again = open(second, 'three', { grant: grantOf('user_3', 'prj_2') }, START + 2, 'two')
  t.same(
    found(again, 'three')?.session.grants.map(({ principal_id }) => principal_id),
    ['user_1', 'user_3'],
    'one principal in each project',
  )
  const stale = open(
    again,
    'four',
    { grant: grantOf('user_4', 'prj_4') },
    START + HOUR_MS + 9,
    'three',
  )
  t.match(stale.reply, { joined: false }, 'an ended session is not joined')
})

t.test('a grant of the organization needs a valid key', async (t) => {
  const grant = { ...grantOf('svc_1'), key: { id: 'key_gone', hash: 'gone' } }
  t.match(open(begun(), 'one', { grant }).refused, { refused: 'unauthorized' })
  t.match(open(begun(), 'one', { account: 'unknown' }).refused, { refused: 'unauthorized' })
})

t.test('a link signs in once, within an hour, as the key that created it', async (t) => {
  const by = { credential: { type: 'api_key' as const, id: 'key_root' } }
  const linked = begun().when('sign_in_link.create', { hash: 'code' }, by)
  t.match(linked.reply, { expires_at: new Date(START + HOUR_MS).toISOString() })
  t.equal(linked.ask('console_used'), false)
  const used = open(linked, 'one', { link: 'code' })
  t.same(typesOf(used), ['sign_in_link.ended', 'console_session.opened'])
  t.match(found(used, 'one'), { session: { method: 'link', grants: [{ key: { hash: 'root' } }] } })
  t.equal(used.ask('console_used'), true)
  t.match(open(used, 'two', { link: 'code' }).refused, { message: /already used/ })
  t.match(open(linked, 'two', { link: 'other' }).refused, { refused: 'unauthorized' })
  t.match(open(linked, 'two', { link: 'code' }, START + HOUR_MS).refused, {
    refused: 'unauthorized',
  })
  t.same(typesOf(linked.when('wake', {}, { at: START + HOUR_MS })), ['sign_in_link.ended'])
  const person = { credential: { type: 'cli_token' as const, id: 'tok_1' } }
  const refused = begun().when('sign_in_link.create', { hash: 'x' }, person)
  t.match(refused.refused, { refused: 'forbidden' })
  const internal = { credential: { type: 'internal' as const, id: 'node' } }
  const first = begun().when('sign_in_link.create', { hash: 'x' }, internal)
  t.match(first.events, [{ key_id: 'key_root' }], 'a node uses the Owner key')
})

t.test('people end their own sessions only', async (t) => {
  const one = open(begun(), 'one', { grant: grantOf('user_1', 'prj_1') })
  const two = open(one, 'two', { grant: grantOf('user_1', 'prj_1') }, START + 1)
  const all = open(two, 'three', { grant: grantOf('user_2', 'prj_1') }, START + 2)
  const [first, , third] = [one, two, all].map(idOf)
  const revoke = (id: unknown, principals: string[]) =>
    all.when('console_session.revoke', { id, principals })
  t.match(revoke(third, ['user_1']).refused, { refused: 'not_found' })
  t.match(revoke('csn_unknown', ['user_1']).refused, { refused: 'not_found' })
  t.match(revoke(first, ['user_9', 'user_1']).events, [{ id: first, reason: 'revoked' }])
  t.equal(all.when('console_session.revoke_all', { principals: ['user_1'] }).events.length, 2)
  t.match(all.when('console_session.end', { hash: 'three' }).events, [{ reason: 'signed_out' }])
  t.same(all.when('console_session.end', { hash: 'unknown' }).events, [])
})

t.test('an account joins the users of a person; a project to come belongs to nobody', async (t) => {
  const put = (scene: Scene<OrganizationState>, id: string, users: object) =>
    scene.when('console_account.put', { id, issuer: 'https://idp', subject: id, users })
  const ann = put(put(begun(), 'ann', { prj_1: '' }), 'ann', { prj_1: 'user_1' })
  t.match(ann.reply, { changed: true })
  t.match(put(ann, 'ann', { prj_1: 'user_1' }).reply, { changed: false })
  const other = put(ann, 'ann', { prj_1: '', prj_3: '' })
  t.match(other.events, [{ users: { prj_1: 'user_1', prj_3: '' } }], 'a simultaneous first sign-in')
  const both = put(put(ann, 'ann', { prj_2: '' }), 'bob', { prj_2: '' })
  const signed = open(open(both, 'a', { account: 'ann' }), 'b', { account: 'bob' })
  t.match(found(signed, 'a'), { session: { method: 'oidc' }, users: { prj_1: 'user_1' } })
  const own = (principals: string[]) =>
    signed.ask('console_sessions', { principals }) as ConsoleSessionState[]
  t.equal(own(['user_1']).length, 1)
  t.equal(own(['']).length, 0, 'the empty id of a user to come is nobody')
  const again = open(signed, 'c', { account: 'ann' }, START + 1, 'a')
  t.same(typesOf(again), ['console_session.ended', 'console_session.opened'])
})

t.test('the oldest session of a principal ends when there are too many', async (t) => {
  let scene: Scene<OrganizationState> = begun()
  for (let n = 0; n < 50; n++)
    scene = open(scene, `h${n}`, { grant: grantOf('user_1', 'prj_1') }, START + n)
  const other = open(scene, 'other', { grant: grantOf('user_2', 'prj_1') })
  t.same(typesOf(other), ['console_session.opened'])
  const one = open(scene, 'more', { grant: grantOf('user_1', 'prj_1') }, START + 60)
  t.same(typesOf(one), ['console_session.ended', 'console_session.opened'])
  t.equal(found(one, 'h0'), null)
  t.ok(found(one, 'h1'))
  const joined = open(other, 'more', { grant: grantOf('user_1', 'prj_2') }, START + 60, 'other')
  t.same(typesOf(joined), ['console_session.ended', 'console_session.extended'], 'joining counts')
  t.equal(found(joined, 'h0'), null)
})
