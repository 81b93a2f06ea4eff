/**
 * Serves one request from its arrival to its response: its id, the common headers, the wire form of
 * a refusal, its metrics and its log line. The handler of the route executes the request.
 *
 * Invariant: every request is counted once, with the status of its response, or with 499 when its
 * client disconnected before the response.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { errorBody, errors, isRefusal, type Refusal, refuse } from '../protocol/errors.ts'
import { corsHeaders } from './http/cors.ts'
import { type BodyAdmission, Incoming, type RouteFacts } from './http/request.ts'
import { requestIdOf } from './http/request-id.ts'
import { type Answer, Exchange } from './http/respond.ts'
import type { MaybePromise } from './maybe-promise.ts'
import type { World } from './ports.ts'

type Given = Answer | Refusal | undefined
/**
 * Handles a request and returns its response. Returns `undefined` when a stream was opened, or when
 * the client has disconnected.
 */
export type Handler = (incoming: Incoming, exchange: Exchange) => MaybePromise<Given>
/** A route: the name under which logs and metrics report its requests, and their handler. */
export interface Route extends RouteFacts, BodyAdmission {
  readonly operation: string
  readonly handler: Handler
}
/** A route without the settings and state that all routes of a gateway share. */
export type Endpoint = Omit<Route, 'cors' | 'clientAddress' | 'bodyMemory' | 'later' | 'method'> & {
  readonly method: string
}
/**
 * State shared by all requests that a gateway serves: the generator of request ids, the number of
 * requests in flight, and the progress of the shutdown.
 */
export interface Service {
  readonly world: World
  /** The number of requests that `stop` waits for. Open streams are not included. */
  inFlight: number
  /** Returns a new request id. */
  readonly newId: () => string
  /** Called whenever the number of requests in flight has dropped to 0. */
  idle: () => void
  /**
   * Whether the gateway is draining. It then reports that it is not ready, and closes each
   * connection after the next response.
   */
  leaving: boolean
  /** Whether `stop` was called. MCP requests are then refused as well. */
  stopping: boolean
}

/** The header of a response to a request without a valid credential. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer' } as const
/** The status, in logs and metrics, of a request whose client disconnected before the response. */
const ABORTED = 499

/**
 * Converts a refusal to its HTTP response. A refusal with an unknown code is answered with 503. A
 * response with status 503, or with status 429 and a known delay, has a `Retry-After` header in
 * seconds. A response to a request without a valid credential names the scheme of credentials, which
 * HTTP requires (RFC 9110, section 11.6.1).
 */
export function answerOf(refusal: Refusal): Answer {
  // During an upgrade, a shard owner of a newer release may return a code that this gateway does
  // not know.
  if (!Object.hasOwn(errors, refusal.refused)) return answerOf(refuse('service_unavailable'))
  const { status } = errors[refusal.refused]
  const { retry_after_seconds, retry_after: after = retry_after_seconds } = refusal.details ?? {}
  const passes = status === 503 || (status === 429 && typeof after === 'number')
  return {
    status,
    body: errorBody(refusal),
    ...(refusal.refused === 'unauthorized' && { headers: CHALLENGE }),
    ...(passes && {
      headers: {
        'Retry-After': String(typeof after === 'number' ? Math.max(1, Math.ceil(after)) : 1),
      },
    }),
  }
}

/** Serves a request for a route: receives it, calls the handler, and sends the response. */
export function serve(service: Service, route: Route, res: HttpResponse, req: HttpRequest): void {
  const served = new Served(service, route, res, req)
  if (served.incoming.ambiguous) served.giveUp()
  else served.incoming.receive(res, route, served)
}

const AMBIGUOUS = refuse(
  'bad_request',
  {},
  'The request has two Content-Length headers that differ.',
)

/** The content codings of bodies that the service accepts (RFC 9110, section 15.5.16). */
const CODINGS = { 'Accept-Encoding': 'identity' } as const

/**
 * Refuses a body with a content coding, such as gzip. Bodies are not decoded, because a small one
 * could then exceed every limit.
 */
