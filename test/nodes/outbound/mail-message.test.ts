/**
 * E-mail messages as event payloads: limits, plain text from HTML, and messages designed to exhaust
 * a parser.
 */
import t from 'tap'
import { eventOf, messageIdOf, parseMessage, plainTextOf } from '../../../nodes/mail/message.ts'

const received = {
  agent_id: 'agt_1',
  at: Date.UTC(2031, 1, 3),
  authenticity: { spf: 'none', dkim: [], dmarc: 'none' },
}
const parse = async (raw: string) => {
  const mail = await parseMessage(Buffer.from(raw))
  return eventOf(mail, messageIdOf(mail) ?? 'made', received)
}

t.test('HTML without a plain part is converted to text', async (t) => {
  t.equal(
    plainTextOf('<style>p{}</style><p>Fish &amp; chips</p><script>x("</p>")</script><br>2 &lt; 3'),
    'Fish & chips\n2 < 3',
  )
  t.match(await parse('Content-Type: text/html\r\n\r\n<p>Hello</p>'), {
    text: 'Hello',
    html: /<p>/,
  })
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
