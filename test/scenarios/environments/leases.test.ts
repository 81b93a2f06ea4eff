/** Leases of environments over HTTP, without hosts. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, sleeping } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const create = () => s.ok('environment.create', {})

t.test('a lease gives one holder exclusive use until it ends', async (t) => {
  const { id: environment_id } = await create()
  const holder = { kind: 'agent', id: 'agt_1' }
  const acquire = (input: object = {}) => s.ok('environment.acquire', { environment_id, ...input })
  const taken = (await acquire({ holder, ttl_seconds: 60 })) as Record<
    string,
    Record<string, string>
  >
  t.match(taken, {
    environment: { id: environment_id, lease: { holder } },
    lease: { id: /^elease_/, token: String, holder },
  })
  const { id: lease_id, token: lease_token, acquired_at, expires_at } = taken['lease'] ?? {}
  t.equal(Date.parse(String(expires_at)) - Date.parse(String(acquired_at)), 60_000)
  const { lease } = await s.ok('environment.get', { environment_id })
  t.strictSame(lease, { id: lease_id, holder, acquired_at, expires_at }, 'the token is not shown')
  t.match(await s.refused('environment.acquire', { environment_id }, 409, 'environment_leased'), {
    details: { holder, expires_at },
  })
  const renewed = await acquire({ lease_token, ttl_seconds: 120 })
  t.match(renewed, { lease: { id: lease_id, token: lease_token, holder, acquired_at } })
  for (const wrong of ['x', String(lease_id), `${lease_token}x`]) {
    const input = { environment_id, lease_token: wrong }
    for (const name of ['environment.acquire', 'environment.release'] as const)
      t.strictSame(fieldsOf(await s.refused(name, input, 400, 'bad_request')), ['lease_token'])
  }
  const other = await create()
  await s.refused(
    'environment.release',
    { environment_id: other['id'], lease_token },
    400,
    'bad_request',
  )
  const free = await s.ok('environment.release', { environment_id, lease_token })
  t.notOk('lease' in free)
  t.strictSame(await s.ok('environment.release', { environment_id, lease_token }), free)
  await s.refused('environment.acquire', { environment_id, lease_token }, 409, 'lease_lost')
  const next = (await acquire()) as Record<string, Record<string, unknown>>
  t.match(next['lease']?.['holder'], { kind: 'principal' })
  await s.ok('environment.release', { environment_id, lease_token })
  t.ok(
    'lease' in (await s.ok('environment.get', { environment_id })),
    'a former lease does not end its successor',
  )
})

t.test('an acquisition under an idempotency key grants one lease', async (t) => {
  const { id: environment_id } = await create()
  const headers = { 'idempotency-key': 'lease once' }
  const [first, again] = [
    await s.call('environment.acquire', { environment_id }, { headers }),
    await s.call('environment.acquire', { environment_id }, { headers }),
  ]
  t.strictSame([again.status, again.body], [first.status, first.body])
})

t.test('the matching environment is leased, or created', async (t) => {
  type Leased = Record<string, Record<string, string>>
  const match = (input: object) =>
    s.ok('environment.acquire_matching', { ...input }) as unknown as Promise<Leased>
  const release = ({ environment, lease }: Leased) =>
    s.ok('environment.release', {
      environment_id: environment?.['id'],
      lease_token: lease?.['token'],
    })
  const first = await match({ name: 'matched', tags: { a: 'b' } })
  t.match(first, { environment: { name: 'matched', status: 'provisioning', tags: { a: 'b' } } })
  await s.refused('environment.acquire_matching', { name: 'matched' }, 409, 'environment_leased')
  await release(first)
  const second = await match({ name: 'matched' })
  t.equal(second['environment']?.['id'], first['environment']?.['id'])
  const renewed = await match({ name: 'matched', lease_token: second['lease']?.['token'] })
  t.equal(renewed['lease']?.['id'], second['lease']?.['id'])
  const run = await s.ok('run.start', { spec: sleeping() })
  const bound = { mode: 'run', run_id: run['id'] }
  const mine = await match(bound)
  t.match(mine, { environment: bound })
  await release(mine)
  t.equal((await match(bound))['environment']?.['id'], mine['environment']?.['id'])
  await s.refused('environment.acquire_matching', { mode: 'run' }, 400, 'bad_request')
  const headers = { 'idempotency-key': 'match once' }
  const call = () => s.call('environment.acquire_matching', { name: 'twice' }, { headers })
  const [one, two] = [await call(), await call()]
  t.strictSame([one.status, two.status], [200, 200])
  t.strictSame(two.body, one.body)
})
