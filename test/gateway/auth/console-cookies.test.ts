/** The rules under which a request may use the cookies of the console. */

import { createHash, createHmac, randomBytes } from 'node:crypto'
import t from 'tap'
import {
  cookieIn,
  cookieName,
  newSessionCookie,
  ownOrigin,
  sessionCookieOf,
  setCookie,
} from '../../../gateway/auth/console/cookies.ts'
import { returnPath } from '../../../gateway/auth/console/oidc.ts'
import { rolesByProject } from '../../../gateway/auth/console/people.ts'
import { isRefusal } from '../../../protocol/errors.ts'

const times = { idle: 1, lifetime: 1 }
const at = (origin?: string) => ({
  brand: 'Acme',
  ...(origin !== undefined && { console: { origin, ...times } }),
})
const world = (origin?: string) => ({
  settings: at(origin) as never,
  random: (bytes: number) => randomBytes(bytes),
  hash: (text: string) => createHash('sha256').update(text).digest('hex'),
  seal: (text: string) => createHmac('sha256', 'secret').update(text).digest(),
})

t.test('the own origin is the configured one, or a loopback name', async (t) => {
  const of = (origin: string | undefined, host?: string) => ownOrigin(at(origin), host)
  t.equal(of('https://baton.example.org', 'other:1'), 'https://baton.example.org')
  t.equal(of('http://baton.example.org'), undefined, 'plain http elsewhere')
  t.equal(of('http://localhost:8080'), 'http://localhost:8080')
  for (const host of ['localhost', 'LOCALHOST:80', '127.0.0.1:8080', '127.1.2.3', '[::1]:9'])
    t.equal(of(undefined, host), new URL(`http://${host}`).origin, host)
  for (const host of [
    undefined,
    '',
    'baton.example.org',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'localhost:8080@evil.example',
    'localhost/evil',
    '10.0.0.1',
    'localhost:',
  ])
    t.equal(of(undefined, host), undefined, String(host))
})

t.test('cookies have the prefix and flags of their scheme', async (t) => {
  const set = (origin: string) => setCookie(at(origin), origin, 'session', 'v', 9.9)['Set-Cookie']
  t.equal(
    set('https://a.example'),
    '__Host-acme_session=v; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure',
  )
  t.equal(
    set('http://localhost:8080'),
    'acme_session_8080=v; Path=/; Max-Age=9; HttpOnly; SameSite=Lax',
  )
  t.equal(cookieName(at(), 'http://localhost', 'sign_in'), 'acme_sign_in_80')
  t.equal(cookieIn('a=1; b=2=3 ;c', 'b'), '2=3')
  t.equal(cookieIn('ab=1; b', 'b'), undefined)
  t.equal(cookieIn(`x=${'y'.repeat(20_000)}; b=1`, 'b'), undefined)
})

t.test('a cookie is used only with the right origin', async (t) => {
  const home = 'https://a.example'
  const w = world(home)
  const { value, hash } = newSessionCookie(w)
  const ask = (method: string, headers: Record<string, string>, upgrade = false) => {
    const all: Record<string, string> = { cookie: `__Host-acme_session=${value}`, ...headers }
    const result = sessionCookieOf(w, { method, header: (name) => all[name] }, upgrade)
    return isRefusal(result) ? result.refused : result
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'BREW']) {
    t.equal(ask(method, { origin: home }), hash)
    t.equal(ask(method, {}), 'forbidden')
    t.equal(ask(method, { origin: 'null' }), 'forbidden')
    t.equal(ask(method, { origin: 'https://a.example.evil' }), 'forbidden')
  }
  t.equal(ask('GET', {}), hash)
  t.equal(ask('GET', { 'sec-fetch-site': 'same-origin' }), hash)
  t.equal(ask('GET', { 'sec-fetch-site': 'Cross-Site' }), undefined)
  t.equal(ask('GET', { origin: 'https://evil.example' }), undefined)
  t.equal(ask('GET', {}, true), 'forbidden', 'a WebSocket needs the origin')
  t.equal(ask('GET', { origin: home }, true), hash)
  t.equal(ask('GET', { cookie: `acme_session_443=${value}` }), undefined, 'the name without prefix')
  t.equal(ask('GET', { cookie: `__Host-acme_session=${value}x` }), undefined, 'a changed cookie')
})

t.test('a return path stays at the origin', async (t) => {
  const origin = 'https://a.example'
  t.equal(returnPath('/x/../y?z=1#top', origin), '/y?z=1#top')
  for (const bad of [null, '', 'x', '//b', '/\\b', '/ b', '/\u0000', 'https://a.example/', '/.//b'])
    t.equal(returnPath(bad, origin), '/', String(bad))
})

t.test('groups grant roles by handle, by id and in all projects', async (t) => {
  const project = (id: string, handle: string, deleted?: true) => ({
    id,
    handle,
    name: handle,
    ...(deleted && { deleted }),
  })
  const projects = {
    p1: project('p1', 'one'),
    p2: project('p2', 'two'),
    p3: project('p3', 'gone', true),
  } as never
  const mapping = {
    a: { one: ['Admin'], gone: ['Admin'] },
    b: { p2: ['Editor'], none: ['Owner'] },
    '*': { '*': ['Viewer'] },
  }
  const of = (...groups: string[]) =>
    Object.fromEntries(rolesByProject(mapping, groups, { projects }))
  t.same(of(), { p1: ['Viewer'], p2: ['Viewer'] })
  t.same(of('a', 'b', 'toString', '__proto__'), {
    p1: ['Viewer', 'Admin'],
    p2: ['Viewer', 'Editor'],
  })
})
