/**
 * Shared code of the WebSocket endpoints. It reads the credential of an upgrade request, and
 * answers refused upgrades.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js'
import { STATUS_CODES } from 'node:http'
import type { Refusal } from '../../protocol/errors.ts'
import { socketBearerPrefix, socketProtocol } from '../../protocol/workers/socket.ts'
import { type Presented, parseAuthorization, parseCredential } from '../auth/keys.ts'
import type { World } from '../ports.ts'
import { requestIdOf } from './request-id.ts'
import { utf8 } from './respond.ts'

/** The response to a refused upgrade. `retry_after` is in seconds. */
export interface Rejection {
  readonly status: number
  readonly body: unknown
  readonly retry_after?: number
}

/**
 * Returns the credential of an upgrade request, from its `Authorization` header or else from its
 * subprotocols. `protocol` is the subprotocol to select, or empty if no subprotocol is selected.
 * `isAnonymous` is true if the request has no credential.
 */
export function upgradeCredential(
  authorization: string,
  protocols: string,
): {
  readonly presented: Presented | undefined
  readonly protocol: string
  readonly isAnonymous: boolean
} {
  const offered = protocols.split(',').map((text) => text.trim())
  const encoded = offered.find((text) => text.startsWith(socketBearerPrefix))
  return {
    presented: authorization === '' ? bearerOf(encoded) : parseAuthorization(authorization),
    protocol: offered.includes(socketProtocol) ? socketProtocol : '',
    isAnonymous: authorization === '' && encoded === undefined,
  }
}
const bearerOf = (encoded: string | undefined): Presented | undefined =>
  encoded === undefined
    ? undefined
    : parseCredential(Buffer.from(encoded.slice(socketBearerPrefix.length), 'base64url').toString())

/** Returns the delay in seconds that a refusal by a rate limit contains. */
export function retryAfterOf({ details }: Refusal): number | undefined {
  const after = details?.['retry_after_seconds']
  return typeof after === 'number' ? after : undefined
}

/** Answers a refused upgrade, and closes the connection. */
export function rejectUpgrade(
  res: HttpResponse,
  { status, body, retry_after }: Rejection,
  { log }: World,
  request_id: string,
): void {
  logRejection(log, status, request_id)
  res.cork(() => {
    res.writeStatus(`${status} ${STATUS_CODES[status]}`).writeHeader('X-Request-ID', request_id)
    if (retry_after !== undefined) res.writeHeader('Retry-After', String(retry_after))
    if (status === 401) res.writeHeader('WWW-Authenticate', 'Bearer')
    res.writeHeader('Content-Type', 'application/json').end(utf8(JSON.stringify(body)), true)
  })
}

/**
 * Returns whether a request with a WebSocket key is an upgrade: its `Connection` header must contain
 * the token `upgrade` (RFC 6455, section 4.2.1). Otherwise, passes the request on to
 * `answerWithoutUpgrade`.
 *
 * uWS does not check this header. It closes the connection of a request with `Connection: close`
 * as soon as an asynchronous upgrade is written, and then uses the freed socket, which ends the
 * process.
 */
export function isUpgrade(req: HttpRequest): boolean {
  const tokens = req.getHeader('connection').toLowerCase().split(',')
  if (tokens.some((token) => token.trim() === 'upgrade')) return true
  req.setYield(true)
  return false
}

function logRejection(log: World['log'], status: number, request_id: string): void {
  log.debug({ event: 'upgrade_refused', status, request_id }, 'upgrade refused')
}

/**
 * Answers GET requests to the path of a WebSocket that are not valid upgrades.
 * @param newId returns the ids of requests without a valid `X-Request-ID`.
 */
export function answerWithoutUpgrade(
  app: TemplatedApp,
  path: string,
  { log }: World,
  newId: () => string,
): void {
  app.get(path, (res, req) => {
    const status = req.getHeader('upgrade').toLowerCase() === 'websocket' ? 400 : 426
    const body = JSON.stringify({
      error: { code: 'bad_request', message: 'This path accepts only WebSocket upgrades.' },
    })
    const request_id = requestIdOf(req.getHeader('x-request-id'), newId)
    logRejection(log, status, request_id)
    res
      .writeStatus(`${status} ${STATUS_CODES[status]}`)
      .writeHeader('X-Request-ID', request_id)
      .writeHeader('Upgrade', 'websocket')
      .writeHeader('Content-Type', 'application/json')
      .end(body)
  })
}

/** Returns a path parameter, decoded if it is percent-encoded UTF-8. */
export function textOf(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
