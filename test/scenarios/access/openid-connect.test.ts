/**
 * Signing in with OpenID Connect, with a real provider on loopback: users and their roles are
 * derived from the claims of the provider, and only the browser that began a sign-in can finish it.
 */

import t from 'tap'
import type { Log } from '../../../gateway/ports.ts'
import { freePort } from '../../support/ports.ts'
import { service } from '../../support/service.ts'
import { memberOf } from '../support/given.ts'
import { openIdProvider, type Somebody } from '../support/servers/openid-provider.ts'
import { Browser } from './console-session.ts'

const SECRET = 'the secret of the client baton'
const port = await freePort()
const CALLBACK = `http://127.0.0.1:${port}/auth/oidc/callback`
let provider = await openIdProvider(SECRET.replaceAll(' ', '-'), [CALLBACK])
t.teardown(() => provider.stop())
const lines: string[] = []
const note: Log['info'] = (fields, message) =>
  void lines.push(JSON.stringify({ ...fields, message, err: String(fields['err'] ?? '') }))
const s = await service(
  {
    BATON_PORT: String(port),
    BATON_OIDC_ISSUER: provider.issuer,
    BATON_OIDC_CLIENT_ID: 'baton',
    BATON_OIDC_CLIENT_SECRET: SECRET.replaceAll(' ', '-'),
    BATON_OIDC_NAME: 'Acme',
    BATON_MAX_PRINCIPALS: '20',
    BATON_OIDC_DOMAINS: 'acme.example',
    BATON_OIDC_ROLES: JSON.stringify({
      platform: { default: 'Admin', shop: ['Editor', 'Auditor'] },
      sales: { shop: 'Operator' },
      everywhere: { '*': 'Viewer' },
    }),
  },
  { log: { debug: note, info: note, warn: note, error: note } },
)
t.teardown(() => s.stop())
await s.ok('project.create', { name: 'Shop', handle: 'shop' })

const ada: Somebody = {
  sub: 'ada-1',
  name: 'Ada',
  email: 'ada@acme.example',
  email_verified: true,
  groups: ['platform'],
}
/** Begins a sign-in. Returns the address of the provider and the cookie that the browser keeps. */
const begin = async (back = '/') => {
  const answer = await s.raw('GET', `/auth/oidc/start?return=${encodeURIComponent(back)}`, {
    key: null,
  })
  t.equal(answer.status, 303)
  const [cookie = ''] = answer.headers.getSetCookie()
  return {
    url: answer.headers.get('location') ?? '',
    cookie: cookie.split(';')[0] ?? '',
    set: cookie,
  }
}
/** Sends the callback as the browser does: as a cross-site request from the provider. */
const finish = async (callback: string, cookie: string) => {
  const { pathname, search } = new URL(callback)
  const answer = await s.raw('GET', `${pathname}${search}`, {
    key: null,
    headers: { cookie, 'sec-fetch-site': 'cross-site' },
  })
  t.equal(answer.status, 303)
  const session = answer.headers.getSetCookie().find((one) => one.includes('_session_'))
  return {
    location: answer.headers.get('location'),
    browser: new Browser(s, s.url, session?.split(';')[0]),
    session,
  }
}
const signIn = async (person: Somebody | undefined, back?: string) => {
  provider.person = person
  const { url, cookie } = await begin(back)
  const callback = await provider.authorize(url)
  return { ...(await finish(callback, cookie)), callback, cookie }
}
const rolesOf = async (id: unknown, project: string) =>
  ((await s.ok('user.get', { project, id }))['role_ids'] ?? []) as string[]
const principalIn = (who: { readonly body: Record<string, never> }, handle: string) =>
  (who.body['projects'] as unknown as { handle: string; principal: { id: string } }[]).find(
    (project) => project.handle === handle,
  )?.principal.id

