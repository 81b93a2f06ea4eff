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

const kept = [
  'accept', 'authorization', 'connection', 'content-length', 'content-type', 'idempotency-key', 'last-event-id', 'origin', 'transfer-encoding', 'user-agent',
  'x-request-id', 'access-control-request-method', 'access-control-request-headers',
] as const
export type KeptHeader = (typeof kept)[number]

/** The bytes of a body, or why there are none. */
export type Body = Uint8Array | 'too_large' | 'aborted'

export interface Incoming {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** What follows the question mark, still encoded. */
  readonly query: string
  /** Path slots in order, still encoded. */
  readonly slots: readonly string[]
  readonly ip: string
  /** A header's value, trimmed; absent when empty. */
  header(name: KeptHeader): string | undefined
  readonly body: Promise<Body>
}

/** Discarded bytes of an oversized body before the connection is given up, for clients that close it after their request. */
const DRAIN = 16 * 1_048_576
const EMPTY = new Uint8Array(0)

/** Copy a request. @param exchange its answer. @param slots number of path slots of the route. @param limit largest body kept, in bytes. */
export function readRequest(res: HttpResponse, req: HttpRequest, exchange: Exchange, slots: number, limit: number): Incoming {
  const headers = new Map<string, string>()
  for (const name of kept) {
    const value = req.getHeader(name)
    if (value !== '') headers.set(name, value.trim())
  }
  const method = req.getMethod().toUpperCase()
  const bodiless = method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || (!headers.has('content-length') && !headers.has('transfer-encoding'))
  return {
    method,
    path: req.getUrl(),
    query: req.getQuery() ?? '',
    slots: Array.from({ length: slots }, (_, index) => req.getParameter(index) ?? ''),
    ip: address(Buffer.from(res.getRemoteAddressAsText()).toString()),
    header: (name) => headers.get(name) || undefined,
    body: bodiless ? Promise.resolve(EMPTY) : readBody(res, exchange, limit, headers.get('connection')?.toLowerCase() === 'close'),
  }
}

/** IPv4 addresses that arrive through an IPv6 socket are written the short way. */
function address(text: string): string {
  const mapped = /^(?:0000:){5}ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/.exec(text)
  return mapped ? mapped.slice(1).map((part) => Number.parseInt(part, 16)).join('.') : text
}

/**
 * Collect a body. A client that closes its connection after the request gets the refusal of an oversized body only when
 * it has sent all of it (an earlier answer would be lost in the reset); any other one gets it at once.
 */
function readBody(res: HttpResponse, exchange: Exchange, limit: number, closing: boolean): Promise<Body> {
  return new Promise((resolve) => {
    let chunks: Uint8Array[] = []
    let size = 0
    exchange.onClose(() => resolve('aborted'))
    res.onData((chunk, last) => {
      size += chunk.byteLength
      if (size <= limit) {
        if (chunk.byteLength > 0) chunks.push(new Uint8Array(chunk.slice(0)))
        if (last) resolve(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks))
        return
      }
      chunks = []
      if (last || !closing || size > limit + DRAIN) resolve('too_large')
    })
  })
}
