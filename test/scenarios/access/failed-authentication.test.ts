/**
 * Requests without a valid credential are limited per client address and do not use up the limits
 * of authenticated callers.
 */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'

const LIMITS = { BATON_RATE_KEY: '20', BATON_RATE_ORG: '60', BATON_RATE_WINDOW: '3600' }

t.test('invalid keys are rate limited; a valid key from the same address is not', async (t) => {
  const s = await service(LIMITS)
  t.teardown(() => s.stop())
  const statuses: number[] = []
  for (let i = 0; i < 30; i++) {
    const [method, path] = i % 2 === 0 ? ['GET', '/v1/projects'] : ['POST', '/v1/projects']
    statuses.push((await s.raw(method, path, { key: `bat_${'x'.repeat(32)}` })).status)
  }
  t.strictSame([...new Set(statuses.slice(0, 20))], [401])
  t.strictSame([...new Set(statuses.slice(20))], [429])
  const refused = await s.raw('GET', '/v1/projects', { key: null })
  t.equal(refused.status, 429)
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.equal((await s.call('project.list')).status, 200)
})

t.test('invalid signatures count against the sender, not against the trigger', async (t) => {
  const s = await service(LIMITS)
  t.teardown(() => s.stop())
  const secret = 'a secret of the sender'
  await s.ok('loop.create', {
    name: 'Signed',
    status: 'active',
    triggers: [{ key: 'in', kind: 'http', config: { http_handle: 'signed' } }],
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1ms' } }],
    settings: { http_triggers: { in: { signing_secret: secret } } },
  })
  const post = async (key: string) => {
    const body = '{"version":1}'
    const signature = `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
    const headers = { 'X-Service-Signature': signature }
    return (await s.raw('POST', '/v1/triggers/http/signed', { key: null, body, headers })).status
  }
  t.equal(
    await until(
      () => post(secret),
      (status) => status !== 404,
    ),
    202,
  )
  const statuses: number[] = []
  for (let i = 0; i < 30; i++) statuses.push(await post('another secret'))
  t.strictSame([...new Set(statuses)], [401, 429])
  t.equal(await post(secret), 202)
})

t.test('guessed device codes count against the sender', async (t) => {
  const s = await service(LIMITS)
  t.teardown(() => s.stop())
  const user = await s.ok('user.create', { name: 'Ann' })
  const { key } = await s.ok('token.create', { id: user['id'], name: 'laptop' })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const form = (path: string, fields: Record<string, string>) =>
    s.raw('POST', path, { key: null, body: new URLSearchParams(fields).toString(), headers })
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  const { device_code, user_code } = (await form('/v1/auth/device/code', {})).body as Record<
    string,
    string
  >
  const other = (await form('/v1/auth/device/code', {})).body as Record<string, string>
  const asked: number[] = []
  for (let i = 0; i < 25; i++)
    asked.push(
      (await form('/v1/auth/device/token', { grant_type, device_code: device_code ?? '' })).status,
    )
  t.strictSame([...new Set(asked)], [400, 429], 'polls with one code are limited, too')
  const shown: number[] = []
  for (let i = 0; i < 25; i++)
    shown.push((await s.raw('GET', `/device?user_code=${user_code}`, { key: null })).status)
  t.strictSame([...new Set(shown)], [200, 429])
  const attempts = [
    async () => (await s.raw('GET', '/device?user_code=BCDF-GHJK', { key: null })).status,
    async () => (await form('/device', { user_code: 'BCDF-GHJK', credential: 'x' })).status,
    async () => (await form('/v1/auth/device/token', { grant_type, device_code: 'x' })).status,
    async () =>
      (
        await s.call(
          'device.answer',
          { user_code: 'BCDF-GHJK', decision: 'allow' },
          { key: String(key) },
        )
      ).status,
  ]
  const statuses: number[] = []
  for (let i = 0; i < 18; i++) statuses.push((await attempts[i % attempts.length]?.()) ?? 0)
  t.strictSame([...new Set(statuses)], [404, 400])
  for (const attempt of attempts) t.equal(await attempt(), 429)
  t.equal((await form('/v1/auth/device/code', {})).status, 429)
  const right = { user_code: other['user_code'] ?? '', device_code: other['device_code'] ?? '' }
  const page = await s.raw('GET', `/device?user_code=${right.user_code}`, { key: null })
  t.equal(page.status, 429, 'a right guess after the limit is not recognized')
  t.notMatch(page.text, /requests access/)
  t.equal((await form('/device', { ...right, decision: 'allow', credential: 'x' })).status, 429)
  t.equal((await form('/v1/auth/device/token', { grant_type, ...right })).status, 429)
  t.equal((await s.call('me.get', {}, { key: String(key) })).status, 200)
})
