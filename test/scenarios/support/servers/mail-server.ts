/**
 * A minimal SMTP server for tests: it accepts every message, and rejects recipients as configured.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'

interface Letter {
  readonly from: string
  readonly to: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}
export interface MailServer {
  readonly port: number
  readonly letters: readonly Letter[]
  /** `user:password` of each authentication. */
  readonly logins: readonly string[]
  close(): Promise<void>
}

/**
 * Decodes the content transfer encodings base64 and quoted-printable. Other text is returned
 * unchanged.
 */
function decode(text: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(text, 'base64').toString()
  if (encoding !== 'quoted-printable') return text
  return Buffer.from(
    text
      .replace(/=\r\n/g, '')
      .replace(/=([0-9A-F]{2})/g, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      ),
    'latin1',
  ).toString()
}
/** Decodes the encoded words of a header (RFC 2047). */
const readable = (value: string): string =>
  value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([QB])\?([^?]*)\?=/gi, (_, kind: string, text: string) =>
      kind.toUpperCase() === 'B'
        ? decode(text, 'base64')
        : decode(text.replaceAll('_', ' '), 'quoted-printable'),
    )

function letterOf(from: string, to: string, raw: string): Letter {
  const end = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      readable(line.slice(line.indexOf(':') + 1).trim()),
    ]),
  )
  return {
    from,
    to,
    headers,
    text: decode(
      raw.slice(end + 4).replace(/^\.\./gm, '.'),
      headers['content-transfer-encoding'],
    ).replaceAll('\r\n', '\n'),
  }
}

/**
 * Starts the server on loopback.
 * @param judge returns the SMTP status code for a recipient. `times` counts the attempts for this
 *   recipient, starting at 1. Code 250 accepts the recipient.
 */
export async function mailServer(
  judge: (address: string, times: number) => number = () => 250,
): Promise<MailServer> {
  const letters: Letter[] = []
  const logins: string[] = []
  const asked = new Map<string, number>()
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => {})
    let from = ''
    let to = ''
    let unread = ''
    let inLetter = false
    const say = (line: string) => socket.write(`${line}\r\n`)
    const hear = (line: string): void => {
      const [word = ''] = line.toUpperCase().split(' ')
      const address = /<([^>]*)>/.exec(line)?.[1] ?? ''
      if (word === 'EHLO') say('250-mail.test\r\n250 AUTH PLAIN')
      else if (word === 'AUTH') {
        logins.push(
          Buffer.from(line.split(' ')[2] ?? '', 'base64')
            .toString()
            .split('\0')
            .slice(1)
            .join(':'),
        )
        say('235 welcome')
      } else if (word === 'MAIL') {
        from = address
        say('250 ok')
      } else if (word === 'RCPT') {
        const times = (asked.get(address) ?? 0) + 1
        asked.set(address, times)
        to = address
        const status = judge(address, times)
        say(`${status} ${status === 250 ? 'ok' : 'no'}`)
      } else if (word === 'DATA') {
        inLetter = true
        say('354 go on')
      } else if (word === 'QUIT') {
        say('221 bye')
        socket.end()
      } else say('250 ok')
    }
    socket.on('data', (chunk) => {
      unread += chunk.toString('latin1')
      for (;;) {
        const mark = inLetter ? '\r\n.\r\n' : '\r\n'
        const end = unread.indexOf(mark)
        if (end < 0) return
        const part = unread.slice(0, end)
        unread = unread.slice(end + mark.length)
        if (!inLetter) {
          hear(part)
          continue
        }
        inLetter = false
        letters.push(letterOf(from, to, Buffer.from(part, 'latin1').toString()))
        say('250 taken')
      }
    })
    say('220 mail.test')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    port: (server.address() as AddressInfo).port,
    letters,
    logins,
    close: () =>
      new Promise<void>((done) => {
        for (const socket of open) socket.destroy()
        server.close(() => done())
      }),
  }
}
