/**
 * Secrets in blueprints: tokens in addresses, and the signing secrets of triggers. They are stored
 * and used, but no answer, plan, export or entry of the audit log contains them.
 */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { receiver } from '../support/servers/receiver.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.teardown(async () => {
  await there.close()
  await s.stop()
})

const identity = { blueprint_key: 'secrets' }
const [ONE, TWO] = ['geheim-eins-4711', 'geheim-zwei-4712']
const resourcesWith = (secret: string) => ({
  actions: [{ key: 'a', name: 'crm.find', endpoint: `${there.url}/act?token=${secret}&v=2` }],
  webhooks: [{ key: 'w', name: 'hook', url: `${there.url}/hook?token=${secret}` }],
  loops: [
    {
      key: 'l',
      name: 'Signed',
      triggers: [{ kind: 'http', key: 'in', config: { http_handle: 'signed' } }],
      settings: { http_triggers: { in: { signing_secret: secret } }, theme: 'dark' },
      steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
      status: 'active',
    },
  ],
})
const everything = { include: ['plan', 'drift', 'orphans', 'further_types'] }
/** All collected responses, which must not contain a secret. */
const seen: unknown[] = []
const keep = <T>(answer: T): T => {
  seen.push(answer)
  return answer
}
const apply = async (secret: string, more: object = {}) =>
  keep(
    await s.ok('blueprint.apply', {
      ...identity,
      resources: resourcesWith(secret),
      ...everything,
      ...more,
    }),
  )
const outcomes = (result: object) => listOf(result, 'changes').map(({ action }) => String(action))

/** Returns the values of `token` in the requests to a path. */
const tokensAt = (path: string) =>
  there.deliveries
    .filter((one) => one.path.startsWith(path))
    .map(({ path: full }) => new URL(full, there.url).searchParams.get('token'))
async function invoke() {
  await s.ok('action.invoke', { action_name: 'crm.find', input: {} })
  return until(
    async () => tokensAt('/act'),
    (found) => found.length > 0,
  )
}
const post = (secret: string) => {
  const body = '{}'
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  return s.raw('POST', '/v1/triggers/http/signed', {
    key: null,
    body,
    headers: {
      'content-type': 'application/json',
      'X-Service-Signature': `sha256=${signature}`,
    },
  })
}

t.test('the first apply stores the secrets, and an equal apply changes nothing', async (t) => {
  await apply(ONE, { mode: 'preview' })
  t.strictSame(outcomes(await apply(ONE)), ['created', 'created', 'created'])
  t.strictSame(new Set(await invoke()), new Set([ONE]), 'the executor uses the token')
  await s.ok('event.publish', { event_type: 'some.event', event: {} })
  const [first] = await until(
    async () => tokensAt('/hook'),
    (found) => found.length > 0,
  )
  t.equal(first, ONE, 'deliveries use the token')
  const accepted = await until(
    () => post(ONE),
    ({ status }) => status !== 404,
  )
  t.equal(accepted.status, 202)
  t.equal((await post(TWO)).status, 401)
  for (const mode of ['preview', 'apply'])
    t.strictSame(outcomes(await apply(ONE, { mode })), ['unchanged', 'unchanged', 'unchanged'])
})

t.test('a changed secret is an update, without its values', async (t) => {
  for (const mode of ['preview', 'apply']) {
    const result = await apply(TWO, { mode })
    t.strictSame(outcomes(result), ['updated', 'updated', 'updated'])
    t.strictSame(
      listOf(result, 'changes').map((change) => listOf(change, 'fields').map(({ field }) => field)),
      [['endpoint'], ['url'], ['settings']],
    )
  }
  there.deliveries.splice(0)
  t.strictSame(new Set(await invoke()), new Set([TWO]))
  t.equal((await post(ONE)).status, 401)
  t.equal((await post(TWO)).status, 202)
  t.strictSame(outcomes(await apply(TWO)), ['unchanged', 'unchanged', 'unchanged'])
})

t.test('masked values keep the secrets, as in an export', async (t) => {
  const exported = keep(await s.ok('blueprint.export', identity))
  const { resources } = exported as unknown as { resources: Record<string, object[]> }
  const plan = keep(
    await s.ok('blueprint.apply', { ...identity, resources, mode: 'preview', ...everything }),
  )
  t.strictSame(outcomes(plan), ['unchanged', 'unchanged', 'unchanged'], JSON.stringify(plan))
  const applied = keep(await s.ok('blueprint.apply', { ...identity, resources, ...everything }))
  t.strictSame(outcomes(applied), ['unchanged', 'unchanged', 'unchanged'])
  there.deliveries.splice(0)
  t.strictSame(new Set(await invoke()), new Set([TWO]))
  t.equal((await post(TWO)).status, 202)
  t.strictSame(
    listOf(keep(await s.ok('blueprint.drift', { ...identity, include: ['further_types'] }))).map(
      ({ state }) => `${state}`,
    ),
    ['unchanged', 'unchanged', 'unchanged'],
  )
})

t.test('a secret that was changed outside is repaired', async (t) => {
  const settings = { http_triggers: { in: { signing_secret: ONE } }, theme: 'dark' }
  await apply(TWO)
  const applied = await apply(TWO)
  t.strictSame(outcomes(applied), ['unchanged', 'unchanged', 'unchanged'])
  const [action, webhook, loop] = listOf(applied, 'changes').map(({ resource_id }) => resource_id)
  t.ok(action)
  await s.ok('action.update', {
    action_name: 'crm.find',
    endpoint_url: `${there.url}/act?token=${ONE}&v=2`,
  })
  await s.ok('webhook.update', { webhook_id: webhook, url: `${there.url}/hook?token=${ONE}` })
  await s.ok('loop.update', { id: loop, settings })
  t.strictSame(outcomes(await apply(TWO)), ['updated', 'updated', 'updated'])
  there.deliveries.splice(0)
  t.strictSame(new Set(await invoke()), new Set([TWO]))
  t.equal((await post(TWO)).status, 202)
  await s.ok('action.update', { action_name: 'crm.find', title: 'Find' })
  t.strictSame(outcomes(await apply(TWO)), ['unchanged', 'unchanged', 'unchanged'])
})

t.test('nothing that clients read contains a secret', async (t) => {
  keep(await s.ok('blueprint.bindings', { ...identity, include: ['further_types'] }))
  keep(await s.ok('audit.list', { limit: 200 }))
  keep(await s.ok('blueprint.export', {}))
  keep(await s.ok('blueprint.delete', { ...identity, include: ['further_types'] }))
  keep(await s.ok('audit.list', { limit: 200 }))
  t.ok(seen.length > 12)
  const text = JSON.stringify(seen)
  t.match(text, 'crm.find')
  t.notMatch(text, ONE)
  t.notMatch(text, TWO)
  t.notMatch(text, /"applied":\{|"kept":\{/, 'nor the hashes of fields')
})
