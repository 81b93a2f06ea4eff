/**
 * Sign-in requests of devices: when they expire, who may answer them, and which status the device
 * receives.
 */
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type { Principal } from '../../../protocol/entry.ts'
import { played } from '../support/played.ts'

const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const EXPIRES_IN_MS = 600_000
const CODE = 'BCDF-GHJK'
const address = '192.0.2.1'
const started = () => {
  const org = played(organizationActor({ brand: 'Service' }), {
    project: ORG,
    kind: 'organization',
    id: ORG,
  })
  org.send('organization.init', {
    name: 'Acme',
    project_id: PRJ,
    root_key: { id: 'key_1', hash: 'root', key_prefix: 'bat_root' },
  })
  return org
}
const asked = (more: object = {}) => {
  const org = started()
  org.send('device.request', { id: 'd1', user_code: CODE, label: 'laptop', address, ...more })
  return org
}
const ann: Principal = { type: 'user', id: 'user_ann', name: 'Ann' }
const by = (principal: Principal) => ({
  principal,
  credential: { type: 'cli_token' as const, id: 'tok_1' },
})
const answer = (decision: string, more: object = {}) => ({
  user_code: CODE,
  decision,
  project: PRJ,
  project_handle: 'default',
  holds: ['project.view'],
  ...more,
})
const status = (org: ReturnType<typeof started>) => org.send('device.poll', { id: 'd1' })['status']

t.test('a request allowed by a person yields one token', async (t) => {
  const org = started()
  t.strictSame(
    org.send('device.request', { id: 'd1', user_code: CODE, label: 'laptop', address }),
    { expires_in: 600, interval: 5 },
  )
  t.equal(status(org), 'authorization_pending')
  t.equal(org.send('device.redeem', { id: 'd1' }).refused, 'not_found', 'not before the answer')
  t.match(org.send('device.answer', answer('allow'), by(ann)), { status: 'approved' })
  t.match(org.send('device.poll', { id: 'd1' }), {
    status: 'approved',
    name: `laptop (${CODE})`,
    approval: {
      project: PRJ,
      principal: ann,
      credential: { id: 'tok_1' },
      holds: ['project.view'],
    },
  })
  org.send('device.redeem', { id: 'd1' })
  t.strictSame(org.events, [{ type: 'device.ended', id: 'd1' }])
  t.equal(org.send('device.poll', { id: 'd1' }).refused, 'not_found')
  t.equal(org.send('device.redeem', { id: 'd1' }).refused, 'not_found')
})

t.test('a device that polls too early receives slow_down', async (t) => {
  const actor = organizationActor({ brand: 'Service' })
  const org = asked()
  const evolve = actor.evolve['device.polled']
  t.equal(status(org), 'authorization_pending')
  const state = actor.initial()
  state.devices['d1'] = { user_code: CODE, label: 'laptop', address, expires_at: org.at + 60_000 }
  evolve(state, { type: 'device.polled', id: 'd1', at: org.at }, org.at)
  const poll = (at: number) => {
    const decided = actor.decide['device.poll'](state, { id: 'd1' }, { at } as never)
    return 'reply' in decided ? (decided.reply as { status: string }).status : decided.refused
  }
  t.equal(poll(org.at + 4999), 'slow_down')
  t.equal(poll(org.at + 5000), 'authorization_pending')
})

t.test('a poll reports that the request was denied or has expired', async (t) => {
  const denied = asked()
  t.match(denied.send('device.answer', answer('deny'), by(ann)), { status: 'denied' })
  t.equal(status(denied), 'access_denied')
  t.match(denied.send('device.answer', answer('allow'), by(ann)), { refused: 'conflict' })
  const expired = asked()
  expired.at += EXPIRES_IN_MS
  t.equal(expired.send('device.answer', answer('allow'), by(ann)).refused, 'not_found')
  t.equal(expired.ask('device', { user_code: CODE }), null)
  t.equal(status(expired), 'expired_token')
  expired.at = expired.deadline() ?? 0
  expired.send('wake')
  t.strictSame(expired.events, [{ type: 'device.ended', id: 'd1' }])
  t.equal(expired.deadline(), undefined)
  const approved = asked()
  approved.send('device.answer', answer('allow'), by(ann))
  approved.at += EXPIRES_IN_MS
  t.equal(status(approved), 'expired_token', 'also when it was allowed and not fetched')
})

