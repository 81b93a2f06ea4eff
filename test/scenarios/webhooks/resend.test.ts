/**
 * The recorded attempts of a delivery, with the receiver's answers, and resending, against a
 * running service.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, listOf, until } from '../support/given.ts'
import { json, receiver, verified } from '../support/servers/receiver.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.setTimeout(120_000)
t.teardown(async () => {
  await there.close()
  await s.stop()
})

const deliveries = async (webhook_id: unknown): Promise<Found[]> =>
  listOf(await s.ok('webhook.deliveries', { webhook_id, include: ['attempt_log', 'resend_of'] }))
const ended = (webhook_id: unknown, count: number) =>
  until(
    () => deliveries(webhook_id),
    (all) =>
      all.length === count &&
      all.every(({ status }) => ['delivered', 'failed'].includes(String(status))),
  )

t.test('a refused delivery shows the answer of the receiver, and is sent again', async (t) => {
  const hook = await s.ok('webhook.create', {
    name: 'shop',
    url: `${there.url}/shop`,
    events: ['order.*'],
  })
  const at = { webhook_id: hook['id'] }
  there.answer = (_, res) => res.writeHead(422).end(`no such order ${'x'.repeat(1000)}`)
  await s.ok('event.publish', { event_type: 'order.paid', event: { n: 1 } })
  const [refused] = await ended(hook['id'], 1)
  t.match(refused, { status: 'failed', response_code: 422, attempts: 1 })
  t.match(listOf(refused as object, 'attempt_log'), [
    { attempt: 1, delivered: false, response_code: 422, error: /422/, ended_at: /Z$/ },
  ])
  const [log] = listOf(refused as object, 'attempt_log')
  t.match(String(log?.['answer']), /^no such order x+$/)
  t.equal(String(log?.['answer']).length, 500)
  t.ok(Number(log?.['latency_ms']) >= 0)
  const [plain] = listOf(await s.ok('webhook.deliveries', at))
  t.notOk('attempt_log' in (plain ?? {}), 'only on request')

  there.answer = json({ taken: true })
  const again = { ...at, delivery_id: refused?.['id'] }
  const made = await s.ok('webhook.resend', { ...again, include: ['resend_of'] })
  t.match(made, { id: /^whd_/, status: 'pending', attempts: 0, resend_of: refused?.['id'] })
  t.not(made['id'], refused?.['id'])
  const [sent, first] = await ended(hook['id'], 2)
  t.strictSame(first, refused, 'the earlier delivery does not change')
  t.match(sent, {
    id: made['id'],
    status: 'delivered',
    event_type: 'order.paid',
    attempt_log: [{ attempt: 1, delivered: true, response_code: 200, answer: '{"taken":true}' }],
  })
  const [one, other] = [await there.delivery(0), await there.delivery(1)]
  t.strictSame(other.body['data'], { n: 1 })
  t.equal(other.body['event_id'], one.body['event_id'], 'receivers recognize the event')
  t.equal(other.headers['x-service-delivery-id'], made['id'])
  t.ok(verified(other, String(hook['signing_secret'])))

  const key = { headers: { 'idempotency-key': 'again' } }
  const repeated = await s.ok('webhook.resend', again, key)
  t.equal((await s.ok('webhook.resend', again, key))['id'], repeated['id'])
  await ended(hook['id'], 3)
  t.match(
    listOf(await s.ok('audit.list', { resource_type: ['webhook_delivery'] })),
    [repeated, made].map(({ id }) => ({
      resource_id: id,
      action: 'create',
      changes: { webhook_id: { to: hook['id'] }, resend_of: { to: refused?.['id'] } },
    })),
    'who has sent it again is in the audit log',
  )

  const strange = await s.ok('webhook.create', { name: 'other', url: `${there.url}/other` })
  await s.refused('webhook.resend', { ...again, webhook_id: strange['id'] }, 404, 'not_found')
  await s.refused('webhook.resend', { ...at, delivery_id: 'whd_none' }, 404, 'not_found')
  await s.ok('webhook.update', { ...at, enabled: false })
  await s.refused('webhook.resend', again, 409, 'conflict')
  await s.ok('webhook.delete', at)
  await s.refused('webhook.resend', again, 404, 'not_found')
})

t.test('a delivery that is still being sent is not sent again', async (t) => {
  const hook = await s.ok('webhook.create', {
    name: 'slow',
    url: `${there.url}/slow`,
    events: ['parcel.*'],
  })
  const before = there.deliveries.length
  let answer = () => {}
  there.answer = (_, res) => {
    answer = () => res.end('{}')
  }
  await s.ok('event.publish', { event_type: 'parcel.sent', event: {} })
  await there.delivery(before)
  const [open] = await deliveries(hook['id'])
  const { details } = await s.refused(
    'webhook.resend',
    { webhook_id: hook['id'], delivery_id: open?.['id'] },
    409,
    'conflict',
  )
  t.match(details, { status: 'processing' })
  answer()
  await ended(hook['id'], 1)
})

t.test('a retry after the webhook was disabled counts no attempt', async (t) => {
  const hook = await s.ok('webhook.create', {
    name: 'stopped',
    url: `${there.url}/stopped`,
    events: ['stop.it'],
  })
  there.answer = json({}, 503)
  await s.ok('event.publish', { event_type: 'stop.it', event: {} })
  await until(
    () => deliveries(hook['id']),
    ([one]) => one?.['attempts'] === 1 && one['status'] === 'pending',
  )
  await s.ok('webhook.update', { webhook_id: hook['id'], enabled: false })
  there.answer = json({ ok: true })
  const [failed] = await ended(hook['id'], 1)
  t.match(failed, { status: 'failed', attempts: 1, last_error: 'The webhook is disabled.' })
})
