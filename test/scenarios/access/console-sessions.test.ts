/**
 * Console sessions over real HTTP on two gateways: the flags of the cookie, the rules for
 * cross-site requests, and the rights in each project. The end of a session takes effect on both
 * gateways immediately.
 */
import { request } from 'node:http'
import t from 'tap'
import WebSocket from 'ws'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { memberOf, until } from '../support/given.ts'
import { Browser } from './console-session.ts'

const s = await service({ BATON_NODE_ID: 'one' })
t.teardown(() => s.stop())
const other = await s.add({ BATON_NODE_ID: 'two', BATON_ROLES: 'gateway' })
const B = other.url ?? ''
const SESSIONS = '/v1/auth/console/sessions'
const LINKS = '/v1/auth/console/sign-in-links'

const person = async (name: string, role = 'Editor', project = 'default') => {
  const user = await s.ok('user.create', {
    project,
    name,
    role_ids: [`role_${role.toLowerCase()}`],
  })
  const token = await s.ok('token.create', { project, id: user['id'], name: 'laptop' })
  return { id: String(user['id']), token: String(token['id']), key: String(token['key']) }
}
const signedIn = async (credential: string) => {
  const browser = new Browser(s)
  const answer = await browser.signIn({ credential })
  t.equal(answer.status, 201, answer.text)
  return browser
}
const open = (browser: Browser) => browser.send('GET', '/v1/projects/default/runs')
/**
 * Follows the events of the project with a session. `ended` resolves when the stream has ended, and
 * `over` returns whether it has ended.
 */
const follow = async (browser: Browser) => {
  const answer = await fetch(`${browser.url}/v1/projects/default/events`, {
    headers: { accept: 'text/event-stream', cookie: browser.cookie ?? '' },
  })
  t.equal(answer.status, 200)
  let isOver = false
  const reading = (async () => {
    for await (const _ of answer.body ?? []);
  })().then(
    () => (isOver = true),
    () => (isOver = true),
  )
  return { over: () => isOver, ended: reading }
}

t.test('a token signs in: the cookie has its flags, and only its hash is stored', async (t) => {
  const ann = await person('Ann')
  const browser = new Browser(s)
  const nobody = await browser.who()
  t.match(nobody.body, { signed_in: false, ways: { available: true, credential: true } })
  t.notOk('oidc' in Object(nobody.body['ways']))
  const answer = await browser.signIn({ credential: ann.key })
  t.equal(answer.status, 201)
  const [cookie = ''] = answer.headers.getSetCookie()
  const { port } = new URL(s.url)
  t.match(cookie, new RegExp(`^service_session_${port}=[\\w-]{60,}; Path=/; Max-Age=60\\d{4}; `))
  t.match(cookie, /HttpOnly; SameSite=Lax$/)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  const who = await browser.who()
  t.match(who.body, {
    signed_in: true,
    display_name: 'Ann',
    session: { method: 'credential', current: true },
    projects: [{ handle: 'default', principal: { id: ann.id, kind: 'user' }, permissions: Array }],
  })
  t.notOk('organization' in who.body)
  t.equal((await open(browser)).status, 200)
  t.equal((await open(browser.at(B))).status, 200, 'another gateway accepts the session')
  const me = await browser.send('GET', '/v1/projects/default/me')
  t.match(me.body, { principal: { id: ann.id }, credential: { type: 'cli_token', id: ann.token } })
  const made = await browser.send('POST', '/v1/projects/default/me/tokens', {
    name: 'from browser',
  })
  t.equal(made.status, 201, 'a session has the rights of its token')
})