function refuseCoding(incoming: Incoming): Refusal | undefined {
  const coding = incoming.header('content-encoding')
  return coding === undefined || coding.toLowerCase() === 'identity'
    ? undefined
    : refuse(
        'unsupported_media_type',
        { content_encoding: coding.slice(0, 100) },
        'Send the body as it is; the service accepts no Content-Encoding such as gzip.',
      )
}

/**
 * A request that is being served. It is a class, so that no closures are created for each request.
 */
class Served {
  readonly incoming: Incoming
  readonly #service: Service
  readonly #route: Route
  readonly #exchange: Exchange
  readonly #started: number
  #status = 0
  #ended = false
  /** Whether the request has been received completely. */
  #ready = false

  constructor(service: Service, route: Route, res: HttpResponse, req: HttpRequest) {
    const { world } = service
    this.#service = service
    this.#route = route
    this.#started = world.monotonic()
    const incoming = (this.incoming = new Incoming(res, req, route))
    const id = requestIdOf(incoming.header('x-request-id'), service.newId)
    this.#exchange = new Exchange(res, id, () => this.#over())
    const origin =
      route.cors && incoming.method !== 'OPTIONS' ? incoming.header('origin') : undefined
    if (origin !== undefined) this.#exchange.add(corsHeaders(world.settings, origin))
    if (incoming.upload) this.#exchange.onClose(() => incoming.upload?.gone())
    service.inFlight++
  }

  /** Called when the request has been received. The body of an upload is read later. */
  ready(): void {
    this.#ready = true
    try {
      const given = this.#handle()
      if (given instanceof Promise)
        given.then(
          (later) => this.#answer(later),
          (error: unknown) => this.#answer(this.#failed(error)),
        )
      else this.#answer(given)
    } catch (error) {
      this.#answer(this.#failed(error))
    }
  }

  #handle(): MaybePromise<Given> {
    const { incoming } = this
    const encoded = refuseCoding(incoming)
    if (encoded) {
      this.#exchange.add(CODINGS)
      return incoming.upload ? incoming.upload.discard().then(() => encoded) : encoded
    }
    return incoming.broken === 'no_memory'
      ? refuse('service_unavailable')
      : this.#route.handler(incoming, this.#exchange)
  }

  /**
   * Refuses a request whose end is ambiguous, and closes its connection. After an immediate
   * response, uWS would continue to read from the connection, so the response is sent in the next
   * turn of the event loop. Until then, uWS closes the connection when the first byte of another
   * request arrives.
   */
  giveUp(): void {
    this.#service.world.later(0, () => this.#answer(AMBIGUOUS, true))
  }

  #failed(error: unknown): Refusal {
    this.#service.world.log.error(
      {
        event: 'request_failed',
        err: error,
        operation: this.#route.operation,
        request_id: this.#exchange.request_id,
      },
      'request failed',
    )
    return refuse('internal')
  }

  #answer(given: Given, close = this.#service.leaving): void {
    this.incoming.end()
    const answer = given && (isRefusal(given) ? answerOf(given) : given)
    if (isRefusal(given)) this.#service.world.count.refused?.(given.refused)
    if (this.#exchange.open) this.#settle(answer?.status ?? 200)
    if (answer) this.#exchange.answer(answer, this.incoming.method === 'HEAD', close)
    else this.#done()
  }

  /** Called when the exchange has been answered, ended or aborted. */
  #over(): void {
    this.incoming.gone()
    // A handler that is still running uses the body.
    if (!this.#ready) this.incoming.end()
    this.#settle(ABORTED)
    this.#done()
  }

  #settle(outcome: number): void {
    if (this.#status !== 0) return
    this.#status = outcome
    const { world } = this.#service
    const ms = Math.round(world.monotonic() - this.#started)
    world.count.request(this.#route.operation, outcome, ms / 1000)
    world.log[outcome >= 500 ? 'warn' : 'debug'](
      {
        event: 'request_completed',
        operation: this.#route.operation,
        method: this.incoming.method,
        status: outcome,
        ms,
        request_id: this.#exchange.request_id,
      },
      'request completed',
    )
  }

  #done(): void {
    if (this.#ended) return
    this.#ended = true
    if (--this.#service.inFlight === 0) this.#service.idle()
  }
}
