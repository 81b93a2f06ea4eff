/**
 * What came in, as plain data. Boundary: this file, `respond.ts` and the socket are the only ones that touch a uWS request or
 * response.
 *
 * Invariants:
 * Q1. A uWS request lives only until its handler returns: everything is copied here, before anything waits.
 * Q2. Reading the body starts in the same turn, otherwise its first chunk is lost. A body is never kept beyond its limit;
 *     what follows is read and thrown away, so that the connection stays usable and the refusal reaches the client.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { Exchange } from './respond.ts'

/** The bytes of a body, or why there are none. */
export type Body = Uint8Array | 'too_large' | 'aborted'

/** Discarded bytes of an oversized body before the connection is given up, for clients that close it after their request. */
const DRAIN = 16 * 1_048_576
const EMPTY = new Uint8Array(0)

/** The headers that are kept, those that matter for such a request only when it is one: asking for the others costs time. */
function headersOf(req: HttpRequest, reading: boolean, bodiless: boolean, preflight: boolean) {
  return {
    accept: req.getHeader('accept'),
    authorization: req.getHeader('authorization'),
    connection: bodiless ? '' : req.getHeader('connection'),
    'content-type': bodiless ? '' : req.getHeader('content-type'),
    'idempotency-key': reading ? '' : req.getHeader('idempotency-key'),
    'last-event-id': reading ? req.getHeader('last-event-id') : '',
    origin: req.getHeader('origin'),
    'user-agent': req.getHeader('user-agent'),
    'x-request-id': req.getHeader('x-request-id'),
    'access-control-request-headers': preflight ? req.getHeader('access-control-request-headers') : '',
  }
}
export type KeptHeader = keyof ReturnType<typeof headersOf>

/** A request. A class, so that no function is made anew for each of them. */
export class Incoming {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** What follows the question mark, still encoded. */
  readonly query: string
  /** Path slots in order, still encoded. */
  readonly slots: readonly string[] = []
  /** Of a request that may change something; else empty. */
  readonly ip: string
  /** To be looked at once `receive` has said so. */
  body: Body = EMPTY
  readonly #bodiless: boolean
  #whole = false
  readonly #headers: ReturnType<typeof headersOf>

  /** Copy what came before the body. @param slots number of path slots of the route. */
  constructor(res: HttpResponse, req: HttpRequest, slots: number) {
    this.method = req.getMethod().toUpperCase()
    const preflight = this.method === 'OPTIONS'
    const reading = preflight || this.method === 'GET' || this.method === 'HEAD'
    this.#bodiless = reading || (req.getHeader('content-length') === '' && req.getHeader('transfer-encoding') === '')
    this.#headers = headersOf(req, reading, this.#bodiless, preflight)
    this.path = req.getUrl()
    this.query = req.getQuery() ?? ''
    if (slots > 0) this.slots = Array.from({ length: slots }, (_, index) => req.getParameter(index) ?? '')
    this.ip = reading ? '' : address(Buffer.from(res.getRemoteAddressAsText()).toString('latin1'))
  }

  /** A header's value, trimmed; absent when empty. */
  header(name: KeptHeader): string | undefined {
    return this.#headers[name].trim() || undefined
  }

  /**
   * Collect the body, then call `ready` once: at once when there is none. A client that closes its connection after the request
   * gets the refusal of an oversized body only when it has sent all of it (an earlier answer would be lost in the reset); any
   * other one gets it at once. @param exchange its answer. @param limit largest body kept, in bytes.
   */
  receive(res: HttpResponse, exchange: Exchange, limit: number, ready: () => void): void {
    if (this.#bodiless) {
      ready()
      return
    }
    const closing = this.header('connection')?.toLowerCase() === 'close'
    let chunks: Uint8Array[] = []
    let size = 0
    exchange.onClose(() => this.#finish('aborted', ready))
    res.onData((chunk, last) => {
      size += chunk.byteLength
      if (size <= limit) {
        // A copy, because the chunk is gone when this returns.
        if (chunk.byteLength > 0) chunks.push(Buffer.from(new Uint8Array(chunk)))
        if (last) this.#finish(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks), ready)
        return
      }
      chunks = []
      if (last || !closing || size > limit + DRAIN) this.#finish('too_large', ready)
    })
  }

  #finish(body: Body, ready: () => void): void {
    if (this.#whole) return
    this.#whole = true
    this.body = body
    ready()
  }
}

/** IPv4 addresses that arrive through an IPv6 socket are written the short way. */
function address(text: string): string {
  const mapped = /^(?:0000:){5}ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/.exec(text)
  return mapped ? mapped.slice(1).map((part) => Number.parseInt(part, 16)).join('.') : text
}
