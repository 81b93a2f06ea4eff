/**
 * Outbound requests to receivers that answer in unusual or hostile ways: one connection to a
 * checked address, one request, and a result within the limits.
 */
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createGuard } from '../../../nodes/outbound/guard.ts'
import { createPost, type Sending } from '../../../nodes/outbound/post.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/**
 * Starts a server. It passes the socket of each request to `answer` once the request's body has
 * arrived.
 */
async function receiving(t: Test, answer: (socket: Socket, connection: number) => void) {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const connection = sockets.size
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (part) => {
      requests[connection] = `${requests[connection] ?? ''}${part.toString('latin1')}`
      if (requests[connection]?.endsWith('\r\n\r\n{}')) answer(socket, connection)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const guard = createGuard(['127.0.0.0/8'], async () => ['127.0.0.1'])
  return {
    port,
    requests,
    post: (more: Partial<Sending> = {}) =>
      createPost(guard)({
        url: `http://receiver.example:${port}/path?query=1`,
        schemes: ['http:'],
        headers: {},
        body: '{}',
        timeout: 5000,
        most: 1000,
        signal: new AbortController().signal,
        ...more,
      }),
  }
}
const answering = (t: Test, answer: string) => receiving(t, (socket) => socket.end(answer))

t.test('interim responses before the response are ignored', async (t) => {
  for (const interim of ['100 Continue', '102 Processing', '103 Early Hints']) {
    const { post, requests } = await answering(t, `HTTP/1.1 ${interim}\r\n\r\n`.repeat(2) + OK)
    t.match(await post(), { status: 200, body: Buffer.from('ok') }, interim)
    t.equal(requests.length, 1, 'the request is sent once')
  }
})

t.test('endless interim responses are a network failure', async (t) => {
  const { post } = await receiving(t, (socket) => {
    const some = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(200)
    const send = (): void => {
      while (!socket.destroyed && socket.write(some));
      socket.once('drain', send)
    }
    send()
  })
  t.match(await post(), { failed: 'network', message: /too many interim responses/ })
})

t.test('a switch of protocols is a failure and does not delay the result', async (t) => {
  const { post } = await receiving(t, (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
  )
  t.match(await post(), { failed: 'network', message: /another protocol/ })
  const offering = await answering(
    t,
    OK.replace('Con', 'Upgrade: h2\r\nConnection: upgrade\r\nCon'),
  )
  t.match(await offering.post(), { status: 200 }, 'an offer to switch is ignored')
})

t.test('a response is accepted with each way to mark its end', async (t) => {
  const ends = {
    length: OK,
    chunks: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    close: 'HTTP/1.1 200 OK\r\n\r\nok',
    'close in HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nok',
    'no reason phrase': 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok',
  }
  for (const [name, answer] of Object.entries(ends)) {
    const { post } = await answering(t, answer)
    t.strictSame(await post(), { status: 200, content_type: '', body: Buffer.from('ok') }, name)
  }
})

t.test('a response that is incomplete or not HTTP is a network failure', async (t) => {
  const faults = {
    nothing: '',
    text: 'hello\r\n\r\n',
    'half a header': 'HTTP/1.1 200 OK\r\nContent-Le',
    'half a body': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok',
    'no last chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n',
    'two kinds of length':
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'a header of 20 KiB': OK.replace('Con', `X: ${'x'.repeat(20_000)}\r\nCon`),
  }
  for (const [name, answer] of Object.entries(faults)) {
    const { post, requests } = await answering(t, answer)
    t.match(await post(), { failed: 'network', message: /./ }, name)
    t.equal(requests.length, 1, 'the request is not repeated')
  }
})

t.test('a failed connection to a host with several addresses names all attempts', async (t) => {
  const { port } = await answering(t, OK)
  const guard = createGuard(['127.0.0.0/8'], async () => ['127.0.0.2', '127.0.0.3'])
  const post = createPost(guard)
  const sent = await post({
    url: `http://receiver.example:${port}/`,
    schemes: ['http:'],
    headers: {},
    body: '{}',
    timeout: 5000,
    most: 1000,
    signal: new AbortController().signal,
  })
  t.match(sent, { failed: 'network', message: /ECONNREFUSED 127\.0\.0\.2:.*, .*127\.0\.0\.3:/ })
})

t.test('of a repeated header, the first value counts', async (t) => {
  const headers = ['1', '2'].map((n) => `Retry-After: ${n}\r\nContent-Type: text/${n}\r\n`).join('')
  const { post } = await answering(
    t,
    `HTTP/1.1 429 Too Many Requests\r\n${headers}Content-Length: 0\r\n\r\n`,
  )
  t.match(await post(), { status: 429, retry_after: '1', content_type: 'text/1' })
})

t.test('each request has its own connection and only the headers of its caller', async (t) => {
  const { post, requests, port } = await receiving(t, (socket) => {
    socket.write(OK.replace('Con', 'Connection: keep-alive\r\nCon'))
  })
  for (let n = 0; n < 3; n++) t.match(await post({ headers: { 'X-N': `${n}` } }), { status: 200 })
  t.equal(requests.length, 3)
  for (const [n, request] of requests.entries()) {
    const [head = '', body] = request.split('\r\n\r\n')
    const [line, ...headers] = head.split('\r\n')
    t.equal(line, 'POST /path?query=1 HTTP/1.1')
    t.strictSame(
      headers.sort(),
      [
        `Host: receiver.example:${port}`,
        `X-N: ${n}`,
        'connection: close',
        'content-length: 2',
      ].sort(),
    )
    t.equal(body, '{}')
  }
})

t.test('proxies in the environment are not used', async (t) => {
  const { post, requests } = await answering(t, OK)
  const proxied = await answering(t, OK.replace('200', '502'))
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY', 'https_proxy'])
    process.env[name] = `http://127.0.0.1:${proxied.port}`
  t.match(await post(), { status: 200 })
  t.strictSame([requests.length, proxied.requests.length], [1, 0])
})

t.test('of several checked addresses, one that answers is used', async (t) => {
  const { port } = await answering(t, OK)
  let resolved = 0
  const guard = createGuard(['127.0.0.0/8'], async () =>
    // After the check, the name resolves to a different address.
    resolved++ === 0 ? ['127.0.0.2', '127.0.0.1'] : ['127.0.0.3'],
  )
  const answer = await createPost(guard)({
    url: `http://several.example:${port}/`,
    schemes: ['http:'],
    headers: {},
    body: '{}',
    timeout: 5000,
    most: 1000,
    signal: new AbortController().signal,
  })
  t.match(answer, { status: 200 })
  t.equal(resolved, 1)
})

function latch(): { readonly closed: Promise<void>; readonly close: () => void } {
  let close = () => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  return { closed, close }
}

t.test('an abort ends the connection during the response', async (t) => {
  const abort = new AbortController()
  const { closed, close } = latch()
  const { post, requests } = await receiving(t, (socket) => {
    socket.on('close', close)
    socket.write('HTTP/1.1 200 OK\r\n\r\nx', () => setTimeout(() => abort.abort(), 20))
  })
  t.match(await post({ signal: abort.signal }), { failed: 'stopped' })
  await closed
  t.match(await post({ signal: abort.signal }), { failed: 'stopped' }, 'aborted before the request')
  t.equal(requests.length, 1)
})

t.test('a response beyond the limit ends the connection', async (t) => {
  for (const cut of [true, false] as const) {
    const { closed, close } = latch()
    const { post } = await receiving(t, (socket) => {
      socket.on('close', close)
      socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(1001)}`)
    })
    const answer = await post(cut ? { cut } : {})
    if (cut) t.match(answer, { status: 200, body: Buffer.from('x'.repeat(1000)) })
    else t.match(answer, { failed: 'too_large' })
    await closed
  }
})
