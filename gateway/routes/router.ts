/**
 * Registers routes with uWS. Paths and methods that no route supports are answered here too:
 * preflights, 405 with the supported methods, and 404.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js'
import { pathShape } from '../../protocol/contract.ts'
import { refuse } from '../../protocol/errors.ts'
import type { Edge } from '../call.ts'
import { preflightHeaders } from '../http/cors.ts'
import type { World } from '../ports.ts'
import { answerOf, type Endpoint, type Handler, type Route, type Service, serve } from '../serve.ts'

/** The routes of a gateway. */
export interface Router {
  /** Adds a route. A GET route whose response is not a stream also answers HEAD. */
  add(pattern: string, endpoint: Endpoint): void
  /** Notes the path of a WebSocket, which is opened with GET and mounted elsewhere. */
  addSocket(pattern: string): void
  /** Adds the answers to all other methods and paths. Called after all routes have been added. */
  addFallbacks(): void
}

const registrars: Readonly<Record<string, 'get' | 'post' | 'put' | 'patch' | 'del'>> = {
  GET: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'del',
}

/** Creates the router of a gateway. */
export function createRouter(app: TemplatedApp, edge: Edge, service: Service): Router {
  const { world, bodyMemory, publicBodyMemory } = edge
  const { clientAddress } = world
  const shared = { cors: world.settings.cors.length > 0, ...(clientAddress && { clientAddress }) }
  const served = (route: Omit<Endpoint, 'method'> & Pick<Route, 'method'>) => {
    const memory = route.isKnown ? bodyMemory : publicBodyMemory
    const whole: Route = {
      ...route,
      ...shared,
      bodyMemory: memory,
      later: (ms, run) => world.later(ms, run),
    }
    return (res: HttpResponse, req: HttpRequest): void => serve(service, whole, res, req)
  }
  const fallback = (handler: Handler) =>
    served({
      operation: 'other',
      purpose: 'other',
      method: undefined,
      slots: 0,
      limit: 0,
      handler,
    })
  /** The methods of each path. Paths that differ only in the names of their slots are one path. */
  const paths = new Map<string, { readonly pattern: string; readonly methods: Set<string> }>()
  const note = (pattern: string, method: string): void => {
    const shape = pathShape(pattern)
    const known = paths.get(shape) ?? { pattern, methods: new Set() }
    paths.set(shape, known)
    known.methods.add(method)
  }

  return {
    add(pattern, endpoint) {
      const { method, purpose } = endpoint
      const register = registrars[method]
      if (!register) throw new Error(`no way to route ${method} ${pattern}`)
      note(pattern, method)
      app[register](pattern, served(endpoint))
      if (method !== 'GET' || (purpose !== 'query' && purpose !== 'other')) return
      note(pattern, 'HEAD')
      app.head(pattern, served({ ...endpoint, method: 'HEAD' }))
    },
    addSocket: (pattern) => note(pattern, 'GET'),
    addFallbacks() {
      for (const { pattern, methods } of paths.values())
        app.any(pattern, fallback(otherMethod(world, [...methods])))
      app.any('/*', fallback(otherPath(world)))
    },
  }
}

/**
 * Creates the handler of the methods that a path does not support. It answers preflights, and
 * refuses all other requests with a list of the supported methods.
 */
const otherMethod =
  (world: World, allowed: readonly string[]): Handler =>
  (incoming) => {
    const all = [...allowed, 'OPTIONS']
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

/** Creates the handler of the paths that no route has. */
const otherPath =
  (world: World): Handler =>
  (incoming) =>
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
      : refuse('not_found', undefined, 'There is no such path.')
