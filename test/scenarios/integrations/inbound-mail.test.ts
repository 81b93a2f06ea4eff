/**
 * E-mail to agents over a real SMTP connection: which messages are accepted or rejected, and which
 * fields a loop receives.
 */
import { generateKeyPairSync } from 'node:crypto'
import { connect } from 'node:net'
import { createTransport } from 'nodemailer'
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { dnsServer } from '../support/servers/dns-server.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
const dns = await dnsServer({
  'example.org': 'v=spf1 ip4:127.0.0.1 -all',
  'forged.example': 'v=spf1 -all',
  's1._domainkey.example.org': `v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`,
  '_dmarc.example.org': 'v=DMARC1; p=reject',
})
const s = await service({
  BATON_INBOX_DOMAIN: 'agents.test',
  BATON_SMTP_PORT: '0',
  BATON_SMTP_DNS: dns.address,
  BATON_SMTP_MAX_BYTES: '200000',
})
t.teardown(async () => {
  await s.stop()
  dns.close()
})
const port = s.nodes[0]?.mail_port ?? 0
const transport = (dkim = false) =>
  createTransport({
    host: '127.0.0.1',
    port,
    secure: false,
    ignoreTLS: true,
    name: 'mail.example.org',
    ...(dkim && { dkim: { domainName: 'example.org', keySelector: 's1', privateKey } }),
  })
const agent = await s.ok('agent.create', { name: 'support', model: 'scripted/echo' })
const address = String((await s.ok('agent.inbox', { id: agent['id'] }))['email_address'])
const received = async () => listOf(await s.ok('event.list', { event_type: 'email.received' }))
const code = (error: unknown): unknown => (error as { responseCode?: number }).responseCode

t.test('a message starts the loop that waits for email to the agent', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'mail',
    status: 'active',
    triggers: [
      {
        key: 'mail',
        kind: 'event',
        config: {
          event_type: 'email.received',
          source_id: agent['id'],
          condition: 'event.authentication.spf == "pass" && !event.automatic',
        },
      },
    ],
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1ms' } }],
    output: {
      subject: '${{ event.subject }}',
      text: '${{ event.text }}',
      agent: '${{ meta.agent_id }}',
      from: '${{ event.from }}',
    },
  })
  await transport(true).sendMail({
    from: '"Ada Byron" <ada@example.org>',
    to: address,
    subject: 'Grüße, and a question',
    text: 'Where is my order?',
    html: '<p>Where is <b>my</b> order?</p>',
    inReplyTo: '<first@example.org>',
    references: ['<zero@example.org>', '<first@example.org>'],
    attachments: [{ filename: 'order.txt', content: 'order 17' }],
    messageId: '<second@example.org>',
  })
  const run = await until(
    async () => listOf(await s.ok('run.list', { loop_id: loop['id'] }))[0],
    (one) => one?.['status'] === 'completed',
  )
  t.match(run, {
    result: {
      subject: 'Grüße, and a question',
      text: 'Where is my order?',
      agent: agent['id'],
      from: 'ada@example.org',
    },
  })
  const [event] = await received()
  t.match(event, {
    event_type: 'email.received',
    source_kind: 'email',
    source_id: 'second@example.org',
    meta: { agent_id: agent['id'] },
    event: {
      message_id: 'second@example.org',
      to: [address.toLowerCase()],
      cc: [],
      html: /my/,
      in_reply_to: '<first@example.org>',
      references: ['<zero@example.org>', '<first@example.org>'],
      attachments: [{ name: 'order.txt', content_type: 'text/plain', size_bytes: 8 }],
      authentication: {
        spf: 'pass',
        dkim: [{ domain: 'example.org', result: 'pass' }],
        dmarc: 'pass',
      },
    },
  })
})

