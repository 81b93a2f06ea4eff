/**
 * The HTTP edge: every row of the table on its route, and what surrounds it: request ids, cross-origin rules, refusals in
 * their wire form, one log line per request, and an orderly stop.
 */
import uWS, { type HttpRequest, type HttpResponse, type TemplatedApp, type us_listen_socket } from 'uWebSockets.js'
import { routeOf, type Row } from '../protocol/contract.ts'
import { errorBody, errors, isRefusal, refuse, type Refusal } from '../protocol/errors.ts'
import { openAuthentication } from './authenticate.ts'
import { admit, BODY_LIMIT, rows, type Edge } from './call.ts'
import { runCommand } from './command.ts'
import { corsHeaders, preflightHeaders } from './cors.ts'
import type { Directory } from './directory.ts'
import { openDocs } from './docs.ts'
import { openFollowers } from './followers.ts'
import type { World } from './ports.ts'
import { runQuery } from './query.ts'
import { createLimits } from './rate.ts'
import { readRequest, type Incoming } from './request.ts'
import { Exchange, type Answer } from './respond.ts'
import { mountWorkerSocket } from './socket/mount.ts'
import { openStatus } from './status.ts'
import { runStream } from './stream.ts'
import { openTouches } from './touch.ts'

export interface GatewayOptions {
  /** Milliseconds that requests in flight get when the gateway stops; 10 s by default. */
  readonly grace?: number
}
export interface Gateway {
  /** Accept connections; gives the port, which the system chooses for port 0. Throws when the address cannot be used. */
  listen(host: string, port: number): Promise<number>
  /** Take no more connections, let requests in flight finish, end streams and worker sockets, close. */
  stop(): Promise<void>
}

type Headers = Record<string, string>
/** Stands in logs and counters for a client that went away before its answer. */
const ABORTED = 499
/** Answers a request; `undefined`: a stream was opened, or nobody waits for an answer. */
type Handler = (incoming: Incoming, exchange: Exchange, request_id: string, headers: Headers) => Promise<Answer | Refusal | undefined>

const registrars: Readonly<Record<string, 'get' | 'post' | 'put' | 'patch' | 'del' | 'head'>> = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del', HEAD: 'head' }

