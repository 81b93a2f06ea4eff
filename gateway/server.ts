/**
 * The HTTP server of a gateway: a route for every API row, the routes that need no API credential,
 * answers to unsupported methods and preflights, and a graceful stop.
 */
import uWS, {
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
} from 'uWebSockets.js'
import { unauthenticated } from '../protocol/access/unauthenticated-rows.ts'
import { pathShape, routeOf } from '../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts'
import { admit, isKnown } from './admission.ts'
import { openAuthentication } from './auth/authenticate.ts'
import { consoleRoutes } from './auth/console/routes.ts'
import {
  DEVICE_PAGE,
  giveDeviceCode,
  giveDeviceToken,
  MAX_DEVICE_FORM_BYTES,
} from './auth/device/flow.ts'
import { showDevice, takeDevice } from './auth/device/page.ts'
import { openTouches } from './auth/key-last-used.ts'
import { type Call, operationOf, type Routed, rows } from './call.ts'
import { runCommand } from './command.ts'
import { signatureHeader, TRIGGER_LIMIT, takeTrigger } from './commands/http-trigger.ts'
import { INTEGRATION_HEADERS, receiveIntegration } from './commands/integrations/receive.ts'
import type { Directory } from './directory.ts'
import { createEdge } from './edge.ts'
import { downloadRoute, receptionOf, transfer } from './files/transfers.ts'
import { preflightHeaders } from './http/cors.ts'
import type { Incoming } from './http/request.ts'
import { requestIds } from './http/request-id.ts'
import type { Exchange } from './http/respond.ts'
import { openStatus } from './http/status.ts'
import { andThen } from './maybe-promise.ts'
import { openMcp } from './mcp/mcp.ts'
import { MAX_FORM_BYTES, showForm, takeForm } from './pages/answer/answer.ts'
import { openChat } from './pages/chat.ts'
import { type ConsoleFiles, openConsole } from './pages/console.ts'
import { openDocs } from './pages/docs.ts'
import { openSchemas } from './pages/schemas.ts'
import type { World } from './ports.ts'
import { runQuery } from './query.ts'
import { answerOf, type Handler, type Route, type Service, serve } from './serve.ts'
import { openFollowedSessions } from './sessions/transcript/followed.ts'
import {
  isSessionStream,
  runSessionStream,
  streamed,
  wantsStream,
} from './sessions/transcript/stream.ts'
import { openMultiplex } from './streams/multiplex/multiplex.ts'
import { runStream, wantsPage } from './streams/stream.ts'
import { mountTerminals } from './terminals/mount.ts'
import { mountWorkerSocket } from './workers/mount.ts'

export interface GatewayOptions {
  /**
   * Maximum time in milliseconds for which a stopping gateway waits for the requests in flight;
   * 10,000 by default.
   */
  readonly grace?: number
  /**
   * The modules of the chat page by address, with the entry module first. Without modules there is
   * no chat page.
   */
  readonly modules?: ReadonlyMap<string, string>
  /** Loads the files of the console. Without it, `/` redirects to the API reference. */
  readonly console?: () => Promise<ConsoleFiles>
}
/** The HTTP server of a gateway. */
export interface Gateway {
  /**
   * Starts accepting connections. Resolves to the port, which the system chooses for port 0.
   * Rejects when the address cannot be used.
   */
  listen(host: string, port: number): Promise<number>
  /**
   * Reports this gateway as not ready, so that load balancers stop using it. Requests are still
   * served. New streams and worker sockets are refused with 503 and `Retry-After`, because they
   * would end soon.
   */
  leave(): void
  /**
   * Stops accepting connections, waits for the requests in flight, ends streams and worker sockets,
   * and closes all connections. A second call resolves immediately.
   */
  stop(): Promise<void>
}

/** A route without the settings and state that all routes share. */
type Unmounted = Omit<Route, 'cors' | 'bodyMemory'>

const registrars: Readonly<Record<string, 'get' | 'post' | 'put' | 'patch' | 'del' | 'head'>> = {
  GET: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'del',
  HEAD: 'head',
}

