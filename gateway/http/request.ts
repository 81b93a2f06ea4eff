/**
 * A received request as plain data. Only this file, `../files/upload.ts`, `respond.ts` and the
 * WebSocket endpoints access a uWS request or response. `respond.ts` writes the responses.
 *
 * Invariants:
 * Q1. A uWS request is valid only until its handler returns. The constructor therefore copies
 *     everything that is needed.
 * Q2. Reading the body starts in the turn of the event loop in which the request arrives,
 *     because otherwise the first chunk is lost. A body is never stored beyond its limit. The rest
 *     is read and discarded, so that the connection stays usable and the refusal reaches the
 *     client.
 * Q3. The handler of a request is not called when the client disconnects before the body is
 *     complete. Uploads are an exception: their handler reads the body.
 * Q4. Of a body, at most `MAX_UNKNOWN_BYTES` are held before the credential is known. A route
 *     without credentials must reserve the memory of more bytes, for a limited time, and other
 *     routes the memory of more than `MAX_UNRESERVED_BYTES`. Uploads reserve their memory
 *     separately (`../files`).
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { isUtf8 } from 'node:buffer'
import type { Semaphore } from '../files/semaphore.ts'
import { Upload } from '../files/upload.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { World } from '../ports.ts'

/**
 * The purpose of a route. The purpose determines which headers are read, because each header lookup
 * costs time.
 */
type Purpose = 'command' | 'query' | 'stream' | 'signed' | 'upload' | 'rpc' | 'login' | 'other'

type ClientAddress = World['clientAddress']
/** The properties of a route that determine how its requests are received. */
export interface RouteFacts {
  readonly purpose: Purpose
  /** The method in upper case. Undefined for routes that accept any method. */
  readonly method: string | undefined
  /** Number of slots (parameters) in the path. */
  readonly slots: number
  /** Maximum size of the body in bytes. */
  readonly limit: number
  /** Name of the header with the signature of a `signed` body, in lower case. */
  readonly signature?: string
  /** Names of additional headers that `Incoming.further` returns, in lower case. */
  readonly further?: readonly string[]
  /** Whether CORS is enabled. */
  readonly cors: boolean
  /** Returns the client's IP address (`World.clientAddress`). */
  readonly clientAddress?: ClientAddress
}

/** How the body of a request is admitted to memory. */
export interface BodyAdmission {
  /**
   * Returns whether the credential of a request is known. Absent for routes without credentials.
   */
  readonly isKnown?: (incoming: Incoming) => MaybePromise<boolean>
  /** Limits the total size of large bodies. Its units are bytes. */
  readonly bodyMemory: Semaphore
  /** Calls a function after some milliseconds, unless the returned function is called before. */
  readonly later: World['later']
}

/** Maximum number of bytes of a body that are held before its credential is known. */
const MAX_UNKNOWN_BYTES = 65_536
/** Maximum number of bytes of a body with a known credential that are held without reservation. */
const MAX_UNRESERVED_BYTES = 1_048_576
/**
 * Milliseconds within which a large body without a credential must have arrived. Without this
 * limit, a few slow clients could reserve all the memory for such bodies.
 */
const MAX_UNKNOWN_BODY_MS = 30_000
/**
 * Maximum number of bytes above the limit that are discarded before the refusal is sent, for
 * clients that close the connection after their request.
 */
const MAX_DRAINED_BYTES = 16 * 1_048_576

/**
 * Reads the headers that requests of the given purpose need. Absent headers, and headers that are
 * not needed, are empty.
 */
