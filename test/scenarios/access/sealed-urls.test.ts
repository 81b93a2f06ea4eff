/**
 * Secret tokens in URL queries. They are sent to receivers, but no response, event, audit entry,
 * log line or stored message contains them in plain text.
 */
import { jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf, until } from '../support/given.ts'
import { json, receiver } from '../support/servers/receiver.ts'

const TOKEN = 'Zanzibar7'
const lines: string[] = []
const log = {
  ...silentLog,
  ...Object.fromEntries(
    (['debug', 'info', 'warn', 'error'] as const).map((level) => [
      level,
      (...words: unknown[]) => void lines.push(JSON.stringify(words)),
    ]),
  ),
}
const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' }, { log })
const there = await receiver()
there.answer = json({ ok: true })
t.teardown(async () => {
  await there.close()
  await s.stop()
})
/** Waits for requests whose path starts with `path`. Returns their paths with the query strings. */
const called = (path: string) =>
  until(
    async () => there.deliveries.filter((one) => one.path.startsWith(path)).map((one) => one.path),
    (paths) => paths.length > 0,
  )
const sealed = (text: string) => text.replaceAll(/=[^&]+/g, '=***')

t.test('an action is called with its token, which no response contains', async (t) => {
  const url = `${there.url}/act?token=${TOKEN}&v=1`
  const made = await s.ok('action.create', { name: 'crm.sync', endpoint_url: url })
  t.equal(made['endpoint_url'], sealed(url))
  const one = { action_name: 'crm.sync' }
  for (const answer of [
    await s.ok('action.get', one),
    listOf(await s.ok('action.list', {}))[0],
    await s.ok('catalog.action', one),
    // The masked URL from a response is sent back, together with another change.
    await s.ok('action.update', { ...one, title: 'Sync', endpoint_url: sealed(url) }),
  ])
    t.match(answer, { endpoint_url: sealed(url) })
  t.match(await s.ok('action.invoke', one), { status: 'completed' })
  t.strictSame(await called('/act'), [`/act?token=${TOKEN}&v=1`])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'action.update',
        { ...one, endpoint_url: `${there.url}/elsewhere?token=***` },
        400,
        'bad_request',
      ),
    ),
    ['endpoint_url'],
  )
})

t.test('webhooks and their test requests are sent with their tokens', async (t) => {
  const url = `${there.url}/hook?key=${TOKEN}`
  const made = await s.ok('webhook.create', { name: 'hook', url, events: ['a.b'] })
  t.equal(made['url'], sealed(url))
  const one = { webhook_id: made['id'] }
  t.match(await s.ok('webhook.get', one), { url: sealed(url) })
  t.match(await s.ok('webhook.ping', { ...one, url: sealed(url) }), { success: true })
  t.match(await s.ok('webhook.ping', { ...one, url: `${there.url}/try?key=${TOKEN}` }), {
    success: true,
  })
  await s.ok('event.publish', { event_type: 'a.b', event: {} })
  t.strictSame(await called('/try'), [`/try?key=${TOKEN}`])
  await until(
    () => called('/hook'),
    (paths) => paths.length === 2,
  )
  t.strictSame(new Set(await called('/hook')), new Set([`/hook?key=${TOKEN}`]))
})

t.test('the subscriber of an interaction is called with its token', async (t) => {
  await s.ok('secret.put', {
    secret_name: 'callbacks',
    entries: { signing_key_b64: Buffer.alloc(32, 7).toString('base64') },
  })
  const { principal } = (await s.ok('me.get', {})) as unknown as { principal: { id: string } }
  const callback_url = `${there.url}/callback?sig=${TOKEN}`
  const consumer = {
    kind: 'http_subscriber',
    http_subscriber: { callback_url: sealed(callback_url), secret_ref: 'callbacks' },
  }
  const asked = await s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Go?',
    target_user_ids: [principal.id],
    consumer: { ...consumer, http_subscriber: { ...consumer.http_subscriber, callback_url } },
  })
  t.match(asked, { consumer })
  t.match(await s.ok('interaction.respond', { id: asked['id'], value: true }), { consumer })
  t.match(await s.ok('interaction.get', { id: asked['id'] }), { consumer })
  t.strictSame(await called('/callback'), [`/callback?sig=${TOKEN}`])
})

t.test('responses that repeat the address are stored without its token', async (t) => {
  const token = `${TOKEN}/+`
  there.answer = (_, response) => {
    response.writeHead(404, { 'content-type': 'text/html' })
    response.end(`Cannot POST ${encodeURIComponent(token)}, that is ${token}`)
  }
  const query = `token=${encodeURIComponent(token)}`
  await s.ok('action.create', { name: 'lost', endpoint_url: `${there.url}/lost?${query}` })
  const failed = await s.ok('action.invoke', { action_name: 'lost' })
  t.match(JSON.stringify(failed), /Cannot POST \*\*\*, that is \*\*\*/)
  const made = await s.ok('webhook.create', {
    name: 'lost',
    url: `${there.url}/gone?${query}`,
    events: ['c.d'],
  })
  await s.ok('event.publish', { event_type: 'c.d', event: {} })
  const deliveries = await until(
    async () =>
      JSON.stringify(
        await s.ok('webhook.deliveries', { webhook_id: made['id'], include: ['attempt_log'] }),
      ),
    (text) => text.includes('Cannot POST'),
  )
  t.match(deliveries, /Cannot POST \*\*\*, that is \*\*\*/)
})

t.test('no token is stored, logged or listed in plain text', async (t) => {
  t.notMatch(JSON.stringify(listOf(await s.ok('audit.list', { limit: 200 }))), TOKEN)
  t.ok(lines.length > 0, 'the service logs')
  t.notMatch(lines.join('\n'), TOKEN)
  const { connection } = await connectNats({
    access: s.server.access,
    name: 'test',
    log: silentLog,
    role: 'test',
  })
  const manager = await jetstreamManager(connection)
  let readable = 0
  for await (const { config, state } of manager.streams.list())
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      // No message is found at a sequence whose message was replaced.
      const message = await manager.streams.getMessage(config.name, { seq }).catch(() => null)
      if (!message) continue
      const data = Buffer.from(message.data)
      if (data.includes('crm.sync')) readable++
      if (data.includes(TOKEN)) t.fail(`${config.name} ${seq} has it`)
    }
  t.ok(readable > 1, 'unencrypted text is found in the stored messages')
  await connection.close()
})
