/**
 * Kills an executor during a delivery, and then the shard node. Other processes repeat the delivery
 * under the same id, until one attempt is accepted.
 */
import t from 'tap'
import { listOf, until } from '../support/given.ts'
import { persistent, portsFor, processes } from '../support/processes.ts'
import { json, receiver, verified } from '../support/servers/receiver.ts'
import { hasty } from '../support/sockets.ts'

t.setTimeout(400_000)
const it = await processes({ ...hasty, BATON_SHARDS: '2', BATON_OUTBOUND_ALLOW: '127.0.0.0/8' })
const there = await receiver()
t.teardown(async () => {
  await Promise.all([there.close(), it.stop()])
})
const [port = 0] = await portsFor(1)
const shards = await it.node('shards-a', 'shards')
await it.node('front', 'gateway,views', port)
const call = persistent(it, port, '/v1/projects/default')

t.test('a delivery survives kills of its executor and of the shard node', async (t) => {
  const { body: hook } = await call('POST', '/webhooks', {
    name: 'kept',
    url: `${there.url}/kept`,
    events: ['order.*'],
  })
  t.match(await call('POST', '/events', { event_type: 'order.paid', event: { n: 1 } }), {
    status: 202,
  })
  t.equal(there.deliveries.length, 0, 'no delivery is sent without an executor')
  there.answer = () => {}
  const doomed = await it.node('executor-a', 'executor')
  const first = await there.delivery(0)
  await doomed.kill()
  t.comment('the executor is dead in the middle of the delivery')
  const record = async () =>
    listOf((await call('GET', `/webhooks/${hook['id']}/deliveries`)).body)[0]
  // Usually, one attempt has been counted. After a stall of several seconds, a second attempt may
  // have been counted although it was not sent.
  const before = Number((await record())?.['attempts'])
  t.match(await record(), { status: 'processing' })
  t.ok(before >= 1)
  await it.node('shards-b', 'shards')
  await shards.kill()
  t.comment('and so is the node that decided')
  there.answer = json({ taken: true })
  await it.node('executor-b', 'executor')
  const second = await there.delivery(1)
  t.equal(second.headers['x-service-delivery-id'], first.headers['x-service-delivery-id'])
  t.equal(second.text, first.text)
  t.ok(
    Number(second.headers['x-service-timestamp']) > Number(first.headers['x-service-timestamp']),
    'the repeat has a new signature',
  )
  for (const delivery of [first, second]) t.ok(verified(delivery, String(hook['signing_secret'])))
  const delivered = await until(record, (one) => one?.['status'] === 'delivered')
  t.match(delivered, {
    id: first.headers['x-service-delivery-id'],
    response_code: 200,
    last_error: /lost/,
  })
  t.ok(Number(delivered?.['attempts']) > before)
  t.match(await call('POST', `/webhooks/${hook['id']}/ping`), {
    status: 200,
    body: { success: true, status_code: 200 },
  })
  t.equal(
    there.deliveries.filter(({ body }) => (body as { type?: string }).type === 'order.paid').length,
    2,
    'no delivery is sent after it was accepted',
  )
})
