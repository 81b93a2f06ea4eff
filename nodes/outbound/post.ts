/**
 * Sends a request to an address that a user configured. The guard checks the address, time and size
 * are limited, and redirects are not followed. This module handles only HTTP and the guard. The
 * caller interprets the response. It uses `node:http`, because undici treats an unrequested `100
 * Continue` as a failure (nodejs/undici#197), although RFC 9110, section 15.2, requires clients to
 * accept it. With undici, the caller would repeat requests that the receiver has already processed.
 */
import { type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { orAborted, watchdog } from '../../client/watchdog.ts'
import { AddressRefused, type Guard, type Resolved } from './guard.ts'

export interface Sending {
  /** POST by default. A GET request has an empty `body`. */
  readonly method?: 'GET' | 'POST'
  readonly url: string
  /** Accepted schemes, with their colons. */
  readonly schemes: readonly ('https:' | 'http:')[]
  /** Also accepts http:// for addresses that the operator allows. */
  readonly plain?: true
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Timeout of the whole exchange in milliseconds. */
  readonly timeout: number
  /** Maximum size of the response body in bytes. */
  readonly most: number
  /** Whether a larger response is truncated. By default, a larger response is a failure. */
  readonly cut?: true
  readonly signal: AbortSignal
  /**
   * The project or the part of the service that causes the request. Name lookups of different
   * owners take turns.
   */
  readonly owner?: string
}
export interface Received {
  readonly status: number
  readonly content_type: string
  /** The receiver's `Retry-After` header: seconds or a date. */
  readonly retry_after?: string
  readonly body: Buffer
}
/**
 * Why a request failed. `refused` means that the address is not allowed, `too_large` that the
 * response exceeds the limit, and `stopped` that the signal was aborted. `timeout` and `network`
 * failures may be temporary.
 */
export interface Failed {
  readonly failed: 'refused' | 'too_large' | 'stopped' | 'timeout' | 'network'
  readonly message: string
}
/** Sends a request. Failures are returned, never thrown. */
export type Post = (sending: Sending) => Promise<Received | Failed>

/** Maximum number of interim responses (1xx) to a request. Endless ones would block the process. */
const MAX_INTERIM_RESPONSES = 100

const failure = (failed: Failed['failed'], message: string): Failed => ({ failed, message })
/**
 * Returns the message of an error. If no address of a host accepts the connection, the message is
 * that of each attempt, because the error itself has none.
 */
const messageOf = (error: unknown): string =>
  error instanceof AggregateError
    ? [...new Set(error.errors.map(messageOf))].join(', ')
    : error instanceof Error
      ? error.message
      : String(error)
/** Returns a lookup function that always returns the checked addresses. */
const pinned =
  (addresses: readonly Resolved[]): LookupFunction =>
  (_, options, found) => {
    const first = addresses[0] as Resolved
    if (options.all)
      found(
        null,
        addresses.map(({ address, family }) => ({ address, family })),
      )
    else found(null, first.address, first.family)
  }

/** Creates a sender that checks addresses with a guard. */
export const createPost =
  (guard: Guard): Post =>
  async (sending) => {
    const { url, schemes, plain, timeout, signal, owner } = sending
    const target = URL.canParse(url) ? new URL(url) : undefined
    const accepted = (protocol: string): boolean =>
      (schemes as readonly string[]).includes(protocol)
    const wrong = failure(
      'refused',
      `the URL must begin with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`,
    )
    if (!target || !(accepted(target.protocol) || (plain && target.protocol === 'http:')))
      return wrong
    const watch = watchdog(timeout, signal)
    const why = (error: unknown): Failed => {
      if (signal.aborted) return failure('stopped', 'the call was stopped')
      if (watch.silent()) return failure('timeout', `no response within ${timeout} ms`)
      return failure(error instanceof AddressRefused ? 'refused' : 'network', messageOf(error))
    }
    try {
      const addresses = await guard.check(target.hostname, {
        signal: watch.signal,
        ...(owner !== undefined && { owner }),
      })
      if (!accepted(target.protocol) && !addresses.every(({ allowed }) => allowed)) return wrong
      return await orAborted(exchange(target, sending, addresses, watch.signal), watch.signal)
    } catch (error) {
      return why(error)
    } finally {
      watch.stop()
    }
  }

function exchange(
  target: URL,
  { method = 'POST', headers, body, most, cut }: Sending,
  addresses: readonly Resolved[],
  signal: AbortSignal,
): Promise<Received | Failed> {
  const options: RequestOptions = {
    method,
    agent: false,
    signal,
    lookup: pinned(addresses),
    headers: {
      ...headers,
      ...(method === 'POST' && { 'content-length': String(Buffer.byteLength(body)) }),
      connection: 'close',
    },
  }
  return new Promise((resolve, reject) => {
    const answered = (answer: IncomingMessage) => {
      const parts: Buffer[] = []
      let size = 0
      const received = (whole: Buffer): Received => {
        const after = answer.headers['retry-after']
        return {
          status: answer.statusCode ?? 0,
          content_type: answer.headers['content-type'] ?? '',
          ...(after !== undefined && { retry_after: after }),
          body: whole,
        }
      }
      answer.on('data', (part: Buffer) => {
        size += part.length
        parts.push(part)
        if (size <= most) return
        if (cut) resolve(received(Buffer.concat(parts).subarray(0, most)))
        else resolve(failure('too_large', `the response is larger than ${most} bytes`))
        answer.destroy()
      })
      answer.on('error', reject)
      // A close without a preceding `end` means that the connection was lost during the response.
      answer.on('close', () => reject(new Error('the connection was closed during the response')))
      answer.on('end', () => resolve(received(Buffer.concat(parts))))
    }
    const request = (target.protocol === 'https:' ? secureRequest : plainRequest)(
      target,
      options,
      answered,
    )
    request.on('error', reject)
    let interim = 0
    request.on('information', () => {
      if (++interim > MAX_INTERIM_RESPONSES)
        request.destroy(new Error('the receiver sent too many interim responses'))
    })
    // Without this listener, Node.js closes the connection and emits no error.
    request.on('upgrade', (_, socket) => {
      socket.destroy()
      reject(new Error('the receiver switched to another protocol'))
    })
    request.end(body)
  })
}
