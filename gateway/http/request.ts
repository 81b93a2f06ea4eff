/**
 * A received request as plain data. Boundary: only this file, `upload.ts`, `respond.ts` and the
 * worker socket touch a uWS request or response.
 *
 * Invariants:
 * Q1. A uWS request is valid only until its handler returns: everything is copied here before the
 *     first wait.
 * Q2. Reading the body starts in the same turn, because otherwise its first chunk is lost. A body
 *     is never stored beyond its limit; the rest is read and discarded, so that the connection
 *     stays usable and the refusal reaches the client.
 * Q3. A request whose client disconnects before its body is complete is never handled: its exchange
 *     has ended.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { isUtf8 } from 'node:buffer'
import { Upload } from '../files/upload.ts'

/**
 * The purpose of a route. It determines which headers are read, because each header lookup costs
 * time.
 */
type Purpose = 'command' | 'query' | 'stream' | 'signed' | 'upload' | 'rpc' | 'login' | 'other'

/** Facts that hold for all requests of a route. */
export interface RouteFacts {
  readonly purpose: Purpose
  /** Upper case; undefined on routes that accept any method. */
  readonly method: string | undefined
  /** Number of path slots. */
  readonly slots: number
  /** Largest accepted body, in bytes. */
  readonly limit: number
  /** The header that carries the signature of a `signed` body, lower case. */
  readonly signature?: string
  /** Additional headers that `further` returns, lower case. */
  readonly further?: readonly string[]
  /** Whether CORS is enabled. */
  readonly cors: boolean
}

/**
 * Bytes of an oversized body that are discarded before the refusal is sent anyway, for clients that
 * close the connection after their request.
 */
const DRAIN = 16 * 1_048_576

/** The headers that matter for a request of this purpose. Absent headers are empty. */
function headersOf(
  req: HttpRequest,
  purpose: Purpose,
  bodiless: boolean,
  cors: boolean,
  signature: string | undefined,
) {
  const rpc = purpose === 'rpc'
  const login = purpose === 'login'
  const command =
    purpose === 'command' || purpose === 'signed' || purpose === 'upload' || rpc || login
  return {
    authorization: req.getHeader('authorization'),
    'x-request-id': req.getHeader('x-request-id'),
    origin: cors || rpc ? req.getHeader('origin') : '',
    'content-type': bodiless ? '' : req.getHeader('content-type'),
    'user-agent': command ? req.getHeader('user-agent') : '',
    'idempotency-key': command ? req.getHeader('idempotency-key') : '',
    host: login ? req.getHeader('host') : '',
    accept: purpose === 'stream' || command ? req.getHeader('accept') : '',
    'last-event-id': purpose === 'stream' || rpc ? req.getHeader('last-event-id') : '',
    'x-idempotency-key': purpose === 'signed' ? req.getHeader('x-idempotency-key') : '',
    'mcp-session-id': rpc ? req.getHeader('mcp-session-id') : '',
    'mcp-protocol-version': rpc ? req.getHeader('mcp-protocol-version') : '',
    signature: signature === undefined ? '' : req.getHeader(signature),
    'access-control-request-headers':
      purpose === 'other' ? req.getHeader('access-control-request-headers') : '',
  }
}
export type KeptHeader = keyof ReturnType<typeof headersOf>

/** A request. A class, so that no function is created per request. */
export class Incoming {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** The query string without the question mark, still encoded. */
  readonly query: string
  /** Path slots in order, still encoded. */
  readonly slots: readonly string[]
  /** The client's IP address; empty for purposes that do not need it. */
  readonly ip: string
  /** The body, valid once `receive` has called `ready`. `broken`: it is too large, or not UTF-8. */
  body = ''
  broken: 'too_large' | 'not_utf8' | undefined
  /** The body of an upload, which is not read automatically. */
  readonly upload: Upload | undefined
  /**
   * The request has several different Content-Length values, so its end is undefined (RFC 9112,
   * section 6.3).
   */
  readonly ambiguous: boolean
  /** Upper bound of the body in bytes, as far as it is known before the body arrives. */
  readonly expected: number
  readonly #res: HttpResponse
  readonly #limit: number
  readonly #bodiless: boolean
  /**
   * Whether the client closes its connection after this request; only looked up when the body may
   * be too large.
   */
  readonly #closing: boolean
  readonly #headers: ReturnType<typeof headersOf>
  readonly #further: ReadonlyMap<string, string> | undefined