function headersOf(
  req: HttpRequest,
  purpose: Purpose,
  bodiless: boolean,
  cors: boolean,
  signature: string | undefined,
) {
  const authorization = req.getHeader('authorization')
  // Only a request without a credential in its headers can use a cookie.
  const cookie = authorization === '' ? req.getHeader('cookie') : ''
  const rpc = purpose === 'rpc'
  const login = purpose === 'login'
  const command =
    purpose === 'command' || purpose === 'signed' || purpose === 'upload' || rpc || login
  return {
    authorization,
    cookie,
    'x-request-id': req.getHeader('x-request-id'),
    origin: cors || rpc || login || cookie !== '' ? req.getHeader('origin') : '',
    'sec-fetch-site': cookie === '' ? '' : req.getHeader('sec-fetch-site'),
    'x-project': cookie === '' ? '' : req.getHeader('x-project'),
    'content-type': bodiless ? '' : req.getHeader('content-type'),
    'content-encoding': bodiless || purpose === 'other' ? '' : req.getHeader('content-encoding'),
    'user-agent': command ? req.getHeader('user-agent') : '',
    'idempotency-key': command ? req.getHeader('idempotency-key') : '',
    host: login || cookie !== '' ? req.getHeader('host') : '',
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
export type CopiedHeader = keyof ReturnType<typeof headersOf>

/**
 * The reason why a body is unreadable. A body is `unread` if its credential was not known when it
 * arrived, and `no_memory` if no memory could be reserved for it.
 */
type Broken = 'too_large' | 'not_utf8' | 'unread' | 'no_memory'

/** A request. It is a class, so that no closures are created for each request. */
export class Incoming {
  /** The method in upper case. */
  readonly method: string
  readonly path: string
  /** The query string without the question mark, still encoded. */
  readonly query: string
  /** Path slots in order, still encoded. */
  readonly slots: readonly string[]
  /** The client's IP address. Empty for purposes that do not need it. */
  readonly ip: string
  /** The body, valid once `receive` has called `ready`. */
  body = ''
  /** The reason why the body is unreadable. */
  broken: Broken | undefined
  /** The body of an upload, which is read only on demand. */
  readonly upload: Upload | undefined
  /**
   * Whether the request has several different Content-Length values, so that its end is undefined
   * (RFC 9112, section 6.3).
   */
  readonly ambiguous: boolean
  /**
   * The expected number of bytes of the body: its Content-Length, or the limit. The limit is used
   * when the header is absent, is ignored (GET, HEAD, OPTIONS), or exceeds the limit.
   */
  readonly expected: number
  readonly #res: HttpResponse
  readonly #limit: number
  readonly #bodiless: boolean
  /**
   * Whether the client closes its connection after this request. Always false for a request without
   * a body, or with a Content-Length of at most `MAX_UNKNOWN_BYTES` and within the limit.
   */
  readonly #closing: boolean
  /** The parts of the body that have arrived. */
  #chunks: Buffer[] = []
  #size = 0
  #whole = false
  /** Whether the check of the credential is pending or has succeeded. */
  #credential: 'unasked' | 'asked' | 'known' = 'unasked'
  /** Cancels the deadline of the body. */
  #inTime: (() => void) | undefined
  /** Releases the memory that was reserved for the body. */
  #release: (() => void) | undefined
  /** Whether the exchange has ended. The response must then not be accessed. */
  #gone = false
  readonly #headers: ReturnType<typeof headersOf>
  readonly #further: ReadonlyMap<string, string> | undefined
  readonly #clientAddress: ClientAddress
  readonly #forwarded: string

  /** Copies the needed parts of the request line and the headers. */
  constructor(
    res: HttpResponse,
    req: HttpRequest,
    { purpose, method, slots, limit, cors, signature, further, clientAddress }: RouteFacts,
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
      !(length !== '' && Number(length) <= Math.min(limit, MAX_UNKNOWN_BYTES)) &&
      req.getHeader('connection').trim().toLowerCase() === 'close'
    this.#headers = headersOf(req, purpose, this.#bodiless, cors, signature)
    this.#further = further && new Map(further.map((name) => [name, req.getHeader(name)]))
    this.path = req.getUrl()
    this.query = req.getQuery() ?? ''
    this.slots = slots > 0 ? slotsOf(req, slots) : NONE
    this.#clientAddress = clientAddress
    this.#forwarded = clientAddress ? forwardedFor(req) : ''
    this.ip =
      purpose === 'command' ||
      purpose === 'signed' ||
      purpose === 'upload' ||
      purpose === 'rpc' ||
      purpose === 'login'
        ? this.#address()
        : ''
    this.upload = purpose === 'upload' && !this.#bodiless ? new Upload(res, limit) : undefined
  }

  /** Returns the client's IP address. May be called only while the exchange is open. */
  sender(): string {
    return this.ip || this.#address()
  }

  #address(): string {
    const peer = peerOf(this.#res)
    return this.#clientAddress?.(peer, this.#forwarded) ?? peer
  }

  /**
   * Returns the value of an additional header of the route, trimmed, or undefined when it is empty
   * or absent.
   * @param name name in lower case.
   */
  further(name: string): string | undefined {
    return this.#further?.get(name)?.trim() || undefined
  }

  /**
   * Returns the value of a header, trimmed, or undefined when it is empty, absent, or not read for
   * this route.
   */
  header(name: CopiedHeader): string | undefined {
    const value = this.#headers[name]
    return value === '' ? undefined : value.trim() || undefined
  }

  /**
   * Collects the body, and then calls `ready` once. For an upload or a request without a body, the
   * call is synchronous. As soon as it is known that a body is refused (`broken`), `ready` is
   * called. However, if the client closes its connection after the request, `ready` is called only
   * after the whole body, or `MAX_DRAINED_BYTES` above the limit, has arrived. Otherwise the
   * connection reset would discard the response.
   */
  receive(res: HttpResponse, admission: BodyAdmission, ready: { ready(): void }): void {
    // An upload is read on demand.
    if (this.#bodiless || this.upload) {
      ready.ready()
      return
    }
    if (!admission.isKnown) this.#credential = 'known'
    res.onData((chunk, last) => {
      if (!this.#whole) this.#take(Buffer.from(chunk), last, admission, ready)
    })
  }

  #take(bytes: Buffer, last: boolean, admission: BodyAdmission, ready: { ready(): void }): void {
    this.#size += bytes.length
    if (this.#size > this.#limit) this.#spoil('too_large')
    else if (this.#size > MAX_UNKNOWN_BYTES && this.broken === undefined)
      this.#admit(admission, ready)
    if (this.#whole) return
    if (this.broken !== undefined) {
      if (last || !this.#closing || this.#size > this.#limit + MAX_DRAINED_BYTES)
        this.#finish(ready)
    } else if (last) {
      this.#read(this.#chunks.length === 0 ? bytes : Buffer.concat([...this.#chunks, bytes]))
      this.#finish(ready)
      // A copy, because the chunk is invalid after the callback of uWS returns.
    } else if (bytes.length > 0) this.#chunks.push(Buffer.from(bytes))
  }

  /** Checks the credential of a large body, and reserves memory for it. */
  #admit({ isKnown, bodyMemory, later }: BodyAdmission, ready: { ready(): void }): void {
    if (this.#credential === 'unasked' && isKnown) {
      const known = isKnown(this)
      if (known instanceof Promise) {
        this.#credential = 'asked'
        this.#res.pause()
        const settle = (is: boolean) => this.#settle(is, ready)
        known.then(settle, () => settle(false))
      } else this.#settle(known, ready)
    }
    const free = isKnown ? MAX_UNRESERVED_BYTES : MAX_UNKNOWN_BYTES
    if (this.broken !== undefined || this.#release || this.#size <= free) return
    this.#release = bodyMemory.tryAcquire(this.expected)
    if (!this.#release) this.#spoil('no_memory')
    else if (!isKnown) this.#inTime = later(MAX_UNKNOWN_BODY_MS, () => this.#expire(ready))
  }
  #settle(known: boolean, ready: { ready(): void }): void {
    if (this.#whole || this.#gone) return
    if (this.#credential === 'asked') this.#res.resume()
    this.#credential = 'known'
    if (known || this.broken !== undefined) return
    this.#spoil('unread')
    if (!this.#closing) this.#finish(ready)
  }
  /** Refuses a body that has not arrived in time. */
  #expire(ready: { ready(): void }): void {
    if (this.#whole || this.#gone) return
    this.#spoil('no_memory')
    this.#finish(ready)
  }
  /** Refuses the body. The rest of it is discarded. */
  #spoil(why: Broken): void {
    this.broken ??= why
    this.#chunks = []
    this.end()
  }
  #finish(ready: { ready(): void }): void {
    this.#inTime?.()
    this.#whole = true
    this.#chunks = []
    // A paused connection would not receive its next request.
    if (this.#credential === 'asked') this.#res.resume()
    ready.ready()
  }

  /** Releases the memory that was reserved for the body. Called when the body is not used again. */
  end(): void {
    this.#release?.()
    this.#release = undefined
  }

  /** Called when the exchange has ended. */
  gone(): void {
    this.#inTime?.()
    this.#gone = true
  }

  #read(bytes: Buffer): void {
    if (isUtf8(bytes)) this.body = bytes.toString()
    else this.broken = 'not_utf8'
  }
}

/**
 * Returns whether a request has a second, different Content-Length header. uWS itself uses only the
 * first.
 */
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

/**
 * Returns all values of the header `X-Forwarded-For` as one list. Some proxies add a second header
 * instead of extending the header of the client, and `getHeader` returns only the first.
 */
function forwardedFor(req: HttpRequest): string {
  const values: string[] = []
  req.forEach((name, value) => {
    if (name === 'x-forwarded-for') values.push(value)
  })
  return values.join(',')
}

/**
 * Returns the client's IP address of an upgrade. `forwarded` is true if the request has a header of
 * a proxy, and proxies are trusted.
 */
export function clientOf(
  res: HttpResponse,
  req: HttpRequest,
  { clientAddress }: Pick<World, 'clientAddress'>,
): { readonly remote: string; readonly forwarded: boolean } {
  const peer = peerOf(res)
  const forwarded = clientAddress ? forwardedFor(req) : ''
  return { remote: clientAddress?.(peer, forwarded) ?? peer, forwarded: forwarded !== '' }
}

/** Returns the IP address of the TCP peer. IPv4-mapped IPv6 addresses are written as IPv4. */
function peerOf(res: HttpResponse): string {
  const bytes = new Uint8Array(res.getRemoteAddress())
  let mapped = bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff
  for (let i = 0; mapped && i < 10; i++) mapped = bytes[i] === 0
  if (bytes.length !== 4 && !mapped)
    return Buffer.from(res.getRemoteAddressAsText()).toString('latin1')
  const at = bytes.length - 4
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`
}