t.test('an automatic message is published, but excluded by the condition', async (t) => {
  const before = listOf(await s.ok('run.list')).length
  await transport().sendMail({
    from: 'ada@example.org',
    to: address,
    subject: 'Out of office',
    text: 'Back on Monday',
    headers: { 'Auto-Submitted': 'auto-replied' },
  })
  const [event] = await received()
  t.match(event, {
    event: { automatic: true, authentication: { spf: 'pass' } },
    fired_triggers: 0,
  })
  t.equal(listOf(await s.ok('run.list')).length, before)
})

t.test('a repeated message is published once', async (t) => {
  const before = (await received()).length
  const again = {
    from: 'ada@example.org',
    to: address,
    text: 'twice',
    messageId: '<t@example.org>',
  }
  await transport().sendMail(again)
  await transport().sendMail(again)
  t.equal((await received()).length, before + 1)
})

t.test('forged sender addresses are recorded as failed authentication', async (t) => {
  await transport().sendMail({ from: 'eve@forged.example', to: address, text: 'pay me' })
  const [event] = await received()
  t.match(event, { event: { authentication: { spf: 'fail', dkim: [], dmarc: 'none' } } })
})

t.test('only addresses of active agents are accepted, and nothing is relayed', async (t) => {
  const before = (await received()).length
  const send = (to: string) =>
    transport()
      .sendMail({ from: 'ada@example.org', to, text: 'x' })
      .then(() => 'taken', code)
  const other = await s.ok('agent.create', { name: 'silent', model: 'scripted/echo' })
  t.equal(await send('someone@elsewhere.example'), 550, 'another domain')
  t.equal(await send(`agt_${'0'.repeat(26)}@agents.test`), 550, 'no such agent')
  t.equal(await send('postmaster@agents.test'), 550, 'not the name of an agent')
  t.equal(await send(`${String(other['id'])}@agents.test`), 550, 'an agent without an address')
  await s.ok('agent.inbox', { id: other['id'] })
  await s.ok('agent.update', { id: other['id'], status: 'inactive' })
  t.equal(await send(`${String(other['id'])}@agents.test`), 550, 'an inactive agent')
  t.equal((await received()).length, before)
})

t.test('a message that is too large is rejected, and a truncated one is dropped', async (t) => {
  const before = (await received()).length
  const large = { from: 'ada@example.org', to: address, text: 'x'.repeat(300_000) }
  t.equal(
    code(
      await transport()
        .sendMail(large)
        .catch((error: unknown) => error),
    ),
    552,
  )
  await new Promise<void>((done) => {
    const socket = connect(port, '127.0.0.1')
    const lines = [
      'EHLO mail.example.org',
      'MAIL FROM:<ada@example.org>',
      `RCPT TO:<${address}>`,
      'DATA',
    ]
    socket.on('data', (data) => {
      const line = lines.shift()
      if (line !== undefined) socket.write(`${line}\r\n`)
      else if (data.toString().startsWith('354')) {
        socket.write('Subject: half\r\n\r\nhalf a mess')
        socket.destroy()
      }
    })
    socket.on('close', () => done())
  })
  t.equal((await received()).length, before)
})

t.test('a message made to exhaust a parser is refused, and the next one is accepted', async (t) => {
  const before = (await received()).length
  const send = (text: string) =>
    transport()
      .sendMail({ envelope: { from: 'eve@forged.example', to: address }, raw: text })
      .then(
        () => 'accepted',
        (error: unknown) => (error as { response?: string }).response,
      )
  t.match(
    await send(`From: ${'a@b.c, '.repeat(25_000)}\r\n\r\nx`),
    /^554 5\.6\.0 The message has a header of more than 131072 bytes/,
  )
  t.equal(await send(`From: a@b.c\r\n\r\nHello`), 'accepted')
  t.equal((await received()).length, before + 1)
})

t.test('the catalog lists the email event if email is configured', async (t) => {
  const catalog = await s.ok('catalog.events')
  t.match(
    listOf(catalog).find(({ prefix }) => prefix === 'email'),
    { readiness: 'ready', event_types: [{ name: 'email.received' }] },
  )
  t.notOk(listOf(catalog, 'reserved_prefixes').some(({ prefix }) => prefix === 'email'))
})
