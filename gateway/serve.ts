/**
 * One request from its arrival to its answer: its id, the headers every answer has, the refusal's wire form, its count and its
 * line in the log. A class, so that no function is made anew for each request.
 *
 * Invariant: every request is counted once, with the status of its answer, or with 499 when its client went away before.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { errorBody, errors, isRefusal, refuse, type Refusal } from '../protocol/errors.ts'
import { corsHeaders } from './cors.ts'
import type { World } from './ports.ts'
import { Incoming } from './request.ts'
import { Exchange, type Answer } from './respond.ts'

type Headers = Record<string, string>
/** Answers a request; `undefined`: a stream was opened, or nobody waits for an answer. */
export type Handler = (incoming: Incoming, exchange: Exchange, request_id: string, headers: Headers) => Promise<Answer | Refusal | undefined>
/** What all requests of a gateway have in common. */
export interface Service {
  readonly world: World
  /** Requests that the end of the gateway waits for. An open stream is not waited for. */
  readonly inFlight: Set<Exchange>
  /** Nothing is in flight any more. */
  idle: () => void
  /** Nobody new should come: the gateway is not ready, and connections are given up after their answer. */
  leaving: boolean
  /** Streams are not opened any more. */
  stopping: boolean
}

/** Stands in logs and counters for a client that went away before its answer. */
const ABORTED = 499
const ID = /^[\w.:-]{1,128}$/

/** The wire form of a refusal; one that may pass says when to try again. */
export function answerOf(refusal: Refusal): Answer {
  const { status } = errors[refusal.refused]
  const after = refusal.details?.['retry_after']
  return { status, body: errorBody(refusal), ...(status === 503 && { headers: { 'Retry-After': String(typeof after === 'number' ? Math.max(1, Math.ceil(after)) : 1) } }) }
}

/** Serve a request. @param operation what it is called in counts. @param slots path slots of its route. @param limit largest body, in bytes. */
export function serve(service: Service, operation: string, slots: number, limit: number, handler: Handler, res: HttpResponse, req: HttpRequest): void {
  const exchange = new Exchange(res)
  const served = new Served(service, operation, exchange, new Incoming(res, req, slots))
  exchange.onClose(() => served.closed())
  served.incoming.receive(res, exchange, limit, () => void served.run(handler))
}

class Served {
  readonly incoming: Incoming
  readonly #service: Service
  readonly #operation: string
  readonly #exchange: Exchange
  readonly #started: number
  readonly #id: string
  readonly #headers: Headers
  #status = 0

  constructor(service: Service, operation: string, exchange: Exchange, incoming: Incoming) {
    const { world } = service
    this.#service = service
    this.#operation = operation
    this.#exchange = exchange
    this.incoming = incoming
    this.#started = world.now()
    const given = incoming.header('x-request-id')
    this.#id = given !== undefined && ID.test(given) ? given : `req_${Buffer.from(world.random(12)).toString('hex')}`
    this.#headers = { 'X-Request-ID': this.#id }
    const origin = incoming.header('origin')
    if (origin !== undefined) Object.assign(this.#headers, corsHeaders(world.settings, origin))
    service.inFlight.add(exchange)
  }

  /** The exchange is over: answered, ended or aborted. */
  closed(): void {
    this.#settle(ABORTED)
    this.#done()
  }

  async run(handler: Handler): Promise<void> {
    let outcome: Answer | Refusal | undefined
    try {
      outcome = await handler(this.incoming, this.#exchange, this.#id, this.#headers)
    } catch (error) {
      this.#service.world.log.error({ err: error, operation: this.#operation, request_id: this.#id }, 'a request failed')
      outcome = refuse('internal')
    }
    const answer = outcome && (isRefusal(outcome) ? answerOf(outcome) : outcome)
    if (isRefusal(outcome)) this.#service.world.count.refused?.(outcome.refused)
    if (this.#exchange.open) this.#settle(answer?.status ?? 200)
    if (answer) this.#exchange.answer(answer, this.#headers, this.incoming.method === 'HEAD', this.#service.leaving)
    else this.#done()
  }

  #settle(outcome: number): void {
    if (this.#status !== 0) return
    this.#status = outcome
    const { world } = this.#service
    const ms = Math.round(world.now() - this.#started)
    world.count.request(this.#operation, outcome, ms / 1000)
    world.log[outcome >= 500 ? 'warn' : 'debug']({ operation: this.#operation, method: this.incoming.method, status: outcome, ms, request_id: this.#id }, 'request')
  }

  #done(): void {
    const { inFlight, idle } = this.#service
    inFlight.delete(this.#exchange)
    if (inFlight.size === 0) idle()
  }
}
