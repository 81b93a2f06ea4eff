/** Real sockets against a real server: the events that a worker depends on. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import type { SocketEvents } from '../../../client/worker/ports.ts'
import { dial } from '../../../client/worker/socket.ts'

/**
 * Starts a server that accepts WebSocket upgrades if `status` is 101, and otherwise rejects them
 * with `status`. Returns its URL.
 */
async function server(
  t: Test,
  status: number,
  open: (socket: WebSocket, key: string) => void = () => {},
): Promise<string> {
  const http = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  http.on('upgrade', (request, socket, head) => {
    if (status !== 101)
      return void socket.end(
        `HTTP/1.1 ${status} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      )
    sockets.handleUpgrade(request, socket, head, (opened) =>
      open(opened, String(request.headers.authorization)),
    )
  })
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready))
  t.teardown(() => {
    http.closeAllConnections()
    for (const client of sockets.clients) client.terminate()
    http.close()
  })
  return `ws://127.0.0.1:${(http.address() as AddressInfo).port}/`
}
/**
 * Returns socket event handlers that append to a log, and promises for the first event of each
 * kind.
 */
function heard() {
  const log: unknown[][] = []
  const waiting = new Map<string, () => void>()
  const note = (...what: unknown[]) => {
    log.push(what)
    waiting.get(String(what[0]))?.()
  }
  const events: SocketEvents = {
    opened: () => note('opened'),
    refused: (status) => note('refused', status),
    frame: (text) => note('frame', text),
    alive: () => note('alive'),
    closed: (code) => note('closed', code),
  }
  const until = (kind: string) =>
    new Promise<void>((done) => {
      if (log.some(([known]) => known === kind)) done()
      else waiting.set(kind, done)
    })
  return { log, events, until }
}

t.test('carries frames in both directions, with the key, until the server closes', async (t) => {
  const url = await server(t, 101, (socket, key) => {
    socket.send(JSON.stringify({ key }))
    socket.on('message', (data) => {
      socket.send(String(data))
      socket.close(1012, 'restart')
    })
  })
  const { log, events, until } = heard()
  const socket = dial(url, { authorization: 'Bearer bat_k' }, events)
  await until('frame')
  socket.send('hello')
  await until('closed')
  t.strictSame(log, [
    ['opened'],
    ['frame', '{"key":"Bearer bat_k"}'],
    ['frame', 'hello'],
    ['closed', 1012],
  ])
  socket.send('into the void')
  socket.drop()
})

t.test('a live server answers a ping', async (t) => {
  const { events, until } = heard()
  const socket = dial(await server(t, 101), {}, events)
  await until('opened')
  socket.ping()
  await until('alive')
  socket.close(1000)
  await until('closed')
})

t.test('a refused upgrade reports its status once', async (t) => {
  for (const status of [401, 403, 404, 429, 503]) {
    const { log, events, until } = heard()
    dial(await server(t, status), {}, events)
    await until('refused')
    await new Promise((done) => setImmediate(done))
    t.strictSame(log, [['refused', status]])
  }
})

t.test('an unreachable server is reported as refused without a status', async (t) => {
  const { log, events, until } = heard()
  const socket = dial('ws://127.0.0.1:9/', {}, events)
  await until('refused')
  t.strictSame(log, [['refused', 0]])
  socket.drop()
})

t.test('a dropped socket emits no further events', async (t) => {
  const { log, events } = heard()
  const socket = dial(await server(t, 101), {}, events)
  socket.drop()
  await new Promise((done) => setTimeout(done, 30))
  t.strictSame(log, [])
})

t.test('a socket whose peer is silent is closed at once', { timeout: 10_000 }, async (t) => {
  const { log, events, until } = heard()
  const url = await server(t, 101, (opened) => opened.pause())
  const socket = dial(url, {}, events)
  await until('opened')
  socket.close(1000)
  await until('closed')
  t.strictSame(log, [['opened'], ['closed', 1006]])
})
