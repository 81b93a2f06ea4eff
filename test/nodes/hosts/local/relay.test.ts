/** The relay of a sandbox: requests, sockets and TLS to the gateway, and the rules of the proxy. */
import { once } from 'node:events'
import { createServer as createHttp, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { openRelay } from '../../../../nodes/hosts/local/relay.ts'
import { createGuard } from '../../../../nodes/outbound/guard.ts'
import { socketBearerPrefix } from '../../../../protocol/workers/socket.ts'
import { dataFolder } from './stage.ts'

const names: Readonly<Record<string, readonly string[]>> = {
  'private.example': ['10.0.0.7'],
  'metadata.example': ['169.254.169.254'],
  'mixed.example': ['93.184.215.14', '127.0.0.1'],
  'own.example': ['127.0.0.1'],
}
async function relay(t: Test, allowed_hosts: readonly string[], networks: readonly string[] = []) {
  const sockets: Socket[] = []
  const gateway = createHttp((message, response) => {
    const chunks: Buffer[] = []
    message.on('data', (chunk) => chunks.push(chunk))
    message.on('end', () => {
      const { host, 'proxy-authorization': hop = 'none', authorization } = message.headers
      response.writeHead(201, { 'x-answer': 'yes' })
      const size = Buffer.concat(chunks).length
      response.end(JSON.stringify({ url: message.url, size, host, hop, authorization }))
    })
  })
  const upgrades = new WebSocketServer({ server: gateway, path: '/base/socket' })
  upgrades.on('connection', (socket) => socket.on('message', (data) => socket.send(`echo ${data}`)))
  gateway.listen(0, '127.0.0.1')
  await once(gateway, 'listening')
  const { port } = gateway.address() as AddressInfo
  const folder = dataFolder(t)
  const refused: string[] = []
  const opened = await openRelay({
    folder,
    gateway_url: `http://127.0.0.1:${port}/base`,
    allowed_hosts,
    guard: createGuard(networks, async (name) => names[name] ?? []),
    refused: (destination) => void refused.push(destination),
  })
  t.teardown(async () => {
    await opened.close()
    for (const socket of sockets) socket.destroy()
    for (const socket of upgrades.clients) socket.terminate()
    gateway.closeAllConnections()
    gateway.close()
  })
  const ask = (
    socket: 'gateway' | 'proxy',
    method: string,
    path: string,
    body = '',
    headers: Readonly<Record<string, string>> = {},
  ) =>
    new Promise<{ status: number; body: string; headers: IncomingMessage['headers'] }>(
      (resolve, reject) => {
        const socketPath = join(folder, `${socket}.sock`)
        const sent = request({ socketPath, method, path, headers, agent: false }, (answer) => {
          let text = ''
          answer.on('data', (chunk) => {
            text += chunk
          })
          answer.on('end', () =>
            resolve({ status: answer.statusCode ?? 0, body: text, headers: answer.headers }),
          )
        })
        sent.on('connect', (answer, stream, head) => {
          sockets.push(stream)
          stream.on('error', () => {})
          if (answer.statusCode !== 200) {
            stream.destroy()
            return resolve({ status: answer.statusCode ?? 0, body: String(head), headers: {} })
          }
          stream.once('data', (chunk) => {
            stream.destroy()
            resolve({ status: 200, body: String(chunk), headers: {} })
          })
          stream.write('ping')
        })
        sent.on('error', reject)
        sent.end(body)
      },
    )
  return { ask, folder, port, refused }
}

t.test('requests reach the gateway under its own name and path', async (t) => {
  const { ask, port } = await relay(t, [])
  const answer = await ask('gateway', 'POST', '/v1/x?y=1', 'x'.repeat(300_000), {
    host: 'anything',
    authorization: 'Bearer key',
    'proxy-authorization': 'secret',
  })
  t.match(answer, { status: 201, headers: { 'x-answer': 'yes' } })
  t.strictSame(JSON.parse(answer.body), {
    url: '/base/v1/x?y=1',
    size: 300_000,
    host: `127.0.0.1:${port}`,
    hop: 'none',
    authorization: 'Bearer key',
  })
  t.match(JSON.parse((await ask('gateway', 'GET', 'http://10.0.0.1/v1')).body), { url: '/base/' })
})

t.test('a worker socket needs a credential', async (t) => {
  const { folder } = await relay(t, [])
  const dial = (headers: Readonly<Record<string, string>>, protocols: string[] = []) =>
    new WebSocket(`ws+unix://${join(folder, 'gateway.sock')}:/socket`, protocols, { headers })
  const credentials = [
    () => dial({ authorization: 'Bearer key' }),
    () => dial({}, [`${socketBearerPrefix}key`]),
  ]
  for (const open of credentials) {
    const socket = open()
    await once(socket, 'open')
    socket.send('one')
    t.equal(String((await once(socket, 'message'))[0]), 'echo one')
    socket.terminate()
  }
  for (const open of [() => dial({}), () => dial({}, [`x.${socketBearerPrefix}key`])]) {
    const [error] = await once(open(), 'error')
    t.match((error as Error).message, /401/)
  }
})

t.test('an upgrade that the gateway refuses', async (t) => {
  const { folder } = await relay(t, [])
  const path = `ws+unix://${join(folder, 'gateway.sock')}:/elsewhere`
  const socket = new WebSocket(path, { headers: { authorization: 'Bearer key' } })
  const [error] = await once(socket, 'error')
  t.match((error as Error).message, /400/)
})

t.test('the proxy connects only to listed hosts with allowed addresses', async (t) => {
  const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  t.teardown(() => void echo.close())
  const { port } = echo.address() as AddressInfo
  const listed = [...Object.keys(names), '127.0.0.1'].map((name) => `${name}:${port}`)
  const { ask, refused } = await relay(t, listed)
  t.match(await ask('proxy', 'CONNECT', `127.0.0.1:${port}`), { status: 200, body: 'ping' })
  const wrong = [
    ...Object.keys(names).map((name) => `${name}:${port}`),
    '127.0.0.1:1',
    `localhost:${port}`,
    `own.example.:${port}`,
    `unlisted.example:${port}`,
  ]
  for (const target of wrong)
    t.match(await ask('proxy', 'CONNECT', target), { status: 403 }, target)
  t.strictSame(refused, wrong)
  for (const target of ['own.example', `user@own.example:${port}`, 'own.example:99999999'])
    t.match(await ask('proxy', 'CONNECT', target), { status: 400 }, target)
  const url = `http://metadata.example:${port}/latest`
  t.match(await ask('proxy', 'GET', url), { status: 403, body: /does not resolve to a public/ })
  t.match(await ask('proxy', 'GET', `https://own.example:${port}/`), { status: 400 })

  const allowing = await relay(t, listed, ['127.0.0.0/8'])
  const allowed = `own.example:${port}`
  t.match(await allowing.ask('proxy', 'CONNECT', allowed), { status: 200, body: 'ping' })
  t.match(await allowing.ask('proxy', 'CONNECT', `private.example:${port}`), { status: 403 })
})

t.test('the proxy passes requests on', async (t) => {
  const { port } = await relay(t, [])
  const { ask } = await relay(t, [`127.0.0.1:${port}`])
  const url = `http://127.0.0.1:${port}/repository?x=1`
  const { status, body } = await ask('proxy', 'POST', url, 'text', { host: 'other' })
  t.equal(status, 201)
  t.match(JSON.parse(body), { url: '/repository?x=1', size: 4, host: `127.0.0.1:${port}` })
})

t.test('a gateway that is not there', async (t) => {
  const folder = dataFolder(t)
  const opened = await openRelay({
    folder,
    gateway_url: 'https://127.0.0.1:1',
    allowed_hosts: ['127.0.0.1:1'],
    guard: createGuard([]),
    refused: () => {},
  })
  t.teardown(() => opened.close())
  for (const [socket, path] of [
    ['gateway', '/'],
    ['proxy', 'http://127.0.0.1:1/'],
  ] as const) {
    const sent = request({ socketPath: join(folder, `${socket}.sock`), path, agent: false }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    t.equal(answer.statusCode, 502)
    answer.resume()
  }
})
