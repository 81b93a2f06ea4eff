/** Large bodies over real sockets: the credential comes first, and their memory is bounded. */
import uWS, { type HttpResponse } from 'uWebSockets.js'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createSemaphore, type Semaphore } from '../../../gateway/files/semaphore.ts'
import { type BodyAdmission, Incoming } from '../../../gateway/http/request.ts'
import { gateway, until } from '../support/edge-world.ts'

const KIB = 1024
const MIB = 1024 * KIB
const LIMIT = 16 * MIB

/** Opens a connection. Its `text` grows as data arrives. */
async function dial(t: Test, port: number) {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  const opened = { socket, text: '', send: (bytes: string | Buffer) => void socket.write(bytes) }
  socket.on('data', (chunk: Buffer) => {
    opened.text += chunk.toString('latin1')
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  return opened
}
const head = (path: string, lines: readonly string[] = [], length = LIMIT): string =>
  [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${length}`, ...lines, '', ''].join('\r\n')

/** Serves requests whose bodies are admitted as stated. Each of them stays open. */
async function serving(t: Test, given: Omit<BodyAdmission, 'later'>) {
  const deadlines = new Set<() => void>()
  const later = (_: number, run: () => void) => {
    deadlines.add(run)
    return () => void deadlines.delete(run)
  }
  const admission: BodyAdmission = { ...given, later }
  const ready: Incoming[] = []
  const all: { incoming: Incoming; res: HttpResponse; gone: boolean }[] = []
  const app = uWS.App().any('/*', (res, req) => {
    const incoming = new Incoming(res, req, {
      purpose: 'other',
      method: 'POST',
      slots: 0,
      limit: LIMIT,
      cors: false,
    })
    const one = { incoming, res, gone: false }
    all.push(one)
    res.onAborted(() => {
      one.gone = true
      incoming.gone()
      incoming.end()
    })
    incoming.receive(res, admission, { ready: () => void ready.push(incoming) })
  })
  const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (one) => (one ? resolve(one) : reject(new Error('cannot listen')))),
  )
  t.teardown(() => app.close())
  return { port: uWS.us_socket_local_port(token as never), ready, all, deadlines }
}

t.test('a body without a known credential is refused before it has arrived', async (t) => {
  const at = await gateway()
  t.teardown(() => at.server.stop())
  const path = '/v1/projects/default/blueprints/apply'
  for (const lines of [[], ['Authorization: Bearer bat_0']]) {
    const clients = await Promise.all(Array.from({ length: 30 }, () => dial(t, at.port)))
    for (const { send } of clients) send(head(path, lines) + 'x'.repeat(200 * KIB))
    await until(() => clients.every(({ text }) => text.includes('"unauthorized"')), 'refusals')
    t.ok(clients.every(({ text }) => text.startsWith('HTTP/1.1 401')))
    const [first] = clients
    first?.send(Buffer.alloc(LIMIT - 200 * KIB, ' '))
    first?.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await until(() => first?.text.includes('HTTP/1.1 200') === true, 'the next response')
    t.pass('the connection serves further requests')
  }
  const closing = await dial(t, at.port)
  closing.send(head(path, ['Connection: close'], MIB))
  closing.send(Buffer.alloc(MIB - 1))
  closing.send(' ')
  await until(() => closing.text.includes('"unauthorized"'), 'the refusal before the close')
  const spaces = ' '.repeat(2 * MIB)
  t.equal((await at.call('POST', path, `${spaces}{`)).status, 400, 'a known credential is read')
})

t.test('unknown requests hold no memory, however many they are', async (t) => {
  const bodyMemory = createSemaphore(64 * MIB)
  const isKnown = async () => false
  const { port, ready } = await serving(t, { isKnown, bodyMemory })
  const clients = await Promise.all(Array.from({ length: 30 }, () => dial(t, port)))
  for (const { send } of clients) send(head('/') + 'x'.repeat(2 * MIB))
  await until(() => ready.length === 30, 'the end of all bodies')
  t.equal(bodyMemory.held, 0)
  t.ok(ready.every(({ broken, body }) => broken === 'unread' && body === ''))
})

const held = (memory: Semaphore, bytes: number) => until(() => memory.held === bytes, `${bytes}`)
t.test('the memory of large bodies is reserved, refused and released', async (t) => {
  const bodyMemory = createSemaphore(2 * LIMIT)
  const { port, ready, all } = await serving(t, { isKnown: async () => true, bodyMemory })
  const open = async (length: number, sent: number) => {
    const one = await dial(t, port)
    one.send(head('/', [], length) + 'x'.repeat(sent))
    return one
  }
  await open(MIB, MIB)
  await until(() => ready.length === 1, 'a body that needs no reservation')
  t.equal(ready[0]?.body.length, MIB)
  t.equal(bodyMemory.held, 0)
  const first = await open(LIMIT, 2 * MIB)
  const second = await open(LIMIT, 2 * MIB)
  await held(bodyMemory, 2 * LIMIT)
  await open(2 * MIB, 2 * MIB)
  await until(() => ready.length === 2, 'a body for which no memory is free')
  t.match(ready[1], { broken: 'no_memory', body: '' })
  first.socket.destroy()
  await held(bodyMemory, LIMIT)
  t.ok(all[1]?.gone, 'an aborted request releases its memory')
  second.send(Buffer.alloc(LIMIT - 2 * MIB, 'y'))
  await until(() => ready.length === 3, 'a complete body')
  t.equal(ready[2]?.body.length, LIMIT)
  t.equal(ready[2]?.broken, undefined)
  ready[2]?.end()
  t.equal(bodyMemory.held, 0)
})

t.test('routes without credentials reserve the memory of smaller bodies', async (t) => {
  const bodyMemory = createSemaphore(MIB)
  const { port, ready } = await serving(t, { bodyMemory })
  const clients = await Promise.all(Array.from({ length: 30 }, () => dial(t, port)))
  for (const { send } of clients) send(head('/', [], 256 * KIB) + 'x'.repeat(200 * KIB))
  await until(() => ready.length === 26, 'the refusal of all bodies but four')
  t.equal(bodyMemory.held, MIB)
  t.ok(ready.every(({ broken }) => broken === 'no_memory'))
  const small = await dial(t, port)
  small.send(head('/', [], 64 * KIB) + 'x'.repeat(64 * KIB))
  await until(() => ready.length === 27, 'a small body')
  t.equal(ready[26]?.body.length, 64 * KIB)
})

t.test('a body without a credential that is late loses its memory', async (t) => {
  const bodyMemory = createSemaphore(MIB)
  const { port, ready, deadlines } = await serving(t, { bodyMemory })
  const clients = await Promise.all(Array.from({ length: 3 }, () => dial(t, port)))
  for (const { send } of clients) send(head('/', [], 256 * KIB) + 'x'.repeat(200 * KIB))
  await held(bodyMemory, 3 * 256 * KIB)
  const [first, second] = clients
  first?.socket.destroy()
  second?.send('x'.repeat(56 * KIB))
  await until(() => deadlines.size === 1, 'the end of two bodies')
  ready[0]?.end()
  t.equal(bodyMemory.held, 256 * KIB)
  for (const expire of deadlines) expire()
  t.equal(bodyMemory.held, 0)
  t.match(ready, [{ broken: undefined }, { broken: 'no_memory', body: '' }])
})

t.test('a known credential has no such deadline', async (t) => {
  const bodyMemory = createSemaphore(LIMIT)
  const { port, deadlines } = await serving(t, { isKnown: async () => true, bodyMemory })
  const one = await dial(t, port)
  one.send(head('/') + 'x'.repeat(2 * MIB))
  await held(bodyMemory, LIMIT)
  t.equal(deadlines.size, 0)
})

t.test('a request that finds no memory is answered 503 and leaves none reserved', async (t) => {
  const at = await gateway()
  t.teardown(() => at.server.stop())
  const path = '/v1/projects/default/blueprints/apply'
  const auth = [`Authorization: Bearer ${at.root}`, 'Content-Type: application/json']
  const clients = await Promise.all(Array.from({ length: 5 }, () => dial(t, at.port)))
  for (const { send } of clients) send(head(path, auth) + ' '.repeat(2 * MIB))
  const refused = () => clients.filter(({ text }) => text !== '')
  await until(() => refused().length === 1, 'one refusal')
  t.match(refused()[0]?.text, /^HTTP\/1\.1 503.*Retry-After: 1\r\n.*"service_unavailable"/s)
  const [one] = clients.filter(({ text }) => text === '')
  one?.send(Buffer.alloc(LIMIT - 2 * MIB, ' '))
  await until(() => one?.text.startsWith('HTTP/1.1 400') === true, 'the response')
  const again = await at.call('POST', path, ' '.repeat(2 * MIB))
  t.equal(again.status, 400, 'the memory of an answered request is free')
})
