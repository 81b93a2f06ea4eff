/** Reading hostile messages in threads: the process stays responsive, and the reader usable. */
import t from 'tap'
import { createMailReader } from '../../../nodes/mail/reader.ts'

const later = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}
const transaction = { ip: '127.0.0.1', helo: 'mail.example', sender: '', mta: 'agents.example' }
/** A DNS server that does not answer, so that nothing leaves this machine. */
const NO_DNS = ['127.0.0.1:9']
const message = (text: string) => ({ raw: Buffer.from(text), transaction, at: 0 })
const signatures = (count: number): string =>
  Array.from(
    { length: count },
    (_, n) =>
      `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=a.example; s=s; h=from; l=${n}; bh=A; b=B\r\n`,
  ).join('')

t.test('a message is read, and the thread is used again', async (t) => {
  const reader = createMailReader(10_000_000, NO_DNS, later)
  t.teardown(() => reader.stop())
  const text = 'From: ada@example.org\r\nMessage-ID: <1@example.org>\r\nSubject: é\r\n\r\nHello\r\n'
  for (let n = 0; n < 3; n++)
    t.match(await reader.read(message(text)), {
      message_id: '1@example.org',
      content: { from: 'ada@example.org', subject: 'é', text: 'Hello\n' },
    })
})

t.test('automatic messages are marked', async (t) => {
  const reader = createMailReader(10_000_000, NO_DNS, later)
  t.teardown(() => reader.stop())
  const automatic = async (fields: readonly string[], sender = 'ada@example.org') => {
    const text = ['From: ada@example.org', ...fields, '', 'Hello', ''].join('\r\n')
    const read = await reader.read({ ...message(text), transaction: { ...transaction, sender } })
    return 'content' in read && read.content['automatic']
  }
  t.equal(await automatic([]), false)
  t.equal(await automatic([], ''), true, 'a null return path')
  for (const field of [
    'Auto-Submitted: auto-replied',
    'auto-submitted: Auto-Generated (vacation)',
    'Auto-Submitted: auto-notified; owner-email="a@b.c"',
    'Auto-Submitted: no\r\nAuto-Submitted: auto-replied',
    'Precedence: bulk',
    'Precedence: Auto_Reply',
    'Precedence: junk',
  ])
    t.equal(await automatic([field]), true, field)
  for (const field of [
    'Auto-Submitted: no',
    'Auto-Submitted: No (a person)',
    'Auto-Submitted:',
    'Precedence: list',
    'Precedence: first-class',
  ])
    t.equal(await automatic([field]), false, field)
})

t.test('messages made to exhaust a parser are refused within limits', async (t) => {
  const reader = createMailReader(10_000_000, NO_DNS, later)
  t.teardown(() => reader.stop())
  const from = `From: a@b.c\r\n${signatures(10)}`
  const refused: Readonly<Record<string, string>> = {
    [`${from}\r\n${'\n'.repeat(4_000_000)}`]: 'has too many empty lines',
    [`${from}\r\n${' \t\r\n'.repeat(110_000)}`]: 'has too many empty lines',
    [`${from}\r\n${'a\n'.repeat(1_000_000)}`]: 'has too many lines',
    [`From: ${'a@b.c, '.repeat(60_000)}\r\n\r\n`]: 'has a header of more than 131072 bytes',
    [`From: ${'a@b.c, '.repeat(60_000)}`]: 'has a header of more than 131072 bytes',
    [`From: a@b.c\r\nX: y\r\n${' \n'.repeat(3000)}\r\n`]: 'has a header of more than 2000 lines',
  }
  for (const [text, error] of Object.entries(refused))
    t.strictSame(await reader.read(message(text)), { error }, error)
  for (const text of [
    `From: a@b.c\r\nReceived: ${'a '.repeat(60_000)}\r\n\r\n`,
    `${from}\r\n${'x'.repeat(500_000)}`,
    `${from}X: y\r\n\r\n${`${'x'.repeat(70)}\n`.repeat(50_000)}`,
  ])
    t.match(await reader.read(message(text)), { content: { authentication: {} } })
})

t.test('a message that takes too long to read ends only its thread', async (t) => {
  const atOnce = (_ms: number, run: () => void): (() => void) => {
    const turn = setImmediate(run)
    return () => clearImmediate(turn)
  }
  const reader = createMailReader(10_000_000, NO_DNS, atOnce)
  t.teardown(() => reader.stop())
  const slow = message(`From: a@b.c\r\n${signatures(10)}\r\n${'x'.repeat(1_000_000)}`)
  for (let n = 0; n < 2; n++) await t.rejects(reader.read(slow), /took too long to read/)
})

t.test('after a fault of a thread, the message may be read later', async (t) => {
  const reader = createMailReader(10_000_000, ['not an address'], later)
  t.teardown(() => reader.stop())
  await t.rejects(reader.read(message('From: a@b.c\r\n\r\n')))
})