/** Build the edge of one gateway over its world; it serves nothing before `listen`. */
export function createGateway(world: World, directory: Directory, { grace = 10_000 }: GatewayOptions = {}): Gateway {
  const app = uWS.App()
  const touches = openTouches(world)
  const authentication = openAuthentication(world, directory, touches)
  const edge: Edge = { world, directory, authentication, limits: createLimits(world) }
  const followers = openFollowers(world)
  const inFlight = new Set<Exchange>()
  let idle = () => {}
  let stopping = false
  let listening: us_listen_socket | undefined

  const handle = (operation: string, slots: number, limit: number, handler: Handler) => (res: HttpResponse, req: HttpRequest): void => {
    const exchange = new Exchange(res)
    const incoming = readRequest(res, req, exchange, slots, limit)
    const started = world.now()
    const given = incoming.header('x-request-id')
    const request_id = given !== undefined && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${Buffer.from(world.random(12)).toString('hex')}`
    const headers: Headers = { 'X-Request-ID': request_id, ...corsHeaders(world.settings, incoming.header('origin')) }
    let status = 0
    const settle = (outcome: number) => {
      if (status !== 0) return
      status = outcome
      const ms = Math.round(world.now() - started)
      world.count.request(operation, status, ms / 1000)
      world.log[status >= 500 ? 'warn' : 'debug']({ operation, method: incoming.method, status, ms, request_id }, 'request')
    }
    const done = () => {
      inFlight.delete(exchange)
      if (inFlight.size === 0) idle()
    }
    inFlight.add(exchange)
    exchange.onClose(() => {
      settle(ABORTED)
      done()
    })
    const failed = (error: unknown): Refusal => {
      world.log.error({ err: error, operation, request_id }, 'a request failed')
      return refuse('internal')
    }
    void incoming.body.then(() => handler(incoming, exchange, request_id, headers)).catch(failed).then((outcome) => {
      const answer = outcome && (isRefusal(outcome) ? answerOf(outcome) : outcome)
      if (exchange.open) settle(answer?.status ?? 200)
      // An open stream is not waited for when the gateway stops.
      if (answer) exchange.answer({ ...answer, headers: { ...headers, ...answer.headers } }, incoming.method === 'HEAD', stopping)
      else done()
    })
  }

  const ofRow = (name: string, row: Row): Handler => async (incoming, exchange, request_id, headers) => {
    const call = await admit(edge, name, row, request_id, incoming, (more) => void Object.assign(headers, more))
    if (call === 'aborted') return undefined
    if (isRefusal(call)) return call
    if (row.verb === 'stream') return stopping ? refuse('service_unavailable') : runStream(edge, followers, call, exchange, headers)
    return row.verb === 'command' ? runCommand(edge, call) : runQuery(edge, call)
  }

  const socket = mountWorkerSocket(app, world, directory, authentication)
  const methods = new Map<string, { readonly pattern: string; readonly allowed: string[] }>()
  const route = (method: string, pattern: string, operation: string, slots: number, limit: number, handler: Handler, head = method === 'GET') => {
    const shape = pattern.replaceAll(/:\w+/g, ':')
    const known = methods.get(shape) ?? { pattern, allowed: [] }
    methods.set(shape, known)
    known.allowed.push(method)
    const register = registrars[method]
    if (!register) throw new Error(`no way to route ${method} ${pattern}`)
    app[register](pattern, handle(operation, slots, limit, handler))
    if (head) app.head(pattern, handle(operation, slots, limit, handler))
  }
  for (const [name, row] of Object.entries(rows)) {
    const { method, path, slots } = routeOf(row)
    if (row.shape.stream === 'socket') methods.set(`/v1${path}`.replaceAll(/:\w+/g, ':'), { pattern: `/v1${path}`, allowed: ['GET'] })
    else route(method, `/v1${path}`, name, slots.length, row.shape.limit ?? BODY_LIMIT, ofRow(name, row), row.verb === 'query')
  }
  for (const [path, answer] of Object.entries({ ...openStatus(world, () => stopping), ...openDocs(world.settings) })) route('GET', path, path, 0, 0, answer)
  for (const { pattern, allowed } of methods.values()) app.any(pattern, handle('other', 0, 0, otherMethod(world, [...new Set(allowed)])))
  app.any('/*', handle('other', 0, 0, async ({ method, header }) =>
    method === 'OPTIONS' ? { status: 204, headers: preflightHeaders(world.settings, header('origin'), header('access-control-request-headers'), []) } : refuse('not_found', undefined, 'There is no such path.')))

  return {
    listen: (host, port) => listen(app, host, port).then((token) => {
      listening = token
      return uWS.us_socket_local_port(token as never)
    }),
    async stop() {
      if (stopping) return
      stopping = true
      if (listening) uWS.us_listen_socket_close(listening)
      const finished = new Promise<void>((resolve) => {
        const cancel = world.later(grace, resolve)
        idle = () => { cancel(); resolve() }
        if (inFlight.size === 0) idle()
      })
      await finished
      followers.stop()
      await socket.stop()
      touches.close()
      // What was just written leaves with the end of this turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
      app.close()
    },
  }
}

function listen(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, (token) => (token ? resolve(token) : reject(new Error(`cannot listen on ${host}:${port}`))))
  })
}

/** The wire form of a refusal; one that may pass says when to try again. */
function answerOf(refusal: Refusal): Answer {
  const { status } = errors[refusal.refused]
  const after = refusal.details?.['retry_after']
  return { status, body: errorBody(refusal), ...(status === 503 && { headers: { 'Retry-After': String(typeof after === 'number' ? Math.max(1, Math.ceil(after)) : 1) } }) }
}

/** A known path asked with a method it does not have: a preflight, or a refusal that names the ones it has. */
const otherMethod = (world: World, allowed: readonly string[]): Handler => async ({ method, header }) => {
  const all = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : []), 'OPTIONS']
  if (method === 'OPTIONS') return { status: 204, headers: { Allow: all.join(', '), ...preflightHeaders(world.settings, header('origin'), header('access-control-request-headers'), all) } }
  const refused = answerOf(refuse('method_not_allowed', { allowed: all }))
  return { ...refused, headers: { Allow: all.join(', ') } }
}
