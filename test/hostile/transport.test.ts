/**
 * HTTP below the endpoint table: malformed requests, clients that stop halfway, and connections
 * that must not leak.
 */
import type { Socket } from 'node:net'
import t from 'tap'
import { type Code, errors } from '../../protocol/errors.ts'
import { sleeping } from '../scenarios/support/given.ts'
import { service } from '../support/service.ts'
import { tries } from './support/campaign.ts'
import { badRefusal } from './support/judge.ts'
import { settled, usage } from './support/usage.ts'
import { answersIn, dial, listen, say, spoken } from './support/wire.ts'

const s = await service()
t.teardown(() => s.stop())
const auth = `Authorization: Bearer ${s.key}`
const RUNS = '/v1/projects/default/runs'
const json = 'Content-Type: application/json'
const post = (lines: readonly string[], body: string) =>
  spoken('POST', '/v1/projects', [auth, json, ...lines], body)
const names = async (): Promise<string[]> =>
  ((await s.ok('project.list', { limit: 200 }))['items'] as unknown as { name: string }[]).map(
    ({ name }) => name,
  )
const good = async (): Promise<number> => {
  const started = Date.now()
  const { status } = await s.raw('GET', RUNS)
  return status === 200 ? Date.now() - started : Number.POSITIVE_INFINITY
}
const base = await settled(s)
const run = (await s.ok('run.start', { spec: sleeping() }))['id']
/**
 * Connections that must not receive a response, by description. They are checked near the end of
 * this file.
 */
const silent = new Map<
  string,
  { readonly socket: Socket; readonly said: ReturnType<typeof listen> }
>()
async function leave(what: string, bytes: string): Promise<void> {
  const socket = await dial(s.url)
  socket.write(Buffer.from(bytes, 'latin1'))
  silent.set(what, { socket, said: listen(socket, () => false, 40_000) })
}

// uWebSockets.js neither answers nor forwards a head that it cannot parse. It closes the connection
// after the idle timeout.
await leave('a header that is folded', spoken('GET', RUNS, [auth, 'X-A: b\r\n c']))
await leave('a NUL in a header', spoken('GET', RUNS, [auth, 'X-A: b\0c']))
await leave(
  'more headers than are read',
  spoken('GET', RUNS, [auth, ...Array.from({ length: 300 }, (_, n) => `X-${n}: 1`)]),
)
await leave(
  'a space before the colon',
  post(['Transfer-Encoding : chunked', 'Content-Length: 12'], '{"name":"u"}'),
)
await leave(
  'chunks with extensions',
  post(['Transfer-Encoding: chunked'], '2;a=b\r\n{}\r\n0\r\n\r\n'),
)
await leave('half a request line', 'GET /v1/pro')
await leave('half a body', post(['Content-Length: 500'], '{"name":"half'))
await leave('half a chunk', post(['Transfer-Encoding: chunked'], 'ff\r\n{"name":"half'))
await leave('a body that never comes', post(['Content-Length: 9999999999'], ''))
await leave('nothing', '')
/** Sends a request slowly: one byte every 500 ms. */
const drip = async (what: string, bytes: string) => {
  const socket = await dial(s.url)
  let at = 0
  const timer = setInterval(() => {
    if (socket.writable) socket.write(bytes[at++] ?? 'x')
  }, 500)
  socket.once('close', () => clearInterval(timer))
  t.teardown(() => clearInterval(timer))
  silent.set(what, { socket, said: listen(socket, () => false, 40_000) })
}
await drip('a head byte by byte', spoken('GET', RUNS, [auth, `X-A: ${'x'.repeat(500)}`]))
const half = await dial(s.url)
half.end(spoken('GET', RUNS, [auth]).slice(0, 40))
silent.set('a half-open connection', { socket: half, said: listen(half, () => false, 40_000) })

