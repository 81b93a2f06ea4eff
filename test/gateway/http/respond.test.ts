/**
 * Streams to a client that stops reading for a while. For writes of any size, every byte arrives
 * once and in order. The encoding of texts, and the headers that protect content.
 */

import uWS from 'uWebSockets.js'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Answer, Exchange, utf8 } from '../../../gateway/http/respond.ts'

/**
 * Decodes the body of a chunked response (RFC 9112, 7.1). Returns undefined if a chunk length is
 * malformed.
 */
function unchunked(answer: string): string | undefined {
  let at = answer.indexOf('\r\n\r\n') + 4
  let body = ''
  for (;;) {
    const end = answer.indexOf('\r\n', at)
    const text = answer.slice(at, end)
    if (end < 0 || !/^[0-9a-f]+$/i.test(text)) return undefined
    const size = Number.parseInt(text, 16)
    if (size === 0) return body
    body += answer.slice(end + 2, end + 2 + size)
    at = end + 2 + size + 2
  }
}

for (const size of [900, 14_999, 15_001, 60_000, 200_000]) {
  t.test(`pieces of ${size} bytes to a client that starts to read late`, async (t) => {
    const total = Math.ceil(24_000_000 / size)
    const pieces = Array.from({ length: total }, (_, n) =>
      `${n}:`.padEnd(size, String.fromCharCode(97 + (n % 26))),
    )
    let waits = 0
    const app = uWS.App().get('/', (res) => {
      const sink = new Exchange(res, 'req_1', () => {}).stream(
        { 'Content-Type': 'text/plain' },
        'begin',
      )
      let next = 0
      const go = () => {
        while (next < total && !sink.full)
          sink.write(next % 2 ? (pieces[next++] as string) : Buffer.from(pieces[next++] as string))
        if (next === total) sink.end()
        else waits++
      }
      sink.onDrain(go)
      go()
    })
    const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
      app.listen('127.0.0.1', 0, (one) =>
        one ? resolve(one) : reject(new Error('cannot listen')),
      ),
    )
    const client = connect(uWS.us_socket_local_port(token as never), '127.0.0.1')
    client.setEncoding('latin1')
    client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    const read: string[] = []
    let end = ''
    // The client reads one chunk, waits until the writer is blocked, and then continues to read.
    await new Promise<void>((begun) =>
      client.once('data', (first: string) => {
        read.push(first)
        client.pause()
        begun()
      }),
    )
    while (waits === 0) await new Promise((later) => setTimeout(later, 5))
    await new Promise<void>((ended) => {
      client.on('data', (more: string) => {
        read.push(more)
        end = (end + more).slice(-5)
        if (end === '0\r\n\r\n') ended()
      })
      client.once('close', () => ended()).once('end', () => ended())
      client.resume()
    })
    const text = read.join('')
    // To continue a blocked stream, the sink writes comments, which are not part of the content.
    t.ok(
      unchunked(text)?.replaceAll(':\n\n', '') === `begin${pieces.join('')}`,
      'all of it, once, in order',
    )
    client.destroy()
    app.close()
  })
}

// The builds of uWebSockets.js for Node 24 send such texts as ISO 8859-1.
t.test('texts without characters above U+00FF are sent as UTF-8', async (t) => {
  const text = 'Grüße'
  const app = uWS
    .App()
    .get('/answer', (res) =>
      new Exchange(res, 'req_1', () => {}).answer({ status: 200, text }, false, false),
    )
    .get('/stream', (res) => {
      const sink = new Exchange(res, 'req_1', () => {}).stream({}, text)
      sink.write(text)
      sink.end()
    })
    .ws('/socket', {
      open: (ws) => {
        ws.send(utf8(text))
        ws.end(4000, utf8(text))
      },
    })
  const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (one) => (one ? resolve(one) : reject(new Error('cannot listen')))),
  )
  t.teardown(() => app.close())
  const at = `127.0.0.1:${uWS.us_socket_local_port(token as never)}`
  t.equal(await (await fetch(`http://${at}/answer`)).text(), text)
  t.equal((await (await fetch(`http://${at}/stream`)).text()).replaceAll(':\n\n', ''), text + text)
  const socket = new WebSocket(`ws://${at}/socket`)
  const [frame] = (await once(socket, 'message')) as [Buffer]
  t.equal(frame.toString(), text)
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer]
  t.strictSame([code, reason.toString()], [4000, text])
})

t.test('content is neither guessed nor, if it is JSON, stored', async (t) => {
  const type = 'text/plain'
  const own = { 'Cache-Control': 'private', 'X-Content-Type-Options': 'nosniff' }
  const answers: Readonly<Record<string, Answer>> = {
    '/json': { status: 200, body: { key: 'secret' } },
    '/refused': { status: 403, body: {} },
    '/empty': { status: 204 },
    '/text': { status: 200, text: 'text', type },
    '/own-text': { status: 200, text: 'text', type, headers: own },
    '/own-json': { status: 412, body: {}, headers: own },
  }
  const app = uWS.App()
  for (const [path, answer] of Object.entries(answers))
    app.get(path, (res) => new Exchange(res, 'req_1', () => {}).answer(answer, false, false))
  const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (one) => (one ? resolve(one) : reject(new Error('cannot listen')))),
  )
  t.teardown(() => app.close())
  const at = `http://127.0.0.1:${uWS.us_socket_local_port(token as never)}`
  const sent: Record<string, readonly (string | null)[]> = {}
  for (const path of Object.keys(answers)) {
    const { headers } = await fetch(at + path)
    sent[path] = [headers.get('cache-control'), headers.get('x-content-type-options')]
  }
  t.strictSame(sent, {
    '/json': ['no-store', 'nosniff'],
    '/refused': ['no-store', 'nosniff'],
    '/empty': [null, null],
    '/text': [null, 'nosniff'],
    '/own-text': ['private', 'nosniff'],
    '/own-json': ['private', 'nosniff'],
  })
})
