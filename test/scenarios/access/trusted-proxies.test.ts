/**
 * Clients behind a reverse proxy: each has a separate address for limits, audit and sessions, and
 * one client cannot block the others or choose its address.
 */
import { get } from 'node:http'
import t from 'tap'
import { service } from '../../support/service.ts'
import { open } from '../support/sockets.ts'
import { Browser } from './console-session.ts'

const s = await service({
  BATON_RATE_KEY: '20',
  BATON_RATE_ORG: '0',
  BATON_RATE_WINDOW: '3600',
  BATON_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8',
  BATON_ANONYMOUS_WORKER: 'on',
})
t.teardown(() => s.stop())
const wrong = `bat_${'x'.repeat(32)}`
const from = (address: string) => ({ 'x-forwarded-for': address })
const guess = async (address: string, url = s.url) =>
  (await s.raw('GET', '/v1/projects', { key: wrong, headers: from(address), url })).status
const guesses = async (address: (n: number) => string, url = s.url) => {
  const statuses: number[] = []
  for (let n = 0; n < 25; n++) statuses.push(await guess(address(n), url))
  return [...new Set(statuses)]
}
const signIn = (address: string, url = s.url) =>
  new Browser(s, url).send(
    'POST',
    '/v1/auth/console/sessions',
    { credential: s.key },
    from(address),
  )

t.test('a stranger does not block the sign-in of another client', async (t) => {
  t.strictSame(await guesses(() => '203.0.113.1'), [401, 429])
  t.equal((await signIn('203.0.113.1')).status, 429)
  const signedIn = await signIn('203.0.113.2')
  t.equal(signedIn.status, 201)
})

t.test('a client cannot choose its address', async (t) => {
  t.equal(await guess('203.0.113.77, 203.0.113.1'), 429)
  t.equal(await guess('garbage, 203.0.113.1, 10.0.0.9'), 429)
  const twoHeaders = await new Promise<number | undefined>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${wrong}`,
      'x-forwarded-for': ['203.0.113.78', '203.0.113.1'],
    }
    get(`${s.url}/v1/projects`, { headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    }).on('error', reject)
  })
  t.equal(twoHeaders, 429, 'the proxy added a second header')
})

t.test('upgrades and anonymous workers are counted with the address of the client', async (t) => {
  const upgrade = async (headers: Record<string, string>, path = 'workers/socket') => {
    const { status, socket } = await open(s.url, { headers, path })
    socket?.terminate()
    return status
  }
  const authorization = `Bearer ${wrong}`
  const terminal = 'environments/env_01AAAAAAAAAAAAAAAAAAAAAA0C/terminal'
  for (const path of ['workers/socket', terminal]) {
    t.equal(await upgrade({ ...from('203.0.113.1'), authorization }, path), 429, path)
    t.equal(await upgrade({ ...from('203.0.113.3'), authorization }, path), 401, path)
  }
  t.equal(await upgrade({ ...from('203.0.113.1'), authorization: `Bearer ${s.key}` }), 101)
  t.equal(await upgrade({}), 101, 'an anonymous worker on this machine')
  for (const address of ['203.0.113.4', 'unknown', '127.0.0.1'])
    t.equal(await upgrade(from(address)), 401, address)
})

t.test('audit entries contain the address of the client', async (t) => {
  const { id } = await s.ok('user.create', { name: 'Ann' }, { headers: from('203.0.113.5') })
  const { body } = await s.call('audit.list', { limit: 50 })
  const items = body['items'] as { readonly ip_address?: string; readonly resource_id?: string }[]
  t.ok(
    items.some((one) => one.ip_address === '203.0.113.5' && one.resource_id === id),
    JSON.stringify(items[0]),
  )
})

t.test('the IPv6 addresses of a /64 network share the limits', async (t) => {
  t.strictSame(await guesses((n) => `[2001:db8:0:1::${n}]:443`), [401, 429])
  t.equal((await signIn('2001:db8:0:1:ffff::1')).status, 429)
  t.equal((await signIn('2001:db8:0:2::1')).status, 201)
})

t.test('without a trusted proxy, the header is ignored', async (t) => {
  const node = await s.add({ BATON_ROLES: 'gateway', BATON_TRUSTED_PROXIES: '10.0.0.0/8' })
  t.strictSame(await guesses((n) => `203.0.113.${n}`, node.url), [401, 429])
})