t.test('only a person can answer, once, and only for the requested project', async (t) => {
  const org = asked({ project_handle: 'shop' })
  const root: Principal = { type: 'service_account', id: 'svc_1' }
  t.match(org.send('device.answer', answer('allow'), by(root)), { refused: 'permission_denied' })
  t.match(org.send('device.answer', answer('allow'), by(ann)), {
    refused: 'conflict',
    details: { project_handle: 'shop' },
  })
  const shop = answer('allow', { project_handle: 'shop' })
  t.match(org.send('device.answer', shop, by(ann)), { status: 'approved' })
  t.match(org.send('device.answer', shop, by(ann)), { status: 'approved' })
  t.strictSame(org.events, [], 'the same answer again changes nothing')
  const other = by({ type: 'user', id: 'user_bob' })
  t.match(org.send('device.answer', shop, other), { refused: 'conflict' })
  t.match(org.send('device.answer', answer('allow', { user_code: 'XXXX-XXXX' }), by(ann)), {
    refused: 'not_found',
  })
})

t.test('open requests are limited in total and per address', async (t) => {
  const org = started()
  const send = (n: number, from: string) =>
    org.send('device.request', { id: `d${n}`, user_code: `code ${n}`, label: 'x', address: from })
  const ask = (n: number, from: string) => send(n, from).refused
  for (let n = 0; n < 20; n++) t.equal(ask(n, address), undefined)
  t.match(send(20, address), { refused: 'conflict', details: { limit: 20 } })
  for (let n = 20; n < 200; n++) ask(n, `192.0.2.${n}`)
  t.match(send(200, address), { refused: 'conflict', details: { limit: 20 } })
  org.at = org.deadline() ?? 0
  org.send('wake')
  t.equal(ask(200, address), undefined, 'forgotten ones make room')
  t.equal(
    org.send('device.request', { id: 'e', user_code: 'code 200', label: 'x', address }).refused,
    'already_exists',
  )
})

t.test('requests from many addresses do not block the sign-in of others', async (t) => {
  const org = started()
  let asked = 0
  /** Opens a request, and returns the ids of the requests that it replaces. */
  const ask = (from: string) => {
    const n = asked++
    const input = { id: `d${n}`, user_code: `code ${n}`, label: 'x', address: from }
    t.equal(org.send('device.request', input).refused, undefined)
    return org.events.flatMap(({ type, id }) => (type === 'device.ended' ? [id] : []))
  }
  const decide = (n: number, decision: string) =>
    org.send('device.answer', answer(decision, { user_code: `code ${n}` }), by(ann))
  for (let n = 0; n < 197; n++) ask(`192.0.2.${n}`)
  for (let n = 0; n < 3; n++) t.strictSame(ask('198.51.100.1'), [])
  decide(0, 'allow')
  decide(20, 'deny')
  t.strictSame(ask('203.0.113.1'), ['d20'], 'a denied one makes room first')
  t.strictSame(ask('203.0.113.2'), ['d197'], 'then the oldest of the address with the most')
  t.strictSame(ask('203.0.113.3'), ['d198'])
  t.strictSame(ask('203.0.113.4'), ['d1'], 'then the oldest that is not approved')
  t.equal(org.send('device.poll', { id: 'd1' }).refused, 'not_found')
  t.equal(org.send('device.poll', { id: 'd0' })['status'], 'approved')
  org.at += EXPIRES_IN_MS
  t.strictSame(ask('203.0.113.5'), ['d0'], 'an expired one yields no token')
})

t.test('the IPv6 addresses of a /64 network count as one address', async (t) => {
  const org = started()
  const ask = (n: number, from: string) =>
    org.send('device.request', { id: `d${n}`, user_code: `code ${n}`, label: 'x', address: from })
      .refused
  for (let n = 0; n < 20; n++)
    t.equal(ask(n, `2001:0db8:0000:0001:0000:0000:0000:${String(n).padStart(4, '0')}`), undefined)
  t.equal(ask(20, '2001:0db8:0000:0001:ffff:0000:0000:0001'), 'conflict')
  t.equal(ask(20, '2001:0db8:0000:0002:0000:0000:0000:0001'), undefined)
})

t.test('a snapshot of an older release has no devices after recovery', async (t) => {
  const actor = organizationActor({ brand: 'Service' })
  const { devices: _, ...older } = actor.initial()
  t.strictSame(actor.recover?.(older as never, 0).devices, {})
})

t.test('an approval ends with the console session with which it was given', async (t) => {
  const org = asked()
  const grant = { principal_id: ann.id, project_id: PRJ, key: { id: 'tok_1', hash: 'tok' } }
  const times = { idle: 2 * EXPIRES_IN_MS, lifetime: 3 * EXPIRES_IN_MS }
  const { id } = org.send('console_session.open', { hash: 'cookie', ...times, grant })
  const credential = { type: 'console_session' as const, id: String(id) }
  org.send('device.answer', answer('allow'), { principal: ann, credential })
  t.equal(status(org), 'approved')
  org.send('console_session.revoke_all', { principals: [ann.id] })
  t.equal(status(org), 'access_denied')
})