  /** Copies everything that precedes the body. */
  constructor(
    res: HttpResponse,
    req: HttpRequest,
    { purpose, method, slots, limit, cors, signature, further }: RouteFacts,
  ) {
    this.#res = res
    this.method = method ?? req.getMethod().toUpperCase()
    const reading = this.method === 'GET' || this.method === 'HEAD' || this.method === 'OPTIONS'
    const given = req.getHeader('content-length')
    this.ambiguous = given !== '' && hasOtherLength(req, given)
    const length = reading ? '' : given
    this.expected = length !== '' && Number(length) <= limit ? Number(length) : limit
    this.#limit = limit
    this.#bodiless = reading || (length === '' && req.getHeader('transfer-encoding') === '')
    this.#closing =
      !this.#bodiless &&
      !(length !== '' && Number(length) <= limit) &&
      req.getHeader('connection').trim().toLowerCase() === 'close'
    this.#headers = headersOf(req, purpose, this.#bodiless, cors, signature)
    this.#further = further && new Map(further.map((name) => [name, req.getHeader(name)]))
    this.path = req.getUrl()
    this.query = req.getQuery() ?? ''
    this.slots = slots > 0 ? slotsOf(req, slots) : NONE
    this.ip =
      purpose === 'command' ||
      purpose === 'signed' ||
      purpose === 'upload' ||
      purpose === 'rpc' ||
      purpose === 'login'
        ? addressOf(res)
        : ''
    this.upload = purpose === 'upload' && !this.#bodiless ? new Upload(res, limit) : undefined
  }

  /** The client's IP address. Call it only while the exchange is open. */
  sender(): string {
    return this.ip || addressOf(this.#res)
  }

  /** One of the route's additional headers, trimmed; absent when empty. */
  further(name: string): string | undefined {
    return this.#further?.get(name)?.trim() || undefined
  }

  /** A header's value, trimmed; absent when empty. */
  header(name: KeptHeader): string | undefined {
    const value = this.#headers[name]
    return value === '' ? undefined : value.trim() || undefined
  }

  /**
   * Collects the body, then calls `ready` once: synchronously when there is no body. A client that
   * closes its connection after the request gets the refusal of an oversized body only when it has
   * sent all of it (an earlier answer would be lost in the connection reset); any other client gets
   * the refusal at once.
   */
  receive(res: HttpResponse, ready: { ready(): void }): void {
    const limit = this.#limit
    // An upload is read on demand.
    if (this.#bodiless || this.upload) {
      ready.ready()
      return
    }
    let chunks: Buffer[] = []
    let size = 0
    let whole = false
    res.onData((chunk, last) => {
      if (whole) return
      size += chunk.byteLength
      if (size <= limit) {
        const bytes = Buffer.from(chunk)
        if (last) {
          whole = true
          this.#read(chunks.length === 0 ? bytes : Buffer.concat([...chunks, bytes]))
          ready.ready()
          // A copy, because the chunk is invalid after this callback returns.
        } else if (chunk.byteLength > 0) chunks.push(Buffer.from(bytes))
        return
      }
      chunks = []
      if (!last && this.#closing && size <= limit + DRAIN) return
      whole = true
      this.broken = 'too_large'
      ready.ready()
    })
  }

  #read(bytes: Buffer): void {
    if (isUtf8(bytes)) this.body = bytes.toString()
    else this.broken = 'not_utf8'
  }
}

/** Whether a request has another, different Content-Length header; uWS reads only the first one. */
function hasOtherLength(req: HttpRequest, first: string): boolean {
  let other = false
  req.forEach((name, value) => {
    if (name === 'content-length' && value !== first) other = true
  })
  return other
}
const NONE: readonly string[] = []
function slotsOf(req: HttpRequest, count: number): string[] {
  const slots: string[] = []
  for (let i = 0; i < count; i++) slots.push(req.getParameter(i) ?? '')
  return slots
}

/** The client's IP address. IPv4-mapped IPv6 addresses are written as IPv4. */
function addressOf(res: HttpResponse): string {
  const bytes = new Uint8Array(res.getRemoteAddress())
  const mapped =
    bytes.length === 16 &&
    bytes[10] === 0xff &&
    bytes[11] === 0xff &&
    bytes.subarray(0, 10).every((byte) => byte === 0)
  if (bytes.length !== 4 && !mapped)
    return Buffer.from(res.getRemoteAddressAsText()).toString('latin1')
  const at = bytes.length - 4
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`
}
