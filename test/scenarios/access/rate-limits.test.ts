/**
 * Rate limits: which requests share a limit, and that callers without a credential cannot use up
 * the limits of others.
 */
import t from 'tap'
import { service } from '../../support/service.ts'

const s = await service({ BATON_RATE_KEY: '30', BATON_RATE_ORG: '60', BATON_RATE_WINDOW: '3600' })
t.teardown(() => s.stop())

t.test('requests to unknown triggers count against their sender', async (t) => {
  const statuses: number[] = []
  for (let i = 0; i < 100; i++)
    statuses.push(
      (await s.raw('POST', `/v1/triggers/http/none-${i}`, { key: null, body: '{}' })).status,
    )
  t.strictSame([...new Set(statuses.slice(0, 30))], [404])
  t.strictSame([...new Set(statuses.slice(30))], [429])
  t.equal((await s.call('project.list')).status, 200, 'the limit of the organization is unaffected')
})

t.test('a known trigger is accepted from the same sender', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'hook',
    status: 'active',
    triggers: [{ key: 'hook', kind: 'http', config: { http_handle: 'known-hook' } }],
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1ms' } }],
  })
  t.ok(loop['id'])
  const taken = await s.raw('POST', '/v1/triggers/http/known-hook', { key: null, body: '{}' })
  t.equal(taken.status, 202)
})

t.test('all tokens of a user share one rate limit', async (t) => {
  const { id } = await s.ok('user.create', { name: 'Ada' })
  await s.ok('assignment.create', { principal_id: id, role_name: 'Viewer' })
  const keys = [
    String((await s.ok('token.create', { id, name: 'one' }))['key']),
    String((await s.ok('token.create', { id, name: 'two' }))['key']),
  ]
  const statuses: number[] = []
  for (let i = 0; i < 32; i++)
    statuses.push((await s.raw('GET', '/v1/projects', { key: keys[i % 2] ?? '' })).status)
  t.strictSame([...new Set(statuses.slice(0, 30))], [200])
  t.strictSame(statuses.slice(30), [429, 429])
})
