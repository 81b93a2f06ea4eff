/** A client of the multiplexed stream that does not read for a while. */
import { connect } from 'node:net'
import t from 'tap'
import { service } from '../../support/service.ts'
import { instant, until } from '../support/given.ts'
import { editor } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const ann = await editor(s, 'ann')

t.test('a client that does not read continues from the view', async (t) => {
  const { hostname, port } = new URL(s.url)
  const big = 'x'.repeat(39_000)
  const channel = await ann.ok('channel.create', { name: 'flood' })
  const body = JSON.stringify({
    subscriptions: [
      { id: 'channel', project: 'default', topic: 'channel', target: String(channel['id']) },
      { id: 'runs', project: 'default', topic: 'runs' },
    ],
  })
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /v1/streams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ann.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  let text = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await until(
    async () => text,
    (all) => all.split('subscription.started').length === 3,
  )
  socket.pause()
  const messages = 200
  for (let n = 0; n < messages; n++)
    await ann.ok('channel.send', { id: channel['id'], content: `${n}:${big}` })
  const run = await s.ok('run.start', { spec: instant() })
  socket.resume()
  const numbers = () => [...text.matchAll(/"content":"(\d+):x/g)].map(([, n]) => Number(n))
  await until(
    async () => numbers().length,
    (count) => count >= messages && text.includes(String(run['id'])),
  )
  t.strictSame(
    numbers(),
    Array.from({ length: messages }, (_, n) => n),
  )
  socket.destroy()
  const metrics = await until(
    async () => (await s.raw('GET', '/metrics')).text,
    (all) => /^baton_sse_streams_open 0$/m.test(all) && /^baton_followers_open 0$/m.test(all),
  )
  t.match(metrics, /^baton_stream_fallbacks_total [1-9]/m)
})
