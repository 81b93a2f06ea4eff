/**
 * Requests to a provider service: `POST <url>/<operation>` with a JSON object, authenticated by the
 * secret. docs/operations/providers.md describes the protocol.
 *
 * Invariants:
 * R1. A request is repeated, with the same body and idempotency key, while the service responds
 *     with 202. After failures that may be temporary, it is repeated a limited number of times.
 * R2. A fault contains no secret, even if the response of the service contains one.
 */
import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { orAborted } from '../../../client/watchdog.ts'
import { backoffMs, sleep } from '../../../gateway/timing.ts'
import type { Clock } from '../../host/ports.ts'
import type { Failed, Post, Received } from '../../outbound/post.ts'
import { redactSecrets } from '../conceal.ts'
import { ProviderFault } from '../provider.ts'

type Operation = 'create' | 'wake' | 'exec' | 'destroy' | 'logs' | 'inspect'
interface Call<S extends TSchema> {
  readonly body: Readonly<Record<string, unknown>>
  readonly answer: S
  /** Idempotency key. The service performs requests with the same key once. */
  readonly key?: string
  readonly signal?: AbortSignal
  /** Set if the call accepts a 404 response. It means that the environment does not exist. */
  readonly missing?: true
  /** Secrets in the body, which faults must not contain. */
  readonly secrets?: readonly string[]
  /** Maximum size of the response in bytes. */
  readonly max_bytes?: number
}
export interface Client {
  /**
   * Sends a request to the service, and returns its response.
   * @returns undefined when the service responds with 404 and the call allows it.
   * @throws ProviderFault when the service refuses or does not complete the request, or when the
   *   call is aborted.
   */
  call<S extends TSchema>(operation: Operation, call: Call<S>): Promise<Static<S> | undefined>
}
export interface ClientOptions {
  readonly name: string
  readonly url: string
  readonly secret: string
  readonly post: Post
  readonly clock: Pick<Clock, 'later'>
}

/** Timeout of one request in milliseconds. */
const TIMEOUT_MS = 30_000
/** Number of consecutive failed requests after which a call fails. */
const MAX_FAILURES = 6
/** Initial and maximum backoff after a failed request, in milliseconds. */
const RETRY_MS = { first: 500, last: 10_000 } as const
/**
 * Default, minimum and maximum pause before a request is repeated after a 202 response, in
 * milliseconds.
 */
const PAUSE_MS = { default: 2000, min: 100, max: 30_000 } as const
/** Maximum total in milliseconds of the pauses after 202 responses in one call. */
const MAX_PAUSES_MS = 30 * 60_000
/** Default maximum size of a response in bytes. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024
/** Maximum length in characters of an error message of the provider. */
const MAX_MESSAGE_LENGTH = 500

const Refused = Type.Object({ error: Type.Object({ message: Type.String() }) })

export function createClient({ name, url, secret, post, clock }: ClientOptions): Client {
  const fault = (sentence: string, secrets: readonly string[]) =>
    new ProviderFault(`The provider ${name} ${redactSecrets(sentence, [secret, ...secrets])}`)
  return {
    async call(operation, call) {
      const { body, answer, key, signal, secrets = [], max_bytes = MAX_RESPONSE_BYTES } = call
      const aborted = signal ?? new AbortController().signal
      const pause = (ms: number) => orAborted(sleep(clock, ms), aborted)
      const text = JSON.stringify(body)
      let paused = 0
      for (let failures = 0; ; ) {
        if (aborted.aborted)
          throw fault('was not called again, because the operation was aborted.', secrets)
        const got = await post({
          url: `${url.replace(/\/$/, '')}/${operation}`,
          schemes: ['https:'],
          plain: true,
          headers: {
            authorization: `Bearer ${secret}`,
            'content-type': 'application/json',
            accept: 'application/json',
            ...(key !== undefined && { 'idempotency-key': key }),
          },
          body: text,
          timeout: TIMEOUT_MS,
          most: max_bytes,
          signal: aborted,
        })
        if (isTemporary(got)) {
          failures++
          if (failures >= MAX_FAILURES)
            throw fault(`failed to ${operation}: ${messageOf(got)}`, secrets)
          await pause(backoffMs(failures - 1, RETRY_MS))
          continue
        }
        if ('failed' in got) throw fault(`failed to ${operation}: ${messageOf(got)}`, secrets)
        if (got.status === 404 && call.missing) return undefined
        if (got.status === 202) {
          failures = 0
          const ms = pauseOf(got)
          paused += ms
          if (paused > MAX_PAUSES_MS)
            throw fault(`did not complete the operation ${operation} in time.`, secrets)
          await pause(ms)
          continue
        }
        if (got.status < 200 || got.status > 299)
          throw fault(`refused to ${operation}: ${messageOf(got)}`, secrets)
        const value = parse(got.body)
        if (!Value.Check(answer, value))
          throw fault(`gave an invalid answer to ${operation}${whereOf(answer, value)}.`, secrets)
        return value as Static<typeof answer>
      }
    },
  }
}

const isTemporary = (got: Received | Failed): boolean =>
  'failed' in got
    ? got.failed === 'timeout' || got.failed === 'network'
    : got.status === 429 || got.status >= 500

function pauseOf({ retry_after }: Received): number {
  const seconds = Number(retry_after)
  const ms = retry_after === undefined || !(seconds >= 0) ? PAUSE_MS.default : seconds * 1000
  return Math.min(PAUSE_MS.max, Math.max(PAUSE_MS.min, ms))
}
/** Returns the JSON value of a body: an empty object for an empty body, undefined if invalid. */
function parse(body: Buffer): unknown {
  if (body.length === 0) return {}
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
function messageOf(got: Received | Failed): string {
  if ('failed' in got) return `${got.message}.`
  const value = parse(got.body)
  return Value.Check(Refused, value)
    ? value.error.message.slice(0, MAX_MESSAGE_LENGTH)
    : `status ${got.status}.`
}
function whereOf(schema: TSchema, value: unknown): string {
  const [first] = Value.Errors(schema, value)
  return first ? `, at ${first.instancePath || '/'}: ${first.message}` : ''
}
