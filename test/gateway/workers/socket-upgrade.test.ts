/**
 * The upgrade to a worker socket: which credentials are admitted, the statuses of refusals, and a
 * real socket.
 */
import uWS, { type us_listen_socket } from 'uWebSockets.js'
import { connect } from 'node:net'
import t from 'tap'
import { WebSocket } from 'ws'
import { mountWorkerSocket } from '../../../gateway/workers/mount.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { bearer, ORG, PRJ } from '../support/given.ts'
import { given } from './upgrade-world.ts'

const subprotocol = (key: string) => `service.bearer.${Buffer.from(key).toString('base64url')}`

t.test('the answer to an upgrade', async (t) => {
  t.test(
    'a key with work.execute is admitted to its project, by header or by sub-protocol; the first one found counts',
    async (t) => {
      const it = given()
      const { text, principal_id, id } = it.worker
      t.match(await it.ask(bearer(text)), {
        grant: {
          project: PRJ,
          handle: 'default',
          principal: { id: principal_id },
          credential: { id },
        },
        protocol: '',
      })
      t.match(await it.ask(bearer(text), { protocols: 'other, service.worker.v1' }), {
        protocol: 'service.worker.v1',
      })
      t.match(await it.ask('', { protocols: `service.worker.v1, ${subprotocol(text)}` }), {
        grant: { project: PRJ },
        protocol: 'service.worker.v1',
      })
      t.match(
        await it.ask('', { protocols: subprotocol(text) }),
        { grant: { project: PRJ }, protocol: '' },
        'a sub-protocol that was not offered is not chosen',
      )
      t.match(await it.ask(bearer('bat_wrong'), { protocols: subprotocol(text) }), { status: 401 })
      t.match(await it.ask(bearer(it.root), { project: PRJ }), { grant: { handle: 'default' } })
    },
  )

  t.test('a missing credential is 401 without any query', async (t) => {
    const it = given()
    it.asked.length = 0
    t.match(await it.ask(''), { status: 401, body: { error: { code: 'unauthorized' } } })
    t.match(await it.ask('', { protocols: 'service.worker.v1', remote: '127.0.0.1' }), {
      status: 401,
    })
    t.same(it.asked, [])
  })

  t.test('401, 403 and 404 are sent only for certain refusals', async (t) => {
    const it = given()
    t.match(await it.ask(bearer('bat_unknown')), {
      status: 401,
      body: { error: { code: 'unauthorized' } },
    })
    t.match(await it.ask(bearer(it.root), { project: 'nowhere' }), {
      status: 404,
      body: { error: { code: 'not_found' } },
    })
    const capped = it.projectKey(PRJ, 'capped', {
      principal_id: it.worker.principal_id,
      scope_role_id: 'role_viewer',
    })
    t.match(await it.ask(bearer(capped.text)), {
      status: 403,
      body: {
        error: { code: 'permission_denied', details: { permission: 'service.work.execute' } },
      },
    })
    t.match(
      await it.ask(`${bearer(it.worker.text)}.other`),
      { status: 403 },
      'a key written for another project',
    )
  })

  t.test('a temporary failure is 503 with a delay, also for an existing project', async (t) => {
    const it = given()
    it.fresh = false
    const waits = new Set<number | undefined>()
    for (let i = 0; i < 40; i++) {
      const answer = await it.ask(bearer(it.worker.text))
      t.match(answer, { status: 503, body: { error: { code: 'service_unavailable' } } })
      if ('status' in answer) waits.add(answer.retry_after)
    }
    t.same([...waits].sort(), [1, 2, 3, 4, 5])
    it.fresh = true
    it.broken = true
    it.directory.forget(ORG)
    t.match(await it.ask(bearer(it.worker.text)), { status: 503 })
    t.match(await it.ask(bearer(it.worker.text), { project: 'nowhere' }), { status: 503 })
  })

  t.test(
    'a worker without a credential is admitted only from this machine, and only if enabled',
    async (t) => {
      const it = given('svc_dev')
      for (const remote of [
        '127.0.0.1',
        '::1',
        '0000:0000:0000:0000:0000:0000:0000:0001',
        '0000:0000:0000:0000:0000:ffff:7f00:0001',
      ]) {
        t.match(
          await it.ask('', { remote }),
          { grant: { project: PRJ, principal: { id: 'svc_dev' } } },
          remote,
        )
      }
      for (const remote of ['10.0.0.1', '0000:0000:0000:0000:0000:ffff:0a00:0001', '1127.0.0.1'])
        t.match(await it.ask('', { remote }), { status: 401 }, remote)
      t.match(await it.ask('', { remote: '127.0.0.1', project: 'nowhere' }), { status: 404 })
      t.match(
        await it.ask(bearer('bat_wrong'), { remote: '127.0.0.1' }),
        { status: 401 },
        'a bad credential is not overlooked',
      )
    },
  )

  t.test('the grant can be checked again', async (t) => {
    const it = given()
    const answer = await it.ask(bearer(it.worker.text))
    if (!('grant' in answer)) throw new Error('not admitted')
    const verdict = async () => (await answer.grant.recheck())?.refused
    t.equal(await verdict(), undefined)
    it.change(PRJ, 'principal.update', { id: it.worker.principal_id, role_ids: ['role_viewer'] })
    t.equal(await verdict(), 'permission_denied')
    it.change(PRJ, 'principal.update', { id: it.worker.principal_id, state: 'disabled' })
    t.equal(await verdict(), 'unauthorized')
    it.broken = true
    it.directory.forget(ORG)
    t.equal(await verdict(), 'service_unavailable')
  })
})