/** Creates the HTTP server of a gateway. It accepts no connections before `listen`. */
export function createGateway(
  world: World,
  directory: Directory,
  { grace = 10_000, modules = new Map(), console: loadFiles }: GatewayOptions = {},
): Gateway {
  const app = uWS.App()
  const touches = openTouches(world)
  const authentication = openAuthentication(world, directory, touches)
  const edge = createEdge(world, directory, authentication)
  const { followers } = edge
  const sessions = openFollowedSessions(world)
  const multiplex = openMultiplex(edge, sessions)
  const mcp = openMcp(edge)
  const service: Service = {
    world,
    inFlight: 0,
    newId: requestIds(world),
    idle: () => {},
    leaving: false,
    stopping: false,
  }
  let listening: us_listen_socket | undefined

  const cors = world.settings.cors.length > 0
  const { clientAddress } = world
  const handle = (route: Unmounted) => {
    const bodyMemory = route.isKnown ? edge.bodyMemory : edge.publicBodyMemory
    const whole: Route = { ...route, cors, bodyMemory, ...(clientAddress && { clientAddress }) }
    return (res: HttpResponse, req: HttpRequest): void => serve(service, whole, res, req)
  }
  const other = (handler: Handler) =>
    handle({ operation: 'other', purpose: 'other', method: undefined, slots: 0, limit: 0, handler })

  const ofRow = (routed: Routed): Handler => {
    const { verb, shape } = routed.row
    const mcpRow = shape.mcp === true
    const run = (call: Call, exchange: Exchange) => {
      const opens = verb === 'stream' ? !wantsPage(call) : !mcpRow && wantsStream(call)
      // While the gateway drains, a new stream would end soon. A command that opens a stream is
      // refused here, before it is sent, so that the client can repeat it at another gateway.
      if (opens && service.leaving) return refuse('service_unavailable')
      if (mcpRow) return service.stopping ? refuse('service_unavailable') : mcp.run(call, exchange)
      if (verb === 'stream') {
        const name = operationOf(call)
        if (name === 'stream.follow') return multiplex.run(call, exchange)
        return isSessionStream(name)
          ? runSessionStream(edge, sessions, call, exchange, name)
          : runStream(edge, followers, call, exchange)
      }
      if (verb === 'blob') return transfer(edge, call, exchange)
      if (verb !== 'command') return runQuery(edge, call)
      return opens
        ? andThen(runCommand(edge, call), (answer) =>
            streamed(edge, sessions, call, exchange, answer),
          )
        : runCommand(edge, call)
    }
    const refused = ({ upload }: Incoming, why: Refusal) =>
      upload ? upload.discard().then(() => why) : why
    return (incoming, exchange) =>
      andThen(admit(edge, routed, incoming, exchange), (call) =>
        isRefusal(call) ? refused(incoming, call) : run(call, exchange),
      )
  }

  const sockets = [
    mountWorkerSocket(app, world, directory, authentication, edge.limits),
    mountTerminals(app, edge),
  ]
  const methods = new Map<string, { readonly pattern: string; readonly allowed: string[] }>()
  const route = (pattern: string, one: Unmounted & { readonly method: string }, head: boolean) => {
    const { method } = one
    const shape = pathShape(pattern)
    const known = methods.get(shape) ?? { pattern, allowed: [] }
    methods.set(shape, known)
    known.allowed.push(method)
    const register = registrars[method]
    if (!register) throw new Error(`no way to route ${method} ${pattern}`)
    app[register](pattern, handle(one))
    if (head) app.head(pattern, handle({ ...one, method: 'HEAD' }))
  }
  for (const [name, row] of Object.entries(rows)) {
    const { method, path, slots } = routeOf(row)
    if (row.shape.stream === 'socket')
      methods.set(pathShape(`/v1${path}`), { pattern: `/v1${path}`, allowed: ['GET'] })
    else
      route(
        `/v1${path}`,
        {
          operation: name,
          purpose: row.shape.mcp
            ? 'rpc'
            : row.shape.upload
              ? 'upload'
              : row.verb === 'blob'
                ? 'other'
                : row.verb,
          method,
          slots: slots.length,
          ...receptionOf({ row }, world.settings),
          handler: ofRow({ name, row, slots }),
          isKnown: (incoming) => isKnown(edge, { name, row, slots }, incoming),
        },
        method === 'GET' && (row.verb === 'query' || row.verb === 'blob'),
      )
  }
  for (const [path, answer] of Object.entries({
    ...openStatus(world, () => service.leaving),
    ...openDocs(world.settings),
    ...openSchemas(),
    ...openChat(world.settings, modules),
    ...openConsole(world, loadFiles),
  }))
    route(
      path,
      {
        operation: path.replace(/^\/(modules|schemas)\/.*/, '/$1'),
        purpose: 'query',
        method: 'GET',
        slots: path.includes(':') ? 1 : 0,
        limit: 0,
        further: ['if-none-match', 'accept-encoding'],
        handler: answer,
      },
      true,
    )
  const form = { operation: '/answer', slots: 1, limit: MAX_FORM_BYTES } as const
  route(
    '/answer/:token',
    { ...form, purpose: 'query', method: 'GET', handler: showForm(edge) },
    true,
  )
  route(
    '/answer/:token',
    { ...form, purpose: 'command', method: 'POST', handler: takeForm(edge) },
    false,
  )
  route(
    `/v1${routeOf(unauthenticated['trigger.http']).path}`,
    {
      operation: 'trigger.http',
      purpose: 'signed',
      method: 'POST',
      slots: 1,
      limit: TRIGGER_LIMIT,
      signature: signatureHeader(world.settings.brand),
      handler: takeTrigger(edge),
    },
    false,
  )
  route(
    `/v1${routeOf(unauthenticated['integration.receive']).path}`,
    {
      operation: 'integration.receive',
      purpose: 'signed',
      method: 'POST',
      slots: 2,
      limit: unauthenticated['integration.receive'].shape.limit,
      further: INTEGRATION_HEADERS,
      handler: receiveIntegration(edge),
    },
    false,
  )
  route(...downloadRoute(edge), true)
  for (const [path, one] of consoleRoutes(edge)) route(path, one, false)
  const page = { operation: DEVICE_PAGE, slots: 0 } as const
  const limit = MAX_DEVICE_FORM_BYTES
  route(
    DEVICE_PAGE,
    { ...page, purpose: 'query', method: 'GET', limit: 0, handler: showDevice(edge) },
    true,
  )
  route(
    DEVICE_PAGE,
    { ...page, purpose: 'command', method: 'POST', limit, handler: takeDevice(edge) },
    false,
  )
  const login = { purpose: 'login', method: 'POST', slots: 0, limit } as const
  for (const [operation, handler] of Object.entries({
    'device.code': giveDeviceCode(edge),
    'device.token': giveDeviceToken(edge),
  } as const))
    route(
      `/v1${routeOf(unauthenticated[operation as 'device.code']).path}`,
      { ...login, operation, handler },
      false,
    )
  for (const { pattern, allowed } of methods.values())
    app.any(pattern, other(otherMethod(world, [...new Set(allowed)])))
  app.any(
    '/*',
    other((incoming) =>
      incoming.method === 'OPTIONS'
        ? {
            status: 204,
            headers: preflightHeaders(
              world.settings,
              incoming.header('origin'),
              incoming.header('access-control-request-headers'),
              [],
            ),
          }
        : refuse('not_found', undefined, 'There is no such path.'),
    ),
  )

  return {
    listen: (host, port) =>
      listen(app, host, port).then((token) => {
        listening = token
        return uWS.us_socket_local_port(token as never)
      }),
    leave() {
      service.leaving = true
      for (const socket of sockets) socket.leave()
    },
    async stop() {
      if (service.stopping) return
      service.leaving = service.stopping = true
      if (listening) uWS.us_listen_socket_close(listening)
      const finished = new Promise<void>((resolve) => {
        const cancel = world.later(grace, resolve)
        service.idle = () => {
          cancel()
          resolve()
        }
        if (service.inFlight === 0) service.idle()
      })
      await finished
      multiplex.stop()
      followers.stop()
      sessions.stop()
      mcp.stop()
      for (const socket of sockets) await socket.stop()
      touches.close()
      // uWS sends corked data at the end of this turn of the event loop, so the app is closed only
      // afterwards.
      await new Promise((resolve) => setImmediate(resolve))
      app.close()
    },
  }
}

