/** The authentication of messages with hostile headers, and the author that DMARC refers to. */
import t from 'tap'
import { authenticityOf } from '../../../nodes/mail/authenticity.ts'
import { authorOf, parseMessage } from '../../../nodes/mail/message.ts'
import { measureMessage } from '../../../nodes/mail/raw-message.ts'

const records: Readonly<Record<string, string>> = {
  'evil.example': 'v=spf1 ip4:127.0.0.1 -all',
  '_dmarc.evil.example': 'v=DMARC1; p=none',
}
const resolver = async (name: string): Promise<string[][]> => {
  const found = records[name]
  if (found === undefined) throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
  return [[found]]
}
/** Authenticates a message that a server of evil.example sends. */
async function check(header: string) {
  const raw = Buffer.from(`${header}\r\n\r\ntext\r\n`)
  const size = measureMessage(raw)
  if ('error' in size) throw new Error(size.error)
  const transaction = {
    ip: '127.0.0.1',
    helo: 'mail.evil.example',
    sender: 'eve@evil.example',
    mta: 'agents.example',
  }
  const author = authorOf(await parseMessage(raw))
  const found = await authenticityOf({ raw, header: size.header, author }, transaction, resolver)
  return { author, ...found }
}

t.test('a message with fields of other systems changes nothing in this process', async (t) => {
  t.teardown(() => {
    delete (Object.prototype as { polluted?: unknown }).polluted
  })
  for (const name of ['ARC-Authentication-Results', 'arc-authentication-results ', 'ARC-\r\n x'])
    for (const before of ['', 'From: eve@evil.example\r\n', ' ']) {
      await check(`${before}${name}: i=1; m; spf=pass __proto__.polluted=yes\r\nX: y`)
      t.notOk('polluted' in {}, `${before}${name}`)
    }
})

t.test('DMARC refers to the author that the event shows', async (t) => {
  t.match(await check('From: Eve <EVE@evil.example>'), {
    author: 'eve@evil.example',
    spf: 'pass',
    dmarc: 'pass',
  })
  const forged = [
    'From: <=?utf-8*@evil.example?Q?boss=40good.example?=>',
    'From: eve@evil.example?Q?.good.example',
    'From: eve@evil.example#.good.example',
    'From: <eve@evil.example/.good.example>',
    'From: <eve@evil.example@good.example>',
    'From: boss@good.example\r\nFrom: eve@evil.example',
    'From: boss@good.example, eve@evil.example',
    'From: staff: boss@good.example;, eve@evil.example',
    'From: "boss@good.example" <eve@evil.example>',
    'From: boss@good.example <eve@evil.example>',
    'From: boss@good.example (<eve@evil.example>)',
    'From: (\\) boss@good.example (x) <eve@evil.example>',
    '\r\nFrom: eve@evil.example',
  ]
  for (const header of forged) {
    const { author, dmarc } = await check(header)
    t.ok(dmarc !== 'pass' || author === 'eve@evil.example', `${header}: ${author} ${dmarc}`)
  }
})
