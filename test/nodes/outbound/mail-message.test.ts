/**
 * E-mail messages as event payloads: limits, plain text from HTML, and messages designed to exhaust
 * a parser.
 */
import t from 'tap'
import { eventOf, messageIdOf, parseMessage } from '../../../nodes/mail/message.ts'

const received = {
  at: Date.UTC(2031, 1, 3),
  authenticity: { spf: 'none', dkim: [], dmarc: 'none' },
  sender: 'ada@example.org',
}
const parse = async (raw: string) => {
  const mail = await parseMessage(Buffer.from(raw))
  return eventOf(mail, messageIdOf(mail) ?? 'made', received)
}

t.test('HTML without a plain part is converted to text', async (t) => {
  t.match(await parse('Content-Type: text/html\r\n\r\n<p>Hello</p>'), {
    text: 'Hello',
    html: /<p>/,
  })
  const parts = ['text/plain\r\n\r\n \r\n', 'text/html\r\n\r\n<p>Hello</p>\r\n']
  t.match(
    await parse(
      'Content-Type: multipart/alternative; boundary=b\r\n\r\n' +
        `${parts.map((part) => `--b\r\nContent-Type: ${part}`).join('')}--b--`,
    ),
    { text: 'Hello' },
    'a blank plain part counts as none',
  )
})

t.test('a cut leaves no half of a surrogate pair', async (t) => {
  const event = await parse(
    `Subject: ${'s'.repeat(997)}😀\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${'x'.repeat(99_999)}😀`,
  )
  t.equal(event['subject'], 's'.repeat(997))
  t.equal(event['text'], 'x'.repeat(99_999))
  t.equal(event['truncated'], true)
})

t.test('long members are cut, and the event is marked as truncated', async (t) => {
  const event = await parse(`Subject: ${'s'.repeat(5000)}\r\n\r\n${'x'.repeat(200_000)}`)
  t.equal(String(event['text']).length, 100_000)
  t.equal(String(event['subject']).length, 998)
  t.equal(event['truncated'], true)
  t.ok(JSON.stringify(event).length < 262_144)
})

t.test('messages made to exhaust a parser cost bounded work', async (t) => {
  const deep = Array.from(
    { length: 20_000 },
    (_, i) => `Content-Type: multipart/mixed; boundary="b${i}"\r\n\r\n--b${i}\r\n`,
  ).join('')
  const hostile: Readonly<Record<string, string>> = {
    'nested parts': deep,
    'nested messages': 'Content-Type: message/rfc822\r\n\r\n'.repeat(20_000),
    'many headers': `${'X-A: b\r\n'.repeat(100_000)}\r\nbody`,
    'one long header': `To: ${'a@b.c, '.repeat(100_000)}\r\n\r\nbody`,
    'nested comments in an address': `From: ${'('.repeat(100_000)}a@b.c\r\n\r\nbody`,
    'nested groups in an address': `To: ${'g:'.repeat(50_000)};\r\n\r\nbody`,
    'nested elements': `Content-Type: text/html\r\n\r\n${'<div>'.repeat(100_000)}`,
    'unclosed elements': `Content-Type: text/html\r\n\r\n${'<script '.repeat(60_000)}`,
    'encoded words': `Subject: ${'=?utf-8?Q?a?= '.repeat(50_000)}\r\n\r\nbody`,
    'not text at all': Buffer.alloc(100_000, 0xff).toString('latin1'),
  }
  for (const [name, raw] of Object.entries(hostile)) {
    const event = await parse(raw).catch(() => ({}))
    t.ok(JSON.stringify(event).length < 400_000, name)
  }
})
