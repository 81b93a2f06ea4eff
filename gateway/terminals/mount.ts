/**
 * Serves the terminal sockets of clients with uWebSockets.js. Upgrades present a credential in the
 * same ways as on the worker socket, or the cookie of a console session. `connection.ts` handles
 * the messages of a terminal.
 *
 * Invariant: a request is copied before the first asynchronous step, and an upgrade is not corked.
 * The reasons are in `../workers/mount.ts`.
 */
import uWS, { type HttpRequest, type TemplatedApp, type WebSocket } from 'uWebSockets.js'
import { api } from '../../protocol/api.ts'
import { routeOf } from '../../protocol/contract.ts'
import { errorBody, errors, isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import type { Caller } from '../auth/authenticate.ts'
import { authorizeRow, enterProject } from '../auth/authorize.ts'
import { type CookieHeaders, sessionCookieOf } from '../auth/console/cookies.ts'
import { countRefusedUpgrade } from '../auth/rate.ts'
import type { Edge } from '../call.ts'
import { watchAccess } from '../guard.ts'
import { clientOf } from '../http/request.ts'
import { requestIdOf, requestIds } from '../http/request-id.ts'
import { utf8 } from '../http/respond.ts'
import {
  answerWithoutUpgrade,
  isUpgrade,
  type Rejection,
  rejectUpgrade,
  retryAfterOf,
  textOf,
  upgradeCredential,
} from '../http/upgrade.ts'
import { TerminalConnection, type TerminalGrant } from './connection.ts'

interface Data {
  /** Present until the socket is open. */
  grant: TerminalGrant | undefined
  connection?: TerminalConnection
}
interface Asked {
  readonly project: string
  readonly environment_id: string
  readonly authorization: string
  readonly protocols: string
  /** The client's IP address. */
  readonly remote: string
  /**
   * The headers that are used to check the cookie of a console session. The cookie is accepted only
   * from the service's own origin.
   */
  readonly cookie: CookieHeaders
}

const PATH = `/v1${routeOf(api['environment.terminal']).path}`
const { shape } = api['environment.terminal']
/** Maximum size of a message. */
const MAX_MESSAGE_BYTES = 65_536
/** Maximum number of unsent bytes of a socket. A socket that exceeds it is closed. */
const MAX_UNSENT_BYTES = 1_048_576
/** Time in seconds without any frame or pong after which a socket is closed. */
const IDLE_TIMEOUT_S = 120

/**
 * Authenticates and authorizes an upgrade. A refused upgrade counts against the rate limit of its
 * caller or, without a valid credential, of its IP address.
 */
async function admit(edge: Edge, asked: Asked): Promise<TerminalGrant | Refusal> {
  const caller = await authenticate(edge, asked)
  const known = isRefusal(caller) ? undefined : caller
  const grant = isRefusal(caller) ? caller : await authorize(edge, caller, asked)
  return isRefusal(grant) ? countRefusedUpgrade(edge.limits, asked.remote, known, grant) : grant
}

async function authenticate(edge: Edge, asked: Asked): Promise<Caller | Refusal> {
  const { world, authentication } = edge
  const { presented, isAnonymous } = upgradeCredential(asked.authorization, asked.protocols)
  const cookie = isAnonymous ? sessionCookieOf(world, asked.cookie, true) : undefined
  if (isRefusal(cookie)) return cookie
  if (!presented && cookie === undefined) return refuse('unauthorized')
  if (!(await edge.becomesFresh())) return refuse('service_unavailable')
  return cookie === undefined
    ? authentication.signIn(presented)
    : authentication.console.find(cookie, { project: asked.project })
}

async function authorize(
  edge: Edge,
  caller: Caller,
  asked: Asked,
): Promise<TerminalGrant | Refusal> {
  const { world, directory, authentication } = edge
  const { environment_id } = asked
  const allowed = async (who: Caller, name: string) => {
    const known = await directory.organization()
    if (isRefusal(known)) return known
    const project = enterProject(who, known, name)
    if (isRefusal(project)) return project
    const slots = { action_name: 'environment.bash', environment_id }
    return authorizeRow(world.settings.brand, shape, who, slots) ?? project
  }
  const project = await allowed(caller, asked.project)
  if (isRefusal(project)) return project
  const environment = isId(environment_id, 'environment')
    ? await world.ask({ project: project.id, kind: 'environment', id: environment_id }, 'get', {})
    : null
  if (environment && isRefusal(environment)) return environment
  if (!environment) return refuse('not_found', { resource: 'environment' })
  return {
    project: project.id,
    environment_id,
    principal: caller.principal,
    credential: caller.credential,
    recheck: async () => {
      const again = await authentication.again(caller)
      if (isRefusal(again)) return again
      const entered = await allowed(again, project.id)
      return isRefusal(entered) ? entered : undefined
    },
    watch: (look) => watchAccess(edge, caller, project.id, look),
    used: () => authentication.note(caller),
  }
}

const rejectionOf = (refusal: Refusal): Rejection => {
  const { status } = errors[refusal.refused]
  const temporary = status >= 500
  const retry_after = temporary ? 2 : retryAfterOf(refusal)
  return {
    status: temporary ? 503 : status,
    body: errorBody(temporary ? refuse('service_unavailable') : refusal),
    ...(retry_after !== undefined && { retry_after }),
  }
}

/** Mounts the endpoint. `leave` refuses new terminals, and `stop` ends all terminals. */
export function mountTerminals(app: TemplatedApp, edge: Edge): { leave(): void; stop(): void } {
  const { world } = edge
  const connections = new Set<TerminalConnection>()
  let leaving = false
  const newId = requestIds(world)

  app.ws<Data>(PATH, {
    compression: uWS.DISABLED,
    maxPayloadLength: MAX_MESSAGE_BYTES,
    maxBackpressure: MAX_UNSENT_BYTES,
    closeOnBackpressureLimit: 1,
    idleTimeout: IDLE_TIMEOUT_S,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      if (!isUpgrade(req)) return
      const asked = {
        project: textOf(req.getParameter(0)),
        environment_id: textOf(req.getParameter(1)),
        authorization: req.getHeader('authorization'),
        protocols: req.getHeader('sec-websocket-protocol'),
        remote: clientOf(res, req, world).remote,
        cookie: cookieHeadersOf(req),
      }
      const { protocol } = upgradeCredential(asked.authorization, asked.protocols)
      const key = req.getHeader('sec-websocket-key')
      const extensions = req.getHeader('sec-websocket-extensions')
      let aborted = false
      res.onAborted(() => {
        aborted = true
      })
      const request_id = requestIdOf(req.getHeader('x-request-id'), newId)
      void admit(edge, asked)
        .catch((error: unknown) => {
          world.log.error(
            { event: 'terminal_admission_failed', err: error, request_id },
            'terminal refused',
          )
          return refuse('service_unavailable')
        })
        .then((grant) => {
          if (aborted) return
          const answer = !isRefusal(grant) && leaving ? refuse('service_unavailable') : grant
          if (isRefusal(answer)) rejectUpgrade(res, rejectionOf(answer), world, request_id)
          else res.upgrade<Data>({ grant: answer }, key, protocol, extensions, context)
        })
    },
    open: (ws) => {
      const data = ws.getUserData()
      if (!data.grant) return
      const connection = new TerminalConnection(world, data.grant, pipeOf(ws), () =>
        connections.delete(connection),
      )
      connections.add(connection)
      data.connection = connection
      data.grant = undefined
    },
    message: (ws, message) => ws.getUserData().connection?.receive(Buffer.from(message).toString()),
    close: (ws) => ws.getUserData().connection?.ended(),
  })
  answerWithoutUpgrade(app, PATH, world, newId)
  return {
    leave() {
      leaving = true
    },
    stop() {
      leaving = true
      for (const connection of [...connections])
        connection.close(closeCodes.restart, 'the gateway restarts')
    },
  }
}

/** Copies the headers that are used to check the cookie of a console session. */
function cookieHeadersOf(req: HttpRequest): CookieHeaders {
  const headers = {
    cookie: req.getHeader('cookie'),
    host: req.getHeader('host'),
    origin: req.getHeader('origin'),
    'sec-fetch-site': req.getHeader('sec-fetch-site'),
  }
  return { method: 'GET', header: (name) => headers[name] || undefined }
}

const pipeOf = (ws: WebSocket<Data>) => ({
  send: (text: string) => void ws.send(utf8(text)),
  close: (code: number, reason: string) => void ws.end(code, utf8(reason)),
})