declare module 'uWebSockets.js' {
  interface TemplatedApp {
    /** The published types lack this overload, which takes options together with a host. */
    listen(
      host: string,
      port: number,
      options: number,
      cb: (listenSocket: us_listen_socket | false) => void,
    ): TemplatedApp
  }
}
/**
 * The option `LIBUS_LISTEN_EXCLUSIVE_PORT`. Without it, two processes can listen on the same port,
 * and each receives some of the connections.
 */
const EXCLUSIVE_PORT = 1

function listen(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, EXCLUSIVE_PORT, (token) =>
      token ? resolve(token) : reject(new Error(`cannot listen on ${host}:${port}`)),
    )
  })
}

/**
 * Creates the handler of the methods that a path does not support. It answers preflights, and
 * refuses all other requests with a list of the supported methods.
 */
const otherMethod =
  (world: World, allowed: readonly string[]): Handler =>
  (incoming) => {
    const all = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : []), 'OPTIONS']
    if (incoming.method === 'OPTIONS')
      return {
        status: 204,
        headers: {
          Allow: all.join(', '),
          ...preflightHeaders(
            world.settings,
            incoming.header('origin'),
            incoming.header('access-control-request-headers'),
            all,
          ),
        },
      }
    const refused = answerOf(refuse('method_not_allowed', { allowed: all }))
    return { ...refused, headers: { Allow: all.join(', ') } }
  }