t.test('an upgrade is not corked, because uWS sometimes closes such sockets', async (t) => {
  const it = given()
  let upgrade: uWS.WebSocketBehavior<unknown>['upgrade']
  const app = {
    get: () => app,
    ws: (_path: string, behavior: uWS.WebSocketBehavior<unknown>) => {
      upgrade = behavior.upgrade
      return app
    },
  }
  mountWorkerSocket(app as unknown as uWS.TemplatedApp, it.world, it.directory, it.authentication)
  let corked = false
  const upgraded = new Promise<boolean>((resolve) => {
    const response = {
      getRemoteAddress: () => Uint8Array.of(10, 0, 0, 1).buffer,
      onAborted: () => response,
      cork: (run: () => void) => {
        corked = true
        run()
        corked = false
      },
      upgrade: () => resolve(corked),
    }
    const headers = new Map([
      ['authorization', bearer(it.worker.text)],
      ['connection', 'Upgrade'],
    ])
    const request = {
      getParameter: () => 'default',
      getHeader: (name: string) => headers.get(name) ?? '',
    }
    upgrade?.(response as never, request as never, {} as never)
  })
  t.notOk(await upgraded)
})

t.test('a real socket', async (t) => {
  const it = given()
  const app = uWS.App()
  const mounted = mountWorkerSocket(app, it.world, it.directory, it.authentication)
  const token = await new Promise<us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (listening) =>
      listening ? resolve(listening) : reject(new Error('no port')),
    ),
  )
  const port = uWS.us_socket_local_port(token as never)
  const url = `ws://127.0.0.1:${port}/v1/projects/default/workers/socket`
  t.teardown(() => app.close())
  const open = (protocols: string[], headers: Record<string, string> = {}, to = url) =>
    new Promise<
      { socket: WebSocket } | { status: number; retry?: string | undefined; body: string }
    >((resolve, reject) => {
      const socket = new WebSocket(to, protocols, { headers })
      socket.on('open', () => resolve({ socket }))
      socket.on('unexpected-response', (_request, response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            retry: response.headers['retry-after'],
            body,
          }),
        )
      })
      socket.on('error', reject)
    })
  const opened = async (
    protocols: string[],
    headers: Record<string, string> = {},
  ): Promise<WebSocket> => {
    const answer = await open(protocols, headers)
    if (!('socket' in answer)) throw new Error(`refused: ${answer.status}`)
    return answer.socket
  }
  const next = (socket: WebSocket) =>
    new Promise<{ type: string; message_id?: string }>((resolve) =>
      socket.once('message', (data) => resolve(JSON.parse(String(data)))),
    )
  const closed = (socket: WebSocket) =>
    new Promise<number>((resolve) => socket.once('close', resolve))
  const authorization = { authorization: bearer(it.worker.text) }

  t.test('is refused with its status before it is opened', async (t) => {
    t.match(await open([]), { status: 401, body: /"unauthorized"/ })
    t.match(
      await open([], { authorization: bearer(it.root) }, url.replace('default', 'no%20where')),
      { status: 404 },
    )
    it.fresh = false
    t.match(await open([], authorization), { status: 503, retry: /^[1-5]$/ })
    it.fresh = true
    const plain = await fetch(url.replace('ws:', 'http:'))
    t.equal(plain.status, 426)
    t.equal(plain.headers.get('upgrade'), 'websocket')
  })

  /** Sends a request for an upgrade, which waits for a look-up until `admit` is called. */
  const requestUpgrade = (connection: string) => {
    let go = () => {}
    it.gate = new Promise((resolve) => {
      go = resolve
    })
    it.directory.forget(PRJ)
    const raw = connect(port, '127.0.0.1')
    raw.write(
      `GET /v1/projects/default/workers/socket HTTP/1.1\r\nHost: x\r\n${connection}` +
        'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        `Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: ${bearer(it.worker.text)}\r\n\r\n`,
    )
    const admit = () => {
      it.gate = undefined
      go()
    }
    return { raw, admit }
  }

  t.test('is opened only if the Connection header contains upgrade', async (t) => {
    // uWS crashes if it upgrades a request with `Connection: close` after an asynchronous step.
    for (const [header, status] of [
      ['Connection: close\r\n', 400],
      ['Connection: keep-alive\r\n', 400],
      ['Connection: close\r\nConnection: Upgrade\r\n', 400],
      ['', 400],
      ['Connection: Upgrade\r\nConnection: close\r\n', 101],
      ['Connection: keep-alive, Upgrade\r\n', 101],
      ['Connection: UPGRADE\r\n', 101],
    ] as const) {
      const { raw, admit } = requestUpgrade(header)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const received = new Promise((resolve) => raw.once('data', resolve))
      admit()
      t.match(String(await received), `HTTP/1.1 ${status}`, header)
      // An empty text frame, masked with zeros.
      if (status === 101) raw.write(Uint8Array.of(0x81, 0x80, 0, 0, 0, 0))
      const answer = status === 101 && (await new Promise((resolve) => raw.once('data', resolve)))
      if (answer) t.match(String(answer), '"type":"error"', header)
      raw.destroy()
    }
  })

  t.test('returns the sub-protocol only when it was offered, and registers', async (t) => {
    const plain = await opened([], authorization)
    t.equal(plain.protocol, '')
    const browser = await opened(['service.worker.v1', subprotocol(it.worker.text)])
    t.equal(browser.protocol, 'service.worker.v1')
    for (const socket of [plain, browser]) {
      const first = next(socket)
      socket.send(
        JSON.stringify({ type: 'worker.register', message_id: 'r', worker_instance_id: 'box' }),
      )
      t.match(await first, { type: 'worker.registered', message_id: 'r' })
      socket.terminate()
    }
  })

  t.test(
    'takes a frame of more than 1 MiB, and survives a client that disconnects during admission',
    async (t) => {
      const socket = await opened([], authorization)
      const answer = next(socket)
      socket.send(
        JSON.stringify({ type: 'job.dance', message_id: 'x', text: 'x'.repeat(2 * 1_048_576) }),
      )
      t.match(await answer, { type: 'error', message_id: 'x' })
      socket.terminate()
      const { raw, admit } = requestUpgrade('Connection: Upgrade\r\n')
      await new Promise((resolve) => setTimeout(resolve, 50))
      raw.destroy()
      await new Promise((resolve) => setTimeout(resolve, 50))
      admit()
      ;(await opened([], authorization)).terminate()
    },
  )

  t.test('ends when its credential is revoked, and when the gateway stops', async (t) => {
    const other = it.projectKey(PRJ, 'other')
    const staying = await opened([], authorization)
    const leaving = await opened([], { authorization: bearer(other.text) })
    const ends = closed(leaving)
    const said = next(leaving)
    t.notOk(isRefusal(it.change(PRJ, 'key.revoke', { id: other.id })))
    it.message({ type: 'forget', project: PRJ })
    t.match(await said, { type: 'error', error: { code: 'invalid_actor' } })
    t.equal(await ends, 4401)
    const stopped = closed(staying)
    await mounted.stop()
    t.equal(await stopped, 1012)
    t.match(await open([], authorization), { status: 503 })
  })
})