t.test('requests of other sites do not use the cookie', async (t) => {
  const browser = await signedIn((await person('Bob')).key)
  const run = { spec: { steps: [{ kind: 'action', config: { action_name: 'a.b' } }] } }
  const post = (headers: Record<string, string>) =>
    browser.send('POST', '/v1/projects/default/runs', run, headers)
  t.equal((await post({})).status, 202)
  for (const origin of [
    'https://evil.example',
    'null',
    `${s.url}0`,
    s.url.replace('http', 'https'),
  ]) {
    const refused = await post({ origin })
    t.equal(refused.status, 403, origin)
    t.match(refused.body, { error: { code: 'forbidden', details: { expected_origin: s.url } } })
  }
  const without = await fetch(`${s.url}/v1/projects/default/runs`, {
    method: 'POST',
    headers: { cookie: browser.cookie ?? '', 'content-type': 'application/json' },
    body: JSON.stringify(run),
  })
  t.equal(without.status, 403, 'a change without an origin')
  const get = (headers: Record<string, string>) =>
    browser.send('GET', '/v1/projects/default/runs', undefined, headers)
  t.equal((await get({ 'sec-fetch-site': 'cross-site' })).status, 401)
  t.equal((await get({ origin: 'https://evil.example' })).status, 401)
  t.equal((await get({ authorization: 'Bearer bat_wrong' })).status, 401, 'a header comes first')
  t.equal((await get({})).headers.get('access-control-allow-credentials'), null)
  const login = await new Browser(s).send(
    'POST',
    SESSIONS,
    { credential: s.key },
    {
      origin: 'https://evil.example',
    },
  )
  t.equal(login.status, 403, 'another site cannot sign a browser in')
  const form = await new Browser(s).send(
    'POST',
    SESSIONS,
    { credential: s.key },
    {
      'content-type': 'text/plain',
    },
  )
  t.equal(form.status, 415)
  t.equal(
    (
      await browser.send('DELETE', '/v1/auth/console/session', undefined, {
        origin: 'https://evil.example',
      })
    ).status,
    403,
  )
  t.equal((await open(browser)).status, 200, 'and is still signed in')
})

