/**
 * Webhooks over the real stack: signed deliveries to a receiver that accepts, refuses, hangs or
 * redirects.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  ended,
  type Found,
  fieldsOf,
  ids,
  idsOf,
  instant,
  listOf,
  pages,
  until,
} from '../support/given.ts'
import { type Delivery, json, receiver, verified } from '../support/servers/receiver.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.setTimeout(180_000)
t.teardown(async () => {
  await there.close()
  await s.stop()
})
const text = (value: unknown) => String(value)
const deliveriesOf = async (webhook: Found | object) =>
  listOf(await s.ok('webhook.deliveries', { webhook_id: text((webhook as Found)['id']) }))
const settled = (webhook: object, wished: (delivery: Found) => boolean) =>
  until(
    async () => (await deliveriesOf(webhook))[0] as Found,
    (one) => one !== undefined && wished(one),
  )
const over = ({ status }: Found) => status === 'delivered' || status === 'failed'
const publish = (event_type: string, event: object = {}) =>
  s.ok('event.publish', { event_type, event })
const arrived = (path: string, count = 1): Promise<Delivery[]> =>
  until(
    async () => there.deliveries.filter((one) => one.path === path),
    (found) => found.length >= count,
  )

t.test('a webhook is created, read, updated and deleted', async (t) => {
  const made = await s.ok('webhook.create', {
    name: 'first',
    url: `${there.url}/none`,
    events: ['a.b'],
    tags: { team: 'ops' },
  })
  t.match(made, {
    id: /^wbh_/,
    name: 'first',
    events: ['a.b'],
    enabled: true,
    tags: { team: 'ops' },
    secret_ref: `service/webhook/${made['id']}`,
    secret_version: 1,
  })
  t.equal(Buffer.from(text(made['signing_secret']), 'base64').length, 32)
  const one = { webhook_id: made['id'] }
  const read = await s.ok('webhook.get', one)
  t.strictSame(
    [read['signing_secret'], read['secret_version'], read['secret_ref']],
    [undefined, undefined, made['secret_ref']],
    'the secret is shown only once',
  )
  t.match(
    await s.ok('webhook.update', {
      ...one,
      url: '',
      events: [],
      enabled: false,
      tags: {},
      name: 'renamed',
    }),
    { name: 'renamed', url: '', events: [], enabled: false },
  )
  t.match(await s.ok('webhook.get', one), { name: 'renamed', url: '', events: [], enabled: false })
  t.notOk('tags' in (await s.ok('webhook.get', one)))
  const other = await s.ok('webhook.create', { name: 'second' })
  t.match(other, { url: '', events: [] }, 'the URL may be set later')
  t.strictSame(idsOf(await s.ok('webhook.list', {})), [other['id'], made['id']])
  t.strictSame(idsOf(await s.ok('webhook.list', { enabled: false })), [made['id']])
  t.strictSame(ids(await pages(s, 'webhook.list', {}, 1)), [other['id'], made['id']])
  await s.refused('webhook.create', { name: 'second' }, 409, 'already_exists')
  await s.refused('webhook.update', { ...one, name: 'second' }, 409, 'already_exists')
  const bad = async (body: object) =>
    fieldsOf(await s.refused('webhook.create', { name: 'bad', ...body }, 400, 'bad_request'))
  t.strictSame(await bad({ url: 'ftp://example.org' }), ['url'])
  t.strictSame(
    await bad({ url: 'http://8.8.8.8/' }),
    ['url'],
    'plain HTTP requires the permission of the operator',
  )
  for (const url of [
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://user:word@example.org/',
    'https://169.254.169.254/',
  ])
    t.strictSame(await bad({ url }), ['url'], url)
  t.strictSame(await bad({ events: ['run.*', 'Order', 'a'.repeat(129), '*.run', 'a b'] }), [
    'events[2]',
    'events[3]',
    'events[4]',
  ])
  t.strictSame(await bad({ tags: { 'service:x': 'y' } }), ['tags.service:x'])
  for (const name of [
    'webhook.get',
    'webhook.update',
    'webhook.delete',
    'webhook.rotate_secret',
    'webhook.ping',
    'webhook.deliveries',
  ] as const)
    await s.refused(name, { webhook_id: 'wbh_none' }, 404, 'not_found')
  const none = { webhook_id: 'wbh_none', delivery_id: 'whd_none' }
  await s.refused('webhook.resend', none, 404, 'not_found')
  await s.ok('webhook.delete', one)
  await s.refused('webhook.get', one, 404, 'not_found')
  await s.ok('webhook.delete', { webhook_id: other['id'] })
  t.strictSame(
    listOf(
      await s.ok('audit.list', { resource_type: 'webhook', resource_id: text(made['id']) }),
    ).map(({ action }) => action),
    ['delete', 'update', 'create'],
  )
})

t.test(
  'matching events are delivered signed, including run events, which exist because a webhook subscribes',
  async (t) => {
    const orders = await s.ok('webhook.create', {
      name: 'orders',
      url: `${there.url}/orders`,
      events: ['order.*'],
    })
    const all = await s.ok('webhook.create', { name: 'all', url: `${there.url}/all` })
    const event = await publish('order.paid', { n: 1 })
    const [delivery] = (await arrived('/orders')) as [Delivery]
    const record = await settled(orders, over)
    t.match(record, {
      id: /^whd_/,
      webhook_id: orders['id'],
      event_type: 'order.paid',
      status: 'delivered',
      attempts: 1,
      response_code: 200,
      delivered_at: /Z$/,
    })
    t.notOk('last_error' in record || 'next_attempt_at' in record)
    const { id: project_id } = await s.ok('project.get', {})
    t.match(delivery.body, {
      type: 'order.paid',
      data: { n: 1 },
      delivery_id: record['id'],
      event_id: event['source_event_id'],
      project_id,
      occurred_at: /Z$/,
      meta: {},
    })
    t.ok(verified(delivery, text(orders['signing_secret'])))
    t.notOk(verified(delivery, text(all['signing_secret'])))
    t.match(delivery.headers, {
      'content-type': 'application/json',
      'user-agent': 'service-webhooks/1',
      'x-service-event-type': 'order.paid',
      'x-service-delivery-id': record['id'],
      'idempotency-key': record['id'],
      'x-service-secret-ref': orders['secret_ref'],
      'x-service-secret-version': '1',
    })
    await arrived('/all')

    const run = await s.ok('run.start', { spec: instant() })
    await ended(s, run['id'])
    const told = await settled(
      all,
      ({ event_type, status }) => event_type === 'run.completed' && status === 'delivered',
    )
    t.equal(told['run_id'], run['id'])
    const [, said] = (await arrived('/all', 2)) as [Delivery, Delivery]
    t.match(said.body, {
      type: 'run.completed',
      data: { id: run['id'], run_id: run['id'], created_at: run['created_at'], result: {} },
      meta: { run_id: run['id'] },
    })
    t.equal((await arrived('/orders')).length, 1, 'only events of the family are delivered')
    t.equal((await pages(s, 'webhook.deliveries', { webhook_id: all['id'] }, 1)).length, 2)

    await s.ok('webhook.update', { webhook_id: all['id'], enabled: false })
    await s.ok('webhook.update', { webhook_id: orders['id'], url: '' })
    await publish('order.paid', { n: 2 })
    await s.ok('webhook.update', {
      webhook_id: orders['id'],
      url: `${there.url}/orders`,
      events: ['order.sent'],
    })
    await publish('order.sent', { n: 3 })
    await arrived('/orders', 2)
    t.strictSame(
      (await deliveriesOf(orders)).map(({ event_type }) => event_type),
      ['order.sent', 'order.paid'],
      'without a URL no delivery is recorded or made up for',
    )
    t.equal((await deliveriesOf(all)).length, 2)
    t.equal(
      there.deliveries.some(({ body }) => (body as { data?: { n?: number } }).data?.n === 2),
      false,
    )
    for (const { id } of [orders, all]) await s.ok('webhook.delete', { webhook_id: id })
  },
)

t.test('a failed delivery is repeated with a new signature until it is accepted', async (t) => {
  const hook = await s.ok('webhook.create', {
    name: 'flaky',
    url: `${there.url}/flaky`,
    events: ['flaky.event'],
  })
  there.answer = (delivery, res) =>
    json({}, delivery.path === '/flaky' ? 503 : 200, { 'retry-after': '0' })(delivery, res)
  await publish('flaky.event', { large: 'x'.repeat(1000) })
  const waiting = await settled(
    hook,
    ({ status, attempts }) => status === 'pending' && Number(attempts) === 1,
  )
  t.match(waiting, {
    last_error: 'The receiver returned 503.',
    response_code: 503,
    next_attempt_at: /Z$/,
  })
  const rotated = await s.ok('webhook.rotate_secret', { webhook_id: hook['id'] })
  t.match(rotated, { secret_ref: hook['secret_ref'], secret_version: 2 })
  there.answer = json({ ok: true })
  const [first, second] = (await arrived('/flaky', 2)) as [Delivery, Delivery]
  t.equal(first.text, second.text)
  t.equal(first.headers['x-service-delivery-id'], second.headers['x-service-delivery-id'])
  t.ok(Number(second.headers['x-service-timestamp']) > Number(first.headers['x-service-timestamp']))
  t.ok(verified(first, text(hook['signing_secret'])))
  t.ok(verified(second, text(rotated['signing_secret'])), 'each attempt uses the current secret')
  t.equal(second.headers['x-service-secret-version'], '2')
  t.match(await settled(hook, over), { status: 'delivered', attempts: 2, response_code: 200 })
})

t.test(
  'permanent failures are final, redirects are not followed, and a silent receiver times out',
  async (t) => {
    const hook = await s.ok('webhook.create', {
      name: 'odd',
      url: `${there.url}/odd`,
      events: ['odd.*'],
    })
    there.answer = json({}, 410)
    await publish('odd.gone')
    t.match(await settled(hook, over), {
      status: 'failed',
      attempts: 1,
      response_code: 410,
      last_error: 'The receiver returned 410.',
    })
    there.answer = (_, res) => res.writeHead(302, { location: `${there.url}/elsewhere` }).end()
    await publish('odd.moved')
    t.match(await settled(hook, (one) => one['event_type'] === 'odd.moved' && over(one)), {
      status: 'failed',
      response_code: 302,
      last_error: /redirects are not followed/,
    })
    t.notOk(there.deliveries.some(({ path }) => path === '/elsewhere'))
    there.answer = (_, res) => res.end('x'.repeat(100_000))
    await publish('odd.long')
    t.match(
      await settled(hook, (one) => one['event_type'] === 'odd.long' && over(one)),
      { status: 'delivered' },
      'the status counts, even if the body is long',
    )
    there.answer = () => {}
    await publish('odd.silent')
    await settled(hook, ({ status }) => status === 'processing')
    t.match(
      await settled(hook, ({ status }) => status === 'pending').catch(() =>
        settled(hook, ({ status }) => status === 'pending'),
      ),
      { attempts: 1, last_error: /no response within 10000 ms/, next_attempt_at: /Z$/ },
    )
    await s.ok('webhook.delete', { webhook_id: hook['id'] })
    there.answer = json({ ok: true })
  },
)

t.test("a test request returns the receiver's response and is not recorded", async (t) => {
  const hook = await s.ok('webhook.create', { name: 'tested' })
  const one = { webhook_id: hook['id'] }
  t.strictSame(fieldsOf(await s.refused('webhook.ping', one, 400, 'bad_request')), ['url'])
  t.strictSame(
    fieldsOf(
      await s.refused('webhook.ping', { ...one, url: 'https://10.1.1.1/' }, 400, 'bad_request'),
    ),
    ['url'],
  )
  const well = await s.ok('webhook.ping', { ...one, url: `${there.url}/ping` })
  t.match(well, { success: true, status_code: 200 })
  t.ok(Number(well['latency_ms']) >= 0)
  const [delivery] = (await arrived('/ping')) as [Delivery]
  t.strictSame(delivery.body, { type: 'ping', data: { webhook_id: hook['id'] } })
  t.ok(verified(delivery, text(hook['signing_secret'])))
  await s.ok('webhook.update', { ...one, url: `${there.url}/ping`, enabled: false })
  there.answer = json({}, 500)
  t.match(await s.ok('webhook.ping', one), {
    success: false,
    status_code: 500,
    error: 'The receiver returned 500.',
  })
  t.match(await s.ok('webhook.ping', { ...one, url: 'http://127.0.0.1:9/' }), {
    success: false,
    status_code: undefined,
    error: /could not be reached/,
  })
  there.answer = json({ ok: true })
  t.equal((await arrived('/ping')).length, 2, 'a test request is not retried')
  t.strictSame(await deliveriesOf(hook), [])
})

t.test(
  'the outcome of an interaction is delivered to its subscriber once the signing secret exists',
  async (t) => {
    const { principal } = (await s.ok('me.get', {})) as unknown as { principal: { id: string } }
    const asked = await s.ok('interaction.create', {
      kind: 'request_approval',
      title: 'Go?',
      target_user_ids: [principal.id],
      consumer: {
        kind: 'http_subscriber',
        http_subscriber: { callback_url: `${there.url}/callback`, secret_ref: 'callbacks/main:1' },
      },
    })
    await s.ok('interaction.respond', { id: asked['id'], value: true, comment: 'fine' })
    const key = Buffer.alloc(32, 7).toString('base64')
    const faultsOf = async (secret_name: string, entries: object) =>
      fieldsOf(await s.refused('secret.put', { secret_name, entries }, 400, 'bad_request'))
    t.strictSame(await faultsOf('callbacks/main', { signing_key_b64: 'short' }), [
      'entries.signing_key_b64',
    ])
    t.strictSame(await faultsOf('service/mine', { a: 'b' }), ['secret_name'])
    await s.refused('secret.delete', { secret_name: 'none' }, 404, 'not_found')
    t.match(
      await s.ok('secret.put', {
        secret_name: 'callbacks/main',
        entries: { signing_key_b64: key, note: 'kept' },
      }),
      { name: 'callbacks/main', version: 1, versions: [1], entries: ['note', 'signing_key_b64'] },
    )
    t.match(
      await s.ok('secret.put', {
        secret_name: 'callbacks/main',
        entries: { note: 'kept', signing_key_b64: key },
      }),
      { version: 1 },
      'an identical secret stores no new version',
    )
    t.match(
      await s.ok('secret.put', {
        secret_name: 'callbacks/main',
        entries: { signing_key_b64: Buffer.alloc(32, 8).toString('base64') },
      }),
      { version: 2, versions: [1, 2] },
    )
    t.match(await s.ok('secret.list', {}), { items: [{ name: 'callbacks/main', version: 2 }] })
    const [delivery] = (await arrived('/callback')) as [Delivery]
    t.ok(verified(delivery, key), 'signed with the named version')
    t.match(delivery.headers, {
      'x-service-secret-ref': 'callbacks/main:1',
      'x-service-secret-version': '1',
      'x-service-delivery-id': /^whd_/,
    })
    t.strictSame(delivery.body, {
      interaction_id: asked['id'],
      kind: 'request_approval',
      status: 'completed',
      outcome: true,
      value: true,
      comment: 'fine',
      responder: { user_id: principal.id },
      resolved_by: 'any_of',
    })
    await s.ok('secret.delete', { secret_name: 'callbacks/main' })
    t.match(await s.ok('secret.list', {}), { items: [] })
  },
)
