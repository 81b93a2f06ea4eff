/** SMTP conversations with the listener: their duration, and the addresses that it accepts. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { listenForMail } from '../../../nodes/mail/listener.ts'
import { createMailReader } from '../../../nodes/mail/reader.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { ManualClock, silentLog } from '../../support/memory.ts'

const agent = 'agt_01M8K4XVA1B5B0ZWM561BEE8ZN'

/** Starts a listener for one agent, and opens a connection to it. */
async function connected(t: Test, domain: string) {
  const clock = new ManualClock()
  const logged: string[] = []
  const lookups: string[] = []
  const note = ({ event }: { readonly event: string }): void => void logged.push(event)
  const world = fakeWorld({
    log: { ...silentLog, error: note, warn: note, debug: note },
    later: (ms: number, run: () => void) => clock.later(ms, run),
    everywhere: async () => {
      lookups.push(domain)
      return [{ project: 'prj_1' }]
    },
    view: async (_: string, __: string, { id }: { readonly id: string }) =>
      id === agent
        ? { id, status: 'active', email_address: 'any' }
        : { refused: 'not_found', message: '' },
  })
  const settings = { host: '127.0.0.1', port: 0, domain, limit: 1000 }
  const listener = await listenForMail(world, settings, createMailReader(1000, [], world.later))
  t.teardown(() => listener.stop())
  const open = async () => {
    const socket = connect(listener.port, '127.0.0.1')
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
    await once(socket, 'data')
    const say = async (line: string): Promise<string> => {
      socket.write(`${line}\r\n`)
      const [reply] = (await once(socket, 'data')) as [Buffer]
      return reply.toString()
    }
    return { socket, say }
  }
  return { ...(await open()), listener, open, clock, lookups, logged, stop: () => listener.stop() }
}

t.test('a connection ends after ten minutes, even if it is not silent', async (t) => {
  const { clock, socket, say } = await connected(t, 'agents.example')
  await clock.advance(599_000)
  t.match(await say('NOOP'), /^250/)
  const closed = once(socket, 'close')
  await clock.advance(1000)
  await closed
  t.pass('the connection was ended')
})

t.test('the domain of an address is compared in any case and form', async (t) => {
  const domains: Readonly<Record<string, readonly string[]>> = {
    'agents.example': ['agents.example', 'AGENTS.example'],
    'xn--mnchen-3ya.example': [
      'xn--mnchen-3ya.example',
      'XN--MNCHEN-3YA.example',
      'münchen.example',
    ],
  }
  for (const [domain, given] of Object.entries(domains)) {
    const { say } = await connected(t, domain)
    await say('EHLO mail.example')
    await say('MAIL FROM:<ada@example.org> SMTPUTF8')
    for (const one of given) t.match(await say(`RCPT TO:<${agent}@${one}>`), /^250/, one)
    for (const one of [`x.${domain}`, 'example', `${domain}.example`])
      t.match(await say(`RCPT TO:<${agent}@${one}>`), /^550/, one)
  }
})

t.test('a client that disconnects during a message is not an error', async (t) => {
  const { socket, say, logged, stop } = await connected(t, 'agents.example')
  await say('EHLO mail.example')
  await say('MAIL FROM:<ada@example.org>')
  await say(`RCPT TO:<${agent}@agents.example>`)
  t.match(await say('DATA'), /^354/)
  socket.end('Subject: half a mess')
  await once(socket, 'close')
  await stop()
  t.strictSame(logged, ['mail_connection_lost'])
})

t.test('one address can hold a quarter of the connections', async (t) => {
  const { listener, open } = await connected(t, 'agents.example')
  const others = await Promise.all(Array.from({ length: 24 }, open))
  const greeted = async (): Promise<string> => {
    const socket = connect(listener.port, '127.0.0.1')
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
    const [greeting] = (await once(socket, 'data')) as [Buffer]
    return greeting.toString()
  }
  t.match(await greeted(), /^421 4\.7\.0 Too many connections from this address/)
  t.match(await greeted(), /^421/, 'and a refused connection is not counted')
  for (const { socket } of others.slice(0, 2)) socket.destroy()
  let greeting = ''
  for (let n = 0; n < 100 && !greeting.startsWith('220'); n++) greeting = await greeted()
  t.match(greeting, /^220/, 'another connection is accepted after some have ended')
})

t.test('the number of unknown recipients of one address is limited', async (t) => {
  const { clock, lookups, say, open } = await connected(t, 'agents.example')
  const unknown = `RCPT TO:<agt_${'0'.repeat(26)}@agents.example>`
  const known = `RCPT TO:<${agent}@agents.example>`
  await say('EHLO mail.example')
  await say('MAIL FROM:<ada@example.org>')
  for (let n = 0; n < 600; n++) await say(unknown)
  t.equal(lookups.length, 600)
  t.match(await say(unknown), /^451 4\.7\.1/)
  const other = await open()
  await other.say('EHLO mail.example')
  await other.say('MAIL FROM:<ada@example.org>')
  t.match(await other.say(known), /^451 4\.7\.1/, 'on every connection')
  t.equal(lookups.length, 600, 'without a lookup')
  await clock.advance(60_000)
  t.match(await other.say(known), /^250/)
  t.match(await say(unknown), /^550/)
})

t.test('the size of all messages in memory is limited', async (t) => {
  const { open } = await connected(t, 'agents.example')
  const begun = async () => {
    const { socket, say } = await open()
    await say('EHLO mail.example')
    await say('MAIL FROM:<ada@example.org>')
    await say(`RCPT TO:<${agent}@agents.example>`)
    await say('DATA')
    return { socket, say }
  }
  const body = `${'x'.repeat(994)}\r\n`
  const others = await Promise.all(Array.from({ length: 16 }, begun))
  for (const { socket } of others) socket.write(body)
  const { say } = await begun()
  t.match(await say(`${body}.`), /^451 4\.3\.1/)
  for (const { socket } of others) socket.destroy()
})
