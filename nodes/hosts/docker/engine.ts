/**
 * A client of a container engine, Docker or Podman, over its Unix socket. The client uses Docker's
 * API, which Podman also supports. Requests contain no API version, so each engine uses its own
 * version. This module handles only HTTP. The caller interprets the responses.
 */
import { type IncomingMessage, request } from 'node:http'
import { watchdog } from '../../../client/watchdog.ts'
import { ProviderFault } from '../provider.ts'

/** Default number of milliseconds without data after which a request fails. */
const SILENCE_MS = 60_000
/** Maximum size of a response in bytes. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024
/** Maximum number of characters of the engine's message that a fault contains. */
const MAX_MESSAGE_LENGTH = 500

interface EngineRequest {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Error statuses that do not make the request fail. */
  readonly accepts?: readonly number[]
  /** Milliseconds without data after which the request fails; 0 means never. */
  readonly silence_ms?: number
}
export interface EngineAnswer {
  readonly status: number
  readonly body: Buffer
}
export interface Engine {
  /**
   * Sends a request.
   * @throws ProviderFault when the engine does not respond, or responds with a status that is not
   *   accepted.
   */
  call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    options?: EngineRequest,
  ): Promise<EngineAnswer>
  /**
   * Passes the bytes of a successful response to `onData` as they arrive, until the response ends
   * or `onData` returns false. Resolves with the status: a success status, or one of `accepts`.
   * @throws ProviderFault when the engine does not respond, or responds with a status that is not
   *   accepted.
   */
  stream(
    method: 'GET' | 'POST',
    path: string,
    onData: (part: Buffer) => unknown,
    options?: EngineRequest,
  ): Promise<number>
}

/** Returns the query parameters of a request with the given filters. */
export const filters = (wanted: Readonly<Record<string, readonly string[]>>) => ({
  filters: JSON.stringify(wanted),
})
/** Parses the JSON of a response. */
export const parseResponse = <T>({ body }: EngineAnswer): T => JSON.parse(body.toString()) as T

function faultOf({ status, body }: EngineAnswer): string {
  try {
    const { message } = JSON.parse(body.toString()) as { readonly message?: unknown }
    if (typeof message === 'string')
      return `The container engine refused: ${message.slice(0, MAX_MESSAGE_LENGTH)}`
  } catch {
    // The body is not JSON, so only the status is reported.
  }
  return `The container engine answered with status ${status}.`
}

/**
 * Creates a client of an engine.
 * @param socket path of the engine's Unix socket.
 */
export function createEngine(socket: string): Engine {
  const stream = async (
    method: string,
    path: string,
    onData: (part: Buffer) => unknown,
    { query, body, signal, accepts = [], silence_ms = SILENCE_MS }: EngineRequest = {},
  ): Promise<number> => {
    const search = query ? `?${new URLSearchParams(query)}` : ''
    // 2^31 − 1 is the longest delay of a timer in Node.js.
    const watch = watchdog(silence_ms === 0 ? 2 ** 31 - 1 : silence_ms, signal)
    const exchanged = new Promise<number>((resolve, reject) => {
      const answered = (answer: IncomingMessage) => {
        const status = answer.statusCode ?? 0
        const good = status < 400
        const refusal: Buffer[] = []
        let size = 0
        answer.on('data', (part: Buffer) => {
          watch.alive()
          if (good && onData(part) === false) {
            resolve(status)
            answer.destroy()
          }
          size += part.length
          if (!good && size <= MAX_RESPONSE_BYTES) refusal.push(part)
        })
        answer.on('end', () => {
          if (good || accepts.includes(status)) return resolve(status)
          reject(new ProviderFault(faultOf({ status, body: Buffer.concat(refusal) })))
        })
        answer.on('error', reject)
        answer.on('close', () => reject(new Error('the connection was closed')))
      }
      const text = body === undefined ? undefined : JSON.stringify(body)
      const sent = request(
        {
          socketPath: socket,
          method,
          path: `${path}${search}`,
          agent: false,
          signal: watch.signal,
          headers: {
            host: 'engine',
            ...(text !== undefined && {
              'content-type': 'application/json',
              'content-length': String(Buffer.byteLength(text)),
            }),
          },
        },
        answered,
      )
      sent.on('error', reject)
      sent.end(text)
    })
    try {
      return await exchanged
    } catch (error) {
      if (error instanceof ProviderFault) throw error
      if (signal?.aborted) throw new ProviderFault('The operation was aborted.')
      const why = watch.silent()
        ? `no answer within ${silence_ms} ms`
        : error instanceof Error
          ? error.message
          : String(error)
      throw new ProviderFault(`The container engine does not answer: ${why}.`)
    } finally {
      watch.stop()
    }
  }
  return {
    stream,
    call: async (method, path, options) => {
      const parts: Buffer[] = []
      let size = 0
      const status = await stream(
        method,
        path,
        (part) => {
          size += part.length
          if (size <= MAX_RESPONSE_BYTES) parts.push(part)
        },
        options,
      )
      if (size > MAX_RESPONSE_BYTES)
        throw new ProviderFault(
          `The answer of the container engine is larger than ${MAX_RESPONSE_BYTES} bytes.`,
        )
      return { status, body: Buffer.concat(parts) }
    },
  }
}