t.test('a new person gets a user with the roles of the groups in each project', async (t) => {
  const who = await new Browser(s).who()
  t.match(who.body, { ways: { oidc: { name: 'Acme', start_path: '/auth/oidc/start' } } })
  const { url, set } = await begin()
  t.match(set, /^service_sign_in_\d+=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
  t.match(Object.fromEntries(new URL(url).searchParams), {
    response_type: 'code',
    client_id: 'baton',
    redirect_uri: CALLBACK,
    scope: 'openid profile email',
    code_challenge_method: 'S256',
  })
  const { browser, location, session } = await signIn(ada, '/projects/shop?tab=runs#top')
  t.equal(location, '/projects/shop?tab=runs#top')
  t.match(session, /; HttpOnly; SameSite=Lax$/)
  const signed = await browser.who()
  t.match(signed.body, { signed_in: true, display_name: 'Ada', session: { method: 'oidc' } })
  const [here, there] = [principalIn(signed, 'default'), principalIn(signed, 'shop')]
  t.match(await s.ok('user.get', { id: here }), {
    name: 'Ada',
    email: 'ada@acme.example',
    identity: { issuer: provider.issuer, subject: 'ada-1' },
  })
  t.same(await rolesOf(here, 'default'), ['role_admin'])
  t.same(await rolesOf(there, 'shop'), ['role_editor'], 'a role that the project does not have')
  const me = await browser.send('GET', '/v1/projects/shop/me')
  t.match(me.body, { principal: { id: there }, credential: { type: 'console_session' } })
  const created = await browser.send('POST', '/v1/projects/default/users', { name: 'By Ada' })
  t.equal(created.status, 201)
  t.ok(lines.some((line) => line.includes('sign_in_role_unknown')))
})

t.test('changed groups change the roles at the next sign-in, and only those', async (t) => {
  const first = await signIn(ada)
  const id = principalIn(await first.browser.who(), 'default')
  await s.ok('assignment.create', { principal_id: id, role_name: 'Operator' })
  const second = await signIn({ ...ada, name: 'Ada L.', groups: ['sales', 'unknown'] })
  const who = await second.browser.who()
  t.same(await rolesOf(id, 'default'), ['role_operator'], 'the role of an administrator stays')
  t.same(await rolesOf(principalIn(who, 'shop'), 'shop'), ['role_operator'])
  t.equal(principalIn(who, 'default'), id, 'the same person is the same user')
  const before = await first.browser.send('POST', '/v1/projects/default/users', { name: 'No' })
  t.equal(before.status, 403, 'an earlier session loses the role as well')
  const everywhere = await signIn({ ...ada, groups: ['everywhere'] })
  t.same(await rolesOf(principalIn(await everywhere.browser.who(), 'shop'), 'shop'), [
    'role_viewer',
  ])
  const list = await everywhere.browser.send('GET', '/v1/auth/console/sessions')
  t.equal(memberOf(list.body, 'items', 'length'), 4, 'a person lists the sessions of all devices')
})

t.test('groups without a role do not displace those with a role', async (t) => {
  const others = Array.from({ length: 1500 }, (_, index) => `group-${index}`)
  const { browser } = await signIn({ ...ada, groups: [...others, 'sales'] })
  t.same(await rolesOf(principalIn(await browser.who(), 'shop'), 'shop'), ['role_operator'])
})

t.test('a person without access, or of another domain, gets an error', async (t) => {
  const error = async (person: Somebody | undefined) => (await signIn(person)).location
  t.equal(await error({ ...ada, sub: 'bob', groups: [] }), '/sign-in?error=no_access')
  t.equal(await error({ ...ada, email: 'ada@evil.example' }), '/sign-in?error=wrong_domain')
  t.equal(await error({ ...ada, email_verified: false }), '/sign-in?error=wrong_domain')
  t.equal(await error(undefined), '/sign-in?error=denied')
  const users = (await s.ok('user.list', { include_disabled: true, limit: 100 }))['items']
  t.equal(
    (users as unknown as { name: string }[]).filter(({ name }) => /^Ada/.test(name)).length,
    1,
  )
})

t.test('a disabled user stays disabled; another project is still open', async (t) => {
  const person = { ...ada, sub: 'cy', name: 'Cy', email: 'cy@acme.example' }
  const { browser } = await signIn(person)
  const id = principalIn(await browser.who(), 'default')
  await s.ok('user.update', { id, state: 'disabled' })
  t.equal((await browser.send('GET', '/v1/projects/default/runs')).status, 403)
  const again = await signIn(person)
  t.match((await again.browser.who()).body['projects'], [{ handle: 'shop' }])
  await s.ok('user.update', {
    project: 'shop',
    id: principalIn(await again.browser.who(), 'shop'),
    state: 'disabled',
  })
  t.equal((await again.browser.who()).body['signed_in'], false)
  t.equal((await signIn(person)).location, '/sign-in?error=no_access')
})

t.test('a user with the verified address becomes the user of the person', async (t) => {
  const user = await s.ok('user.create', {
    project: 'shop',
    name: 'Dee',
    email: 'Dee@acme.example',
    role_ids: ['role_owner'],
  })
  const dee = { ...ada, sub: 'dee', name: 'Dee', email: 'dee@acme.example', groups: ['sales'] }
  const { browser } = await signIn(dee)
  t.equal(principalIn(await browser.who(), 'shop'), user['id'])
  t.same((await rolesOf(user['id'], 'shop')).sort(), ['role_operator', 'role_owner'])
  const other = await signIn({ ...dee, sub: 'dee-2' })
  t.not(principalIn(await other.browser.who(), 'shop'), user['id'], 'an identity does not move')
})

t.test('a token of a session does not outlive it', async (t) => {
  const { browser } = await signIn(ada)
  const make = (body: object) => browser.send('POST', '/v1/projects/default/me/tokens', body)
  t.equal((await make({ name: 'forever' })).status, 400)
  const expires_at = memberOf((await browser.who()).body, 'session', 'expires_at')
  t.equal((await make({ name: 'a week', expires_at })).status, 201)
})

t.test('only the browser that began a sign-in can finish it, once', async (t) => {
  const expired = '/sign-in?error=expired'
  const { callback, cookie } = await signIn(ada)
  t.equal((await finish(callback, '')).location, expired, 'another browser')
  t.equal((await finish(callback, cookie)).location, '/sign-in?error=invalid', 'a used code')
  const { cookie: fresh, url } = await begin()
  t.equal((await finish(callback, fresh)).location, expired, 'the state of another sign-in')
  const mine = await provider.authorize(url)
  const [name = '', sealed = ''] = fresh.split('=')
  t.equal(
    (await finish(mine, `${name}=${sealed.slice(0, -2)}AA`)).location,
    expired,
    'a forged cookie',
  )
  t.equal(
    (await finish(mine.replace(/code=[^&]+/, 'code=other'), fresh)).location,
    '/sign-in?error=invalid',
  )
  t.equal((await finish(CALLBACK, fresh)).location, expired)
})

t.test('a failed sign-in keeps the page to which the next one returns', async (t) => {
  const back = '/p/shop/runs?status=failed&q=a%20b'
  const { location } = await signIn(undefined, back)
  const page = new URL(location ?? '', s.url)
  t.equal(page.pathname, '/sign-in')
  t.strictSame(
    [...page.searchParams],
    [
      ['error', 'denied'],
      ['return', back],
    ],
  )
  t.equal((await signIn(ada, page.searchParams.get('return') ?? '')).location, back)
})

t.test('a token for another client, or for another sign-in, is refused', async (t) => {
  for (const forged of [{ audience: 'another client' }, { nonce: 'another nonce' }]) {
    provider.forged = forged
    t.equal((await signIn(ada)).location, '/sign-in?error=invalid', JSON.stringify(forged))
  }
  provider.forged = undefined
})

t.test('a browser is sent back only to a path of the service', async (t) => {
  for (const back of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    '/a\r\nSet-Cookie: x=1',
    '/..//evil.example',
    `/${'a'.repeat(2000)}`,
    '',
  ])
    t.equal((await signIn(ada, back)).location, '/', JSON.stringify(back))
})

