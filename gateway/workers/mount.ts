/**
 * Serves the worker socket with uWebSockets.js. This is the only file of the folder that uses the
 * library. The decisions are in `upgrade.ts` and `hub.ts`.
 *
 * Invariants:
 * M1. A request is copied before the first asynchronous step, and a response is never used after it
 *     was aborted.
 * M2. An upgrade is not corked. At the end of a cork, uWS reads the state of the old response from
 *     memory that already belongs to the new socket, and sometimes closes the socket with code 1006
 *     (uNetworking/uWebSockets issue 1928). The warning that uWS prints instead is harmless. The
 *     request's `Connection` header must be correct (`isUpgrade`).
 * M3. uWS pings idle sockets and ends a socket after 120 s without any frame or pong, so dead
 *     sockets are detected.
 * M4. Frames leave a socket in order. Those that one callback of the event loop sends leave it in one
 *     write. A frame that `send` accepted is lost only if the socket closes.
 */

import uWS, { type TemplatedApp, type WebSocket } from 'uWebSockets.js'
import { errorBody, refuse } from '../../protocol/errors.ts'
import { sizes } from '../../protocol/workers/socket.ts'
import { type Authentication, openAuthentication } from '../auth/authenticate.ts'
import type { Limits } from '../auth/rate.ts'
import type { Directory } from '../directory.ts'
import { clientOf } from '../http/request.ts'
import { requestIdOf, requestIds } from '../http/request-id.ts'
import { utf8 } from '../http/respond.ts'
import { answerWithoutUpgrade, isUpgrade, rejectUpgrade, textOf } from '../http/upgrade.ts'
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
  pipe?: SocketPipe
}

const PATH = '/v1/projects/:project/workers/socket'
/** Seconds without an inbound frame or pong after which a socket is closed. */
const IDLE_TIMEOUT_S = 120
/** Maximum number of unsent bytes of a socket. If it is exceeded, `send` accepts no text. */
const MAX_UNSENT_BYTES = 16 * 1_048_576
/** Number of characters of waiting frames at which the frames are written immediately. */
const MAX_WAITING_LENGTH = 16 * 1024
/** Maximum number of UTF-8 bytes per UTF-16 code unit of a text. */
const MAX_BYTES_PER_UNIT = 3
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
 * @param limits the rate limits of refused upgrades; without them, they are not limited.
 */
export function mountWorkerSocket(
  app: TemplatedApp,
  world: World,
  directory: Directory,
  authentication: Authentication = openAuthentication(world, directory),
  limits?: Limits,
): { leave(): void; stop(): Promise<void> } {
  const hub = openHub(world, servedBy(directory, world.settings.brand.toLowerCase()))
  let leaving = false
  const newId = requestIds(world)
  const upgrade = createUpgrade(world, directory, authentication, limits)
  const unwatch = directory.onChange(() => void hub.recheck())
  world.onMessage((message) => {
    if (message.type === 'forget') directory.forget(message.project)
    return hub.receive(message)
  })

  app.ws<Data>(PATH, {
    compression: uWS.DISABLED,
    maxPayloadLength: sizes.frame,
    maxBackpressure: MAX_UNSENT_BYTES,
    idleTimeout: IDLE_TIMEOUT_S,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      if (!isUpgrade(req)) return
      const asked = {
        project: textOf(req.getParameter(0)),
        authorization: req.getHeader('authorization'),
        protocols: req.getHeader('sec-websocket-protocol'),
        ...clientOf(res, req, world),
        request_id: requestIdOf(req.getHeader('x-request-id'), newId),
      }
      const key = req.getHeader('sec-websocket-key')
      const extensions = req.getHeader('sec-websocket-extensions')
      let aborted = false
      res.onAborted(() => {
        aborted = true
      })
      void upgrade(asked).then((answer) => {
        if (aborted) return
        const reject = (why: Rejection) => rejectUpgrade(res, why, world, asked.request_id)
        if ('status' in answer) return reject(answer)
        if (leaving || hub.stopping()) return reject(stopping)
        res.upgrade<Data>({ grant: answer.grant }, key, answer.protocol, extensions, context)
      })
    },
    open: (ws) => {
      const data = ws.getUserData()
      data.pipe = new SocketPipe(ws, () => data.connection?.buffered())
      if (data.grant) data.connection = hub.connect(data.grant, data.pipe)
      data.grant = undefined
    },
    message: (ws, message) =>
      ws.getUserData().connection?.receive(Buffer.from(message).toString(), message.byteLength),
    pong: (ws) => ws.getUserData().connection?.ponged(),
    drain: (ws) => ws.getUserData().connection?.drained(ws.getBufferedAmount()),
    close: (ws) => {
      const { pipe, connection } = ws.getUserData()
      pipe?.ended()
      connection?.ended()
    },
  })
  answerWithoutUpgrade(app, PATH, world, newId)

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

type Socket = Pick<
  WebSocket<Data>,
  'send' | 'cork' | 'getBufferedAmount' | 'ping' | 'end' | 'close'
>
/** A socket that sends the frames of one callback of the event loop together. */
export class SocketPipe implements Pipe {
  readonly #ws: Socket
  readonly #buffered: () => void
  /** Frames that are sent at the end of this callback of the event loop. */
  #waiting: string[] = []
  /** Number of characters of the waiting frames. */
  #length = 0
  /**
   * Number of bytes that the socket could accept when the first of the waiting frames was added.
   */
  #capacity = 0
  /** @param buffered called when the socket could not write all frames. */
  constructor(ws: Socket, buffered: () => void) {
    this.#ws = ws
    this.#buffered = buffered
  }
  send(text: string): boolean {
    if (this.#waiting.length === 0) this.#capacity = MAX_UNSENT_BYTES - this.#ws.getBufferedAmount()
    if (this.#capacity - MAX_BYTES_PER_UNIT * this.#length < 0) return false
    this.#length += text.length
    if (this.#waiting.push(text) === 1) queueMicrotask(() => this.#flush())
    if (this.#length >= MAX_WAITING_LENGTH) this.#flush()
    return true
  }
  ping(): void {
    this.#ws.ping()
  }
  close(code: number, reason: string): void {
    this.#flush()
    this.#ws.end(code, utf8(reason))
  }
  drop(): void {
    this.#ws.close()
  }
  /** Discards the waiting frames, because the socket is closed and must not be used. */
  ended(): void {
    this.#waiting = []
    this.#length = 0
  }
  #flush(): void {
    const frames = this.#waiting
    if (frames.length === 0) return
    this.ended()
    this.#ws.cork(() => {
      for (const frame of frames) this.#ws.send(utf8(frame))
    })
    if (this.#ws.getBufferedAmount() > 0) this.#buffered()
  }
}
