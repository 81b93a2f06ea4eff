/**
 * Streams to a client that stops reading for a while. For writes of any size, every byte arrives
 * once and in order.
 */

import uWS from 'uWebSockets.js'
import { connect } from 'node:net'
import t from 'tap'
import { Exchange } from '../../../gateway/http/respond.ts'

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
