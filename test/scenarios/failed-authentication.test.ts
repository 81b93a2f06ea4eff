/** Requests without a valid credential are limited by their address, and take nothing from those that have one. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { service } from '../service.ts'
import { until } from './given.ts'

const LIMITS = { BATON_RATE_KEY: '20', BATON_RATE_ORG: '60', BATON_RATE_WINDOW: '3600' }

t.test('wrong keys are limited; a right one from the same address is not', async (t) => {
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

t.test('wrong signatures are charged to their sender, not to the trigger', async (t) => {
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