/** The expected status if the connection is closed without a response. */
const CLOSED = 0
t.test('a malformed request is refused and has no effect', async (t) => {
  const before = await names()
  const smuggled = spoken(
    'POST',
    '/v1/projects',
    [auth, json, 'Content-Length: 19'],
    '{"name":"smuggled"}',
  )
  const refused: Readonly<Record<string, readonly [string, ...number[]]>> = {
    'a length and chunks': [
      post(['Content-Length: 12', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`),
      400,
    ],
    'chunks and a length': [
      post(
        ['Transfer-Encoding: chunked', 'Content-Length: 4'],
        `c\r\n{"name":"a"}\r\n0\r\n\r\n${smuggled}`,
      ),
      400,
    ],
    'two lengths': [post(['Content-Length: 12', 'Content-Length: 500'], '{"name":"a"}'), 400],
    'two lengths, the shorter one first, and a request': [
      post(['Content-Length: 12', 'Content-Length: 500'], `{"name":"a"}${smuggled}`),
      CLOSED,
    ],
    'two lengths, the longer one first, and a request': [
      post(['Content-Length: 500', 'Content-Length: 12'], `{"name":"a"}${smuggled}`),
      400,
    ],
    'two lengths of a request without a body, and a request': [
      spoken('GET', RUNS, [auth, 'Content-Length: 0', 'Content-Length: 5'], smuggled),
      CLOSED,
    ],
    'a length that is no number': [post(['Content-Length: x'], '{}'), 400],
    'a length below zero': [post(['Content-Length: -5'], '{"name":"a"}'), 400],
    'a length with a sign': [post(['Content-Length: +12'], '{"name":"a"}'), 400],
    'a length in hex': [post(['Content-Length: 0xc'], '{"name":"a"}'), 400],
    'a length beyond numbers': [
      post(['Content-Length: 99999999999999999999999'], '{"name":"a"}'),
      400,
    ],
    'another transfer encoding with a length': [
      post(['Transfer-Encoding: identity', 'Content-Length: 12'], '{"name":"a"}'),
      400,
    ],
    'a chunk size that is none': [
      post(['Transfer-Encoding: chunked'], 'zz\r\n{"name":"a"}\r\n0\r\n\r\n'),
      400,
    ],
    'a chunk size below zero': [
      post(['Transfer-Encoding: chunked'], '-1\r\n{"name":"a"}\r\n0\r\n\r\n'),
      400,
    ],
    'a chunk size beyond numbers': [
      post(['Transfer-Encoding: chunked'], 'FFFFFFFFFFFFFFFFF\r\n{"name":"a"}\r\n0\r\n\r\n'),
      400,
    ],
    'no host': [`GET ${RUNS} HTTP/1.1\r\n${auth}\r\n\r\n`, 400],
    'another version': [`GET ${RUNS} HTTP/1.0\r\nHost: x\r\n${auth}\r\n\r\n`, 505],
    'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    'lines without a carriage return': [`GET ${RUNS} HTTP/1.1\nHost: x\n${auth}\n\n`, 400, 505],
    bytes: ['\x00\x01\x02\xff\r\n\r\n', 400, 505],
    'a tunnel': [spoken('CONNECT', 'internal:22', [auth]), 400, 404, 505],
    'an address elsewhere': [spoken('GET', 'http://internal/v1/projects', [auth]), 400, 404, 505],
    'half a megabyte of header': [spoken('GET', RUNS, [auth, `X-A: ${'x'.repeat(500_000)}`]), 431],
  }
  for (const [what, [bytes, ...statuses]] of Object.entries(refused)) {
    const { answers, text } = await say(s.url, bytes, { answers: 2, ms: 250 })
    const status = answers[0]?.status ?? Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0)
    t.ok(statuses.includes(status), `${what}: ${status}`)
    t.notOk(
      answers.some((answer) => answer.status < 300),
      `${what} is not answered by a second request`,
    )
  }
  t.strictSame(await names(), before)
  t.ok((await good()) < 2000)
})

t.test('unusual but valid requests get refusals in the standard format', async (t) => {
  const all = Object.keys(errors) as Code[]
  const asked: Readonly<Record<string, readonly [string, number]>> = {
    'a method of their own': [spoken('BREW', RUNS, [auth]), 405],
    'a trace': [spoken('TRACE', RUNS, [auth]), 405],
    dots: [spoken('GET', '/v1/projects/../../../etc/passwd', [auth]), 404],
    'encoded slashes': [spoken('GET', '/v1/projects/default%2fruns', [auth]), 404],
    'doubled slashes': [spoken('GET', '//v1//projects', [auth]), 404],
    'a NUL': [spoken('GET', '/v1/projects/a%00b/runs', [auth]), 404],
    'two credentials, the wrong one first': [
      spoken('GET', RUNS, ['Authorization: Bearer nobody', auth]),
      401,
    ],
    'an upgrade without a key': [
      spoken('GET', '/v1/projects/default/workers/socket', [
        auth,
        'Upgrade: websocket',
        'Connection: Upgrade',
      ]),
      400,
    ],
    'a plain request to the socket': [
      spoken('GET', '/v1/projects/default/workers/socket', [auth]),
      426,
    ],
    'an expectation that cannot be met': [
      post(['Expect: 200-maybe', 'Content-Length: 2'], '{}'),
      400,
    ],
    chunks: [post(['Transfer-Encoding: chunked'], '1\r\n{\r\n1\r\n}\r\n0\r\n\r\n'), 400],
    'a content coding': [
      post(['Content-Encoding: gzip', 'Content-Length: 3'], '\x1f\x8b\x08'),
      415,
    ],
  }
  for (const [what, [bytes, status]] of Object.entries(asked)) {
    const {
      answers: [answer],
      text,
    } = await say(s.url, bytes)
    t.equal(answer?.status, status, `${what}: ${text.slice(0, 200)}`)
    // Requests to the path of the worker socket are answered before any row is looked up, so the
    // response has no request id.
    if (answer)
      t.equal(
        badRefusal(
          {
            ...answer,
            status: answer.status === 426 ? 400 : answer.status,
            headers: { 'x-request-id': '-', ...answer.headers },
            text: answer.body,
          },
          all,
        )?.replace(/^no details.fields.*/, ''),
        answer.status === 426 || /socket/.test(bytes) ? '' : undefined,
        what,
      )
  }
  const continued = await say(s.url, post(['Expect: 100-continue', 'Content-Length: 2'], '{}'), {
    answers: 2,
  })
  t.match(
    continued.answers.map(({ status }) => status),
    [100, 400],
  )
  t.equal(
    (
      await say(
        s.url,
        spoken('GET', RUNS, [auth, ...Array.from({ length: 80 }, (_, n) => `X-${n}: 1`)]),
      )
    ).answers[0]?.status,
    200,
    'eighty headers',
  )
  t.equal(
    (await say(s.url, spoken('GET', `${RUNS}?queue=${'x'.repeat(3000)}`, [auth]))).answers[0]
      ?.status,
    200,
    'a long query',
  )
})

t.test('a head that arrives in two parts may have 16 KiB', async (t) => {
  const head = spoken('GET', RUNS, [auth, `Cookie: other=${'x'.repeat(12_000)}`])
  const socket = await dial(s.url)
  socket.write(head.slice(0, 6000))
  // The service has read the first part when it has answered a request that was sent later.
  await good()
  const response = listen(socket, (text) => answersIn(text).length > 0, 3000)
  socket.write(head.slice(6000))
  t.equal((await response).answers[0]?.status, 200)
  socket.destroy()
})

t.test('a connection stays usable after every method and refusal', async (t) => {
  const body = '{"name":1}'
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'POST', 'PROPFIND'])
    for (const path of [RUNS, '/healthz', '/nothing', '/v1/openapi.json']) {
      for (const lines of [[], [auth], [auth, json, `Content-Length: ${body.length}`]]) {
        const socket = await dial(s.url)
        socket.write(spoken(method, path, lines, lines.length === 3 ? body : ''))
        const first = await listen(
          socket,
          (text) =>
            text.includes('\r\n\r\n') &&
            (method === 'HEAD' || /HTTP\/1\.1 204/.test(text) || answersIn(text).length > 0),
          3000,
        )
        socket.write(spoken('GET', '/healthz', []))
        const second = await listen(socket, (text) => text.includes('alive'), 3000)
        if (!/^HTTP\/1\.1 [2-4]/.test(first.text) || !second.text.includes('alive'))
          t.fail(
            `${method} ${path} with ${lines.length} headers: ${first.text.slice(0, 60)}, ` +
              `then ${second.text.slice(0, 60) || 'nothing'}`,
          )
        socket.destroy()
      }
    }
  t.pass('all of them')
})

t.test(
  'requests sent before the first answer end the connection, or are answered in order',
  async (t) => {
    for (const times of [2, 5, 50]) {
      const { answers, closed } = await say(s.url, spoken('GET', RUNS, [auth]).repeat(times), {
        answers: times,
        ms: 1000,
      })
      t.ok(closed || answers.length === times, `${answers.length} of ${times}`)
      t.ok(answers.every(({ status }) => status === 200))
    }
  },
)

t.test('clients that disconnect during a body or a stream leave nothing behind', async (t) => {
  for (let n = 0; n < tries(150); n++) {
    const socket = await dial(s.url)
    if (n % 3 === 0) socket.write(post(['Content-Length: 400'], `{"name":"gone ${n}","desc`))
    else if (n % 3 === 1)
      socket.write(spoken('GET', `/v1/runs/${run}/events`, [auth, 'Accept: text/event-stream']))
    else
      socket.write(
        spoken('GET', `${RUNS}/events`, [auth, 'Accept: text/event-stream', 'Last-Event-ID: 0']),
      )
    if (n % 2 === 0)
      await listen(socket, (text) => text.includes('\r\n\r\n'), n % 3 === 0 ? 1 : 1000)
    if (n % 5 === 0) socket.resetAndDestroy()
    else socket.destroy()
  }
  t.strictSame(
    (await names()).filter((name) => name.startsWith('gone')),
    [],
  )
  t.ok((await good()) < 2000)
})

t.test(
  'silent and dripping connections are closed without an effect',
  { timeout: 60_000 },
  async (t) => {
    for (const [what, { socket, said }] of silent) {
      const { closed, answers } = await said
      socket.destroy()
      t.ok(closed, `${what}: closed by the server`)
      t.ok(
        answers.every(({ status }) => status >= 400),
        what,
      )
    }
    t.strictSame(
      (await names()).filter((name) => /half|^u$/.test(name)),
      [],
    )
  },
)

t.test('finally, no stream, socket or follower is left', async (t) => {
  const after = await settled(s, base)
  t.match(after, { sse: base.sse, sockets: base.sockets, followers: base.followers })
  t.ok(after.files <= base.files + 8, `open files: ${base.files}, then ${after.files}`)
  t.equal((await usage(s)).failed, 0, 'no request failed inside')
})
