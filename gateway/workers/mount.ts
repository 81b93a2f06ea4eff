/**
 * Serves the worker socket with uWebSockets.js. This is the only file of the folder that uses the
 * library; the decisions are in `upgrade.ts` and `hub.ts`.
 *
 * Invariants:
 * M1. A request is copied before the first asynchronous step, and a response is never used after it
 *     was aborted.
 * M2. An upgrade is not corked. At the end of a cork, uWS accesses the old response, whose memory
 *     already belongs to the new socket. It then sometimes closes the socket with code 1006.
 * M3. uWS pings idle sockets and ends a socket after 120 s without any frame or pong, so dead
 *     sockets are detected.
 */

import uWS, { type TemplatedApp, type WebSocket } from 'uWebSockets.js'
import { errorBody, refuse } from '../../protocol/errors.ts'
import { sizes } from '../../protocol/workers/socket.ts'
import { type Authentication, openAuthentication } from '../auth/authenticate.ts'
import type { Directory } from '../directory.ts'
import { answerWithoutUpgrade, rejectUpgrade, textOf } from '../http/upgrade.ts'
import type { World } from '../ports.ts'
import type { Connection, Pipe } from './connection.ts'
import type { Grant } from './edge.ts'
import { openHub } from './hub.ts'
import { servedBy } from './served.ts'
import { type Answer, createUpgrade } from './upgrade.ts'

type Rejection = Extract<Answer, { status: number }>
interface Data {
  /** Present until the socket is open. */
  grant: Grant | undefined
  connection?: Connection
}

const PATH = '/v1/projects/:project/workers/socket'
/**
 * Time in seconds without any inbound frame or pong after which a socket is closed, and maximum
 * number of unsent bytes of a socket.
 */
const IDLE = 120
const UNSENT = 16 * 1_048_576
const stopping: Rejection = {
  status: 503,
  body: errorBody(refuse('service_unavailable')),
  retry_after: 2,
}

/**
 * Mounts the worker socket on an app. Also handles all messages to this gateway's mailbox: all are
 * passed to the hub, and `forget` also to the directory. `leave` makes the gateway refuse new
 * sockets. `stop` answers open claims without jobs, and closes every socket with the code for a
 * restart.
 */
export function mountWorkerSocket(
  app: TemplatedApp,
  world: World,
  directory: Directory,
  authentication: Authentication = openAuthentication(world, directory),
): { leave(): void; stop(): Promise<void> } {
  const hub = openHub(world, servedBy(directory, world.settings.brand.toLowerCase()))
  let leaving = false
  const upgrade = createUpgrade(world, directory, authentication)
  const unwatch = directory.onChange(() => void hub.recheck())
  world.onMessage((message) => {
    if (message.type === 'forget') directory.forget(message.project)
    return hub.receive(message)
  })

  app.ws<Data>(PATH, {
    compression: uWS.DISABLED,
    maxPayloadLength: sizes.frame,
    maxBackpressure: UNSENT,
    idleTimeout: IDLE,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      const asked = {
        project: textOf(req.getParameter(0)),
        authorization: req.getHeader('authorization'),
        protocols: req.getHeader('sec-websocket-protocol'),
        remote: Buffer.from(res.getRemoteAddressAsText()).toString(),
      }
      const key = req.getHeader('sec-websocket-key')
      const extensions = req.getHeader('sec-websocket-extensions')
      let aborted = false
      res.onAborted(() => {
        aborted = true
      })
      void upgrade(asked).then((answer) => {
        if (aborted) return
        if ('status' in answer) return rejectUpgrade(res, answer)
        if (leaving || hub.stopping()) return rejectUpgrade(res, stopping)
        res.upgrade<Data>({ grant: answer.grant }, key, answer.protocol, extensions, context)
      })
    },
    open: (ws) => {
      const data = ws.getUserData()
      if (data.grant) data.connection = hub.connect(data.grant, new SocketPipe(ws))
      data.grant = undefined
    },
    message: (ws, message) =>
      ws.getUserData().connection?.receive(Buffer.from(message).toString(), message.byteLength),
    pong: (ws) => ws.getUserData().connection?.ponged(),
    drain: (ws) => ws.getUserData().connection?.drained(ws.getBufferedAmount()),
    close: (ws) => ws.getUserData().connection?.ended(),
  })
  answerWithoutUpgrade(app, PATH)

  return {
    leave() {
      leaving = true
    },
    async stop() {
      unwatch()
      await hub.stop()
    },
  }
}

class SocketPipe implements Pipe {
  readonly #ws: WebSocket<Data>
  constructor(ws: WebSocket<Data>) {
    this.#ws = ws
  }
  send(text: string): 'sent' | 'buffered' | 'lost' {
    const status = this.#ws.send(text)
    return status === 1 ? 'sent' : status === 0 ? 'buffered' : 'lost'
  }
  ping(): void {
    this.#ws.ping()
  }
  close(code: number, reason: string): void {
    this.#ws.end(code, reason)
  }
  drop(): void {
    this.#ws.close()
  }
}
