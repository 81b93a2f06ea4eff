/**
 * The HTTP server of a gateway: assembles its state, its routes (`routes/`) and its WebSockets, and
 * stops gracefully.
 */
import uWS, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js'
import { openAuthentication } from './auth/authenticate.ts'
import { openTouches } from './auth/key-last-used.ts'
import type { Directory } from './directory.ts'
import { createEdge } from './edge.ts'
import { requestIds } from './http/request-id.ts'
import { openMcp } from './mcp/mcp.ts'
import type { ConsoleFiles } from './pages/console.ts'
import type { World } from './ports.ts'
import { addPublicRoutes } from './routes/public.ts'
import { createRouter } from './routes/router.ts'
import { addRows } from './routes/rows.ts'
import type { Service } from './serve.ts'
import { openFollowedSessions } from './sessions/transcript/followed.ts'
import { openMultiplex } from './streams/multiplex/multiplex.ts'
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

/** Creates the HTTP server of a gateway. It accepts no connections before `listen`. */
export function createGateway(
  world: World,
  directory: Directory,
  { grace = 10_000, modules = new Map(), console: loadConsole }: GatewayOptions = {},
): Gateway {
  const app = uWS.App()
  const touches = openTouches(world)
  const authentication = openAuthentication(world, directory, touches)
  const edge = createEdge(world, directory, authentication)
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

  const sockets = [
    mountWorkerSocket(app, world, directory, authentication, edge.limits),
    mountTerminals(app, edge),
  ]
  const router = createRouter(app, edge, service)
  addRows(router, { edge, service, sessions, multiplex, mcp })
  addPublicRoutes(router, edge, { modules, loadConsole, isLeaving: () => service.leaving })
  router.addFallbacks()

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
      edge.followers.stop()
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
