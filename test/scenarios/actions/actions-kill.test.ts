/**
 * Kills an executor during a call: another executor repeats the call under the same delivery id,
 * and the run completes once. The service runs as real processes that trust the certificate of a
 * TLS receiver. Therefore this file also calls an organization action over TLS and rotates its
 * secret while calls continue.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { listOf, until } from '../support/given.ts'
import { persistent, portsFor, processes } from '../support/processes.ts'
import { cert, key } from '../support/servers/loopback.ts'
import { json, receiver, verified } from '../support/servers/receiver.ts'
import { hasty } from '../support/sockets.ts'

t.setTimeout(120_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-ca-'))
writeFileSync(join(folder, 'ca.pem'), cert)
const it = await processes({
  ...hasty,
  BATON_SHARDS: '2',
  BATON_OUTBOUND_ALLOW: '127.0.0.0/8',
  NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
})
const [plain, secure] = await Promise.all([
  receiver(),
  receiver((listener) => createServer({ cert, key }, listener), 'https'),
])
t.teardown(async () => {
  await Promise.all([plain.close(), secure.close(), it.stop()])
  rmSync(folder, { recursive: true, force: true })
})
const [port = 0] = await portsFor(1)
await it.node('front', 'gateway,shards,views', port)
const call = persistent(it, port)
const P = '/projects/default'
const act = (action_name: string, parameters: object = {}) => ({
  spec: { steps: [{ id: 'call', kind: 'action', config: { action_name, parameters } }] },
})
const over = (id: unknown) =>
  until(
    () => call('GET', `${P}/runs/${id}`),
    ({ body }) => ['completed', 'failed', 'cancelled'].includes(String(body['status'])),
  )

let last: Awaited<ReturnType<typeof it.node>> | undefined

t.test(
  'after an executor is killed, another one repeats its call under the same delivery id',
  async (t) => {
    const { body: made } = await call('POST', `${P}/actions`, {
      name: 'pay',
      endpoint_url: `${plain.url}/pay`,
      annotations: { idempotent: true },
    })
    const { body: run } = await call('POST', `${P}/runs`, act('pay', { amount: 7 }))
    t.equal(plain.deliveries.length, 0, 'no call is sent without an executor')
    t.match((await call('GET', `${P}/runs/${run['id']}`)).body, {
      paths: [{ waiting_on: { reason: 'waiting for a free slot of an executor of the service' } }],
    })
    plain.answer = () => {}
    const doomed = await it.node('executor-a', 'executor')
    const first = await plain.delivery(0)
    await doomed.kill()
    t.comment('the executor is dead in the middle of the call')
    plain.answer = json({ paid: true })
    const other = await it.node('executor-b', 'executor')
    const second = await plain.delivery(1)
    t.equal(second.headers['x-service-delivery-id'], first.headers['x-service-delivery-id'])
    t.equal(second.headers['idempotency-key'], first.headers['idempotency-key'])
    t.equal(second.text, first.text)
    t.ok(
      Number(second.headers['x-service-timestamp']) > Number(first.headers['x-service-timestamp']),
      'the second call has a new signature',
    )
    for (const delivery of [first, second]) t.ok(verified(delivery, String(made['signing_secret'])))
    t.match((await over(run['id'])).body, { status: 'completed', result: { call: { paid: true } } })
    const { body: timeline } = await call('GET', `/runs/${run['id']}/events?limit=200`)
    const types = listOf(timeline).map(({ event_type }) => String(event_type))
    t.strictSame(
      types.filter((type) => /^(action|run\.(completed|failed))/.test(type)),
      ['action.called', 'action.retried', 'action.completed', 'run.completed'],
    )
    t.match((await call('GET', `${P}/action-invocations?run_id=${run['id']}`)).body, {
      items: [
        { status: 'success', retry_count: 1, delivery_id: first.headers['x-service-delivery-id'] },
      ],
      has_more: false,
    })

    plain.answer = () => {}
    const { body: next } = await call('POST', `${P}/runs`, act('pay', { amount: 8 }))
    await plain.delivery(2)
    const ended = other.stop()
    last = await it.node('executor-c', 'executor')
    plain.answer = json({ paid: 'later' })
    await ended
    t.match(
      (await over(next['id'])).body,
      { status: 'completed', result: { call: { paid: 'later' } } },
      'an executor that stops in order returns its calls',
    )
    t.match(
      (await call('GET', `${P}/action-invocations?run_id=${next['id']}`)).body,
      { items: [{ retry_count: 0 }] },
      'the returned call counts as no attempt',
    )
  },
)

t.test('a call with an unknown outcome is repeated only if its action allows it', async (t) => {
  await call('POST', `${P}/actions`, { name: 'once', endpoint_url: `${plain.url}/once` })
  const from = plain.deliveries.length
  plain.answer = () => {}
  const { body: run } = await call('POST', `${P}/runs`, act('once'))
  await plain.delivery(from)
  const { body: jobs } = await call('GET', `${P}/runs/${run['id']}/jobs`)
  t.match(listOf(jobs), [
    {
      status: 'claimed',
      executor_kind: 'server_worker',
      worker_instance_id: 'x-executor-c',
      max_attempts: 1,
    },
  ])
  await last?.kill()
  await it.node('executor-d', 'executor')
  t.match((await over(run['id'])).body, { status: 'failed', error_type: 'lease_expired' })
  t.equal(plain.deliveries.length, from + 1, 'it was called once')
  t.match((await call('GET', `${P}/action-invocations?run_id=${run['id']}`)).body, {
    items: [
      {
        status: 'failed',
        error_type: 'lease_expired',
        delivery_id: plain.deliveries[from]?.headers['x-service-delivery-id'],
      },
    ],
  })
})

t.test(
  'every project calls an organization action over TLS, also while its secret is rotated',
  async (t) => {
    const A = '/organization/actions'
    t.match(
      await call('POST', A, { name: 'ledger.post', endpoint_url: plain.url }),
      { status: 400, body: { error: { details: { fields: [{ field: 'endpoint_url' }] } } } },
      'only https is accepted',
    )
    const { body: made } = await call('POST', A, {
      name: 'ledger.post',
      endpoint_url: `${secure.url}/ledger`,
      annotations: { destructive: true },
    })
    const one = String(made['signing_secret'])
    const id = String(made['id'])
    secure.answer = json({ posted: true })
    const invoke = async (project = 'default') =>
      (
        await call('POST', `/projects/${project}/actions/ledger.post/invoke`, {
          input: { amount: 1 },
        })
      ).body
    const last = async () => secure.delivery(secure.deliveries.length - 1)
    t.match(await invoke(), { status: 'completed', output: { posted: true } })
    t.ok(verified(await last(), one))
    const { body: project } = await call('GET', P)
    t.match((await last()).headers, {
      'x-service-secret-ref': `service/org-action/${id}`,
      'x-service-secret-version': '1',
    })
    t.match((await last()).body, {
      service: {
        scope: { org_id: /^org_/, project_id: project['id'] },
        action: { id, name: 'ledger.post' },
        origin: { kind: 'direct_action_invoke', run_id: /^run_/ },
      },
      parameters: { amount: 1 },
    })
    t.match((await call('GET', `${P}/catalog/actions/ledger.post`)).body, {
      definition_scope: 'organization',
      readiness: 'ready',
      risk: 'high',
      endpoint_kind: 'http',
    })

    const { body: rotated } = await call('POST', `${A}/${id}/secret/rotate`)
    t.match(rotated, {
      signing_secret: /=$/,
      secret_versions: [
        { version: 1, status: 'active' },
        { version: 2, status: 'pending' },
      ],
    })
    const two = String(rotated['signing_secret'])
    await invoke()
    t.ok(verified(await last(), one), 'a pending secret signs no calls')
    t.match(
      (await call('POST', `${A}/${id}/secret/versions/2/activate`, { overlap_seconds: 1 })).body,
      {
        active_signing_version: 2,
        secret_versions: [{ status: 'retiring' }, { status: 'active' }],
      },
    )
    await invoke()
    t.ok(verified(await last(), two) && (await last()).headers['x-service-secret-version'] === '2')
    const retired = await until(
      () => call('GET', `${A}/${id}`),
      ({ body }) => JSON.stringify(body).includes('"retired"'),
    )
    t.match(retired.body, {
      secret_versions: [{ status: 'retired', retired_at: /Z$/ }, { status: 'active' }],
    })
    t.notOk('signing_secret' in retired.body)

    t.match(await call('POST', `${A}/${id}/secret/versions/2/revoke`), { status: 409 })
    await call('POST', '/projects', { name: 'Second', handle: 'second' })
    t.match(
      await invoke('second'),
      { status: 'completed' },
      'another project calls the action as well',
    )
    await call('POST', '/projects/second/actions', {
      name: 'ledger.post',
      endpoint_url: `${plain.url}/own`,
    })
    plain.answer = json({ own: true })
    t.match(
      await invoke('second'),
      { output: { own: true } },
      'a project action shadows the organization action',
    )
    t.match(await invoke(), { output: { posted: true } })

    await call('PATCH', `${A}/${id}`, { enabled: false })
    t.match((await call('GET', `${P}/catalog/actions/ledger.post`)).body, {
      readiness: 'needs_setup',
      readiness_reason: 'inactive',
    })
    t.match(await call('POST', `${P}/actions/ledger.post/invoke`, {}), { status: 409 })
    const { body: run } = await call('POST', `${P}/runs`, act('ledger.post'))
    t.match((await over(run['id'])).body, { status: 'failed', error_type: 'action_disabled' })
    t.match((await call('POST', `${A}/${id}/secret/versions/2/revoke`)).body, {
      enabled: false,
      secret_versions: [{}, { status: 'revoked' }],
    })
    t.match((await call('GET', '/audit-logs?resource_type=organization_action&limit=100')).body, {
      items: [
        { action: 'update' },
        { action: 'update' },
        { action: 'update' },
        { action: 'update' },
        { action: 'create' },
      ],
    })
    t.match(
      (await call('GET', `${P}/action-invocations?definition_scope=organization&limit=100`)).body,
      {
        items: [
          { secret_version: 2 },
          { secret_version: 2 },
          { secret_version: 1 },
          { secret_version: 1 },
        ].slice(0, 4),
      },
    )
    t.equal((await call('DELETE', `${A}/${id}`)).status, 204)
    t.match(await call('POST', `${P}/actions/ledger.post/invoke`, {}), { status: 404 })
  },
)