t.test('a cookie is used only at an origin of the service', async (t) => {
  const { hostname, port } = new URL(s.url)
  const elsewhere = await new Promise<number>((answered, failed) => {
    const headers = { host: 'baton.example.org', 'content-type': 'application/json' }
    request({ hostname, port, method: 'POST', path: SESSIONS, headers }, (answer) =>
      answered(answer.resume().statusCode ?? 0),
    )
      .on('error', failed)
      .end(JSON.stringify({ credential: s.key }))
  })
  t.equal(elsewhere, 403, 'plain http elsewhere than on loopback')
  const secure = await s.add({
    BATON_NODE_ID: 'three',
    BATON_ROLES: 'gateway',
    BATON_PUBLIC_URL: 'https://baton.example.org',
  })
  const own = new Browser(s, secure.url)
  const origin = 'https://baton.example.org'
  const answer = await own.send('POST', SESSIONS, { credential: s.key }, { origin })
  t.equal(answer.status, 201)
  t.match(answer.headers.getSetCookie(), [
    /^__Host-service_session=[\w-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
  ])
  t.match((await own.who()).body, { signed_in: true, organization: { role: 'Owner' } })
  const link = await own.send('POST', LINKS, undefined, { origin })
  t.match(link.body, { url: /^https:\/\/baton\.example\.org\/sign-in#code=[\w-]{32}$/ })
})

t.test('an ended session ends everywhere at once, with its streams', async (t) => {
  const ann = await person('Cleo')
  const ends: Record<string, (browser: Browser) => Promise<unknown>> = {
    'sign-out': (browser) => browser.send('DELETE', '/v1/auth/console/session'),
    revocation: async (browser) => {
      const own = memberOf((await browser.who()).body, 'session', 'id')
      const list = await s.ok('console_session.list', {}, { key: ann.key })
      t.ok((list['items'] as unknown as { id: string }[]).some(({ id }) => id === own))
      await s.ok('console_session.revoke', { id: own }, { key: ann.key })
    },
    'revocation of all': () => s.ok('console_session.revoke_all', {}, { key: ann.key }),
    'a disabled user': () => s.ok('user.update', { id: ann.id, state: 'disabled' }),
  }
  for (const [what, end] of Object.entries(ends)) {
    const browser = await signedIn(ann.key)
    const elsewhere = browser.at(B)
    const stream = await follow(elsewhere)
    t.equal((await open(elsewhere)).status, 200)
    await end(browser)
    t.equal((await open(elsewhere)).status, 401, what)
    await stream.ended
    t.equal((await elsewhere.who()).body['signed_in'], false, what)
  }
  await s.ok('user.update', { id: ann.id, state: 'active' })
  const browser = await signedIn(ann.key)
  await s.ok('token.revoke', { id: ann.id, token: ann.token })
  t.equal((await open(browser.at(B))).status, 401, 'a session ends with its token')
})

t.test('sessions of other people are not visible', async (t) => {
  const [ann, bob] = [await person('Dora'), await person('Emil')]
  const browser = await signedIn(ann.key)
  const id = memberOf((await browser.who()).body, 'session', 'id')
  t.same((await s.ok('console_session.list', {}, { key: bob.key }))['items'], [])
  await s.refused('console_session.revoke', { id }, 404, 'not_found', { key: bob.key })
  await s.ok('console_session.revoke_all', {}, { key: bob.key })
  const { body } = await browser.send('GET', SESSIONS)
  t.match(body['items'], [{ id, current: true, address: '127.0.0.1' }])
})

t.test('a session acts in each project as the principal that it has there', async (t) => {
  const shop = String((await s.ok('project.create', { name: 'Shop', handle: 'shop' }))['id'])
  const here = await person('Fay', 'Viewer')
  const there = await person('Fay', 'Admin', 'shop')
  const browser = await signedIn(here.key)
  t.equal((await browser.send('GET', '/v1/projects/shop/runs')).status, 403)
  const before = browser.cookie
  t.equal((await browser.signIn({ credential: there.key })).status, 201)
  t.not(browser.cookie, before, 'the cookie changes with the rights')
  t.equal((await open(new Browser(s, s.url, before))).status, 401)
  const who = await browser.who()
  t.match(who.body, {
    projects: [
      { handle: 'default', principal: { id: here.id } },
      { id: shop, principal: { id: there.id } },
    ],
  })
  const me = async (project: string) =>
    memberOf((await browser.send('GET', `/v1/projects/${project}/me`)).body, 'principal', 'id')
  t.equal(await me('default'), here.id)
  t.equal(await me('shop'), there.id)
  t.equal(await me(shop), there.id)
  const run = await s.ok('run.start', {
    project: 'shop',
    spec: { steps: [{ kind: 'action', config: { action_name: 'a.b' } }] },
  })
  t.equal(
    (await browser.send('GET', `/v1/runs/${run['id']}/steps`)).status,
    200,
    'a run without a project',
  )
  const tokens = (headers: Record<string, string>) =>
    browser.send('GET', '/v1/auth/cli-credentials', undefined, headers)
  t.match((await tokens({})).body, { items: [{ id: here.token }] })
  t.match((await tokens({ 'x-project': 'shop' })).body, { items: [{ id: there.token }] })
  await s.ok('token.revoke', { project: 'shop', id: there.id, token: there.token })
  t.equal((await browser.send('GET', '/v1/projects/shop/runs')).status, 403)
  t.equal((await open(browser)).status, 200, 'the other token is still valid')
})

t.test('an organization key sees all projects, and a link signs in as it, once', async (t) => {
  await s.refused('sign_in_link.create', {}, 403, 'permission_denied', {
    key: (await person('Gil', 'Admin')).key,
  })
  const { url } = await s.ok('sign_in_link.create')
  const code = String(url).split('#code=')[1] ?? ''
  const browser = new Browser(s)
  t.equal((await browser.signIn({ code })).status, 201)
  t.match((await browser.who()).body, {
    signed_in: true,
    session: { method: 'link' },
    organization: { role: 'Owner', permissions: Array },
  })
  const handles = (await browser.who()).body['projects'] as unknown as { handle: string }[]
  t.ok(handles.some(({ handle }) => handle === 'shop'))
  const again = await new Browser(s).signIn({ code })
  t.equal(again.status, 401)
  t.match(again.body, { error: { message: /expired or was already used/ } })
  const key = await s.ok('key.create_organization', { name: 'ops', role: 'Admin' })
  const ops = await signedIn(String(key['key']))
  t.equal((await ops.send('GET', '/v1/api-keys')).status, 200)
  t.equal((await ops.send('POST', '/v1/api-keys', { name: 'more', role: 'Owner' })).status, 403)
  await s.ok('key.revoke_organization', { id: key['id'] })
  t.equal((await ops.at(B).send('GET', '/v1/api-keys')).status, 401)
})

t.test('the first start and the command line create links', async (t) => {
  const run = commandRunner(s, s.data)
  const { out, code } = await run(['sign-in-link'])
  t.equal(code, 0)
  t.match(out, new RegExp(`^${s.url}/sign-in#code=[\\w-]{32}$`))
  const browser = new Browser(s)
  t.equal((await browser.signIn({ code: out.split('=')[1] ?? '' })).status, 201)
  t.equal(await s.nodes[0]?.signInLink?.(), undefined, 'somebody has signed in before')
  const fresh = await service()
  t.teardown(() => fresh.stop())
  const link = String(await fresh.nodes[0]?.signInLink?.())
  t.match(link, new RegExp(`^${fresh.url}/sign-in#code=`))
  const first = new Browser(fresh)
  t.equal((await first.signIn({ code: link.split('=')[1] ?? '' })).status, 201)
  t.match((await first.who()).body, { organization: { role: 'Owner' } })
  t.equal(await fresh.nodes[0]?.signInLink?.(), undefined)
})

t.test('invalid sign-ins are refused', async (t) => {
  const browser = new Browser(s)
  const status = async (body: unknown) => (await browser.send('POST', SESSIONS, body)).status
  t.equal(await status({}), 400)
  t.equal(await status({ credential: s.key, code: 'x' }), 400)
  t.equal(await status({ credential: 'bat_unknown' }), 401)
  t.equal(await status({ credential: 'has spaces in it' }), 401)
  t.equal(await status({ code: 'unknown' }), 401)
  t.equal(await status({ credential: s.key, more: 1 }), 400)
  t.equal(await status([]), 400)
  t.equal(await status({ credential: 'x'.repeat(5000) }), 413)
  t.equal(browser.cookie, undefined)
  const { port } = new URL(s.url)
  for (const value of ['', 'x', 'a'.repeat(3000), '%00', '"quoted"']) {
    const invented = new Browser(s, s.url, `service_session_${port}=${value}`)
    t.equal((await open(invented)).status, 401)
    t.equal((await invented.who()).body['signed_in'], false)
  }
})

t.test('sockets of workers never use the cookie, those of terminals need the origin', async (t) => {
  const browser = await signedIn(s.key)
  const socket = (path: string, headers: Record<string, string>) =>
    new Promise<number>((answered) => {
      const ws = new WebSocket(`${s.url.replace('http', 'ws')}/v1/projects/default/${path}`, {
        headers: { cookie: browser.cookie ?? '', ...headers },
      })
      ws.on('unexpected-response', (_, { statusCode }) => answered(statusCode ?? 0))
      ws.on('error', () => {})
      ws.on('open', () => answered(101))
    })
  t.equal(await socket('workers/socket', { origin: s.url }), 401)
  const terminal = 'environments/env_01ARZ3NDEKTSV4RRFFQ69G5FAV/terminal'
  t.equal(await socket(terminal, { origin: s.url }), 404, 'authenticated; no such environment')
  t.equal(await socket(terminal, { origin: 'https://evil.example' }), 403)
  t.equal(await socket(terminal, {}), 403)
})

t.test('sign-ins are in the audit log', async (t) => {
  const kinds = async () => {
    const { items } = await s.ok('audit.list', { resource_type: ['console_session'], limit: 100 })
    return (items as unknown as { action: string }[]).map(({ action }) => action)
  }
  await until(kinds, (all) => all.includes('create') && all.includes('delete'))
  t.pass('a sign-in and a sign-out')
})

t.test('a session of a key is capped by the scope role of the key', async (t) => {
  const principal_id = (
    await s.ok('principal.create', { name: 'approver', role_ids: ['role_operator'] })
  )['id']
  const key = async (name: string, more: object = {}) =>
    String((await s.ok('key.create', { name, principal_id, ...more }))['key'])
  const capped = await key('reader', { scope_role_id: 'role_viewer' })
  const asked = await s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Deploy?',
    target_user_ids: [principal_id],
  })
  const answer = async (credential: string) => {
    const browser = await signedIn(credential)
    const path = `/v1/projects/default/interactions/${asked['id']}/respond`
    return (await browser.send('POST', path, { value: true })).status
  }
  await s.refused(
    'interaction.respond',
    { id: asked['id'], value: true },
    403,
    'permission_denied',
    {
      key: capped,
    },
  )
  t.equal(await answer(capped), 403, 'the session answers no more than the key')
  t.equal(await answer(await key('whole')), 200)
})