t.test('logs contain no code, token or secret', async (t) => {
  const { callback, cookie } = await signIn(ada)
  await finish(callback, cookie)
  const code = new URL(callback).searchParams.get('code') ?? ''
  t.ok(code.length > 20)
  const log = lines.join('\n')
  t.match(log, /"event":"sign_in_failed"/)
  for (const secret of [code, SECRET.replaceAll(' ', '-'), cookie.split('=')[1] ?? '', 'eyJ'])
    t.notOk(log.includes(secret))
})

t.test('two simultaneous first sign-ins of a person yield one user', async (t) => {
  provider.person = { ...ada, sub: 'bea-1', name: 'Bea', email: 'bea@acme.example' }
  const begun = [await begin(), await begin(), await begin()]
  const callbacks = await Promise.all(begun.map(({ url }) => provider.authorize(url)))
  const ends = await Promise.all(callbacks.map((url, i) => finish(url, begun[i]?.cookie ?? '')))
  t.strictSame(
    ends.map(({ location }) => location),
    ['/', '/', '/'],
  )
  const who = await Promise.all(ends.map(({ browser }) => browser.who()))
  for (const project of ['default', 'shop'])
    t.equal(new Set(who.map((one) => principalIn(one, project))).size, 1)
})

t.test('a project with too many people does not block the sign-in to others', async (t) => {
  for (let n = 0; n < 20; n++) await s.call('user.create', { project: 'shop', name: `User ${n}` })
  const cleo: Somebody = { ...ada, sub: 'cleo-1', name: 'Cleo', email: 'cleo@acme.example' }
  const { browser, location } = await signIn(cleo)
  t.equal(location, '/')
  const who = await browser.who()
  t.ok(principalIn(who, 'default'))
  t.equal(principalIn(who, 'shop'), undefined)
  t.ok(lines.some((line) => line.includes('sign_in_user_refused')))
  const dan: Somebody = { ...cleo, sub: 'dan-1', email: 'dan@acme.example', groups: ['sales'] }
  t.equal((await signIn(dan)).location, '/sign-in?error=error', 'no project accepts the person')
})

t.test('a new signing key of the provider is accepted at once', async (t) => {
  t.equal((await signIn(ada)).location, '/')
  await provider.stop()
  const { port: same } = new URL(provider.issuer)
  provider = await openIdProvider(SECRET.replaceAll(' ', '-'), [CALLBACK], Number(same))
  t.equal((await signIn(ada)).location, '/')
})

t.test('a provider that is down is reported on the sign-in page', async (t) => {
  const { url, cookie } = await begin()
  const callback = await provider.authorize(url)
  await provider.stop()
  t.equal((await finish(callback, cookie)).location, '/sign-in?error=unavailable')
  const later = await service({
    BATON_OIDC_ISSUER: provider.issuer,
    BATON_OIDC_CLIENT_ID: 'baton',
    BATON_OIDC_ROLES: '{"*":{"*":"Viewer"}}',
  })
  t.teardown(() => later.stop())
  const start = await later.raw('GET', '/auth/oidc/start', { key: null })
  t.equal(start.headers.get('location'), '/sign-in?error=unavailable')
})
