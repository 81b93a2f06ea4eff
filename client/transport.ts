/**
 * Sends requests with credentials, to one of several addresses and with retries. Invariant: a
 * request is retried only if it cannot take effect twice. GET, PUT, DELETE and POST requests are
 * retried after a temporary failure. All attempts of a POST request have the same
 * `Idempotency-Key`. A PATCH request and a request with the condition `if_match` are never retried.
 */
import { randomUUID } from 'node:crypto'
import { type Row, routeOf } from '../protocol/contract.ts'
import {
  BatonError,
  isUnknownInclude,
  refusalError,
  unexpectedResponse,
  unreachableError,
} from './errors.ts'
import {
  invalidHeader,
  isMediaType,
  isTemporary,
  JSON_TYPE,
  pathSegment,
  reportingFailure,
  retryAfterMs,
} from './http.ts'
import { orAborted } from './watchdog.ts'

export interface ClientOptions {
  /**
   * Base address, such as `http://127.0.0.1:8080`. If several are given, the next one is tried when
   * one is unavailable.
   */
  readonly url: string | readonly string[]
  readonly key: string
  /** Handle of the project that calls refer to; `default` if absent. */
  readonly project?: string
  /** Maximum number of attempts per request, including the first; 4 by default. */
  readonly tries?: number
  /**
   * Maximum number of attempts per request after the service has answered an earlier request;
   * `tries` by default. A program that runs for a long time can so outlast a restart of the service,
   * but ends soon if the address is wrong.
   */
  readonly reconnectTries?: number
  /**
   * Called when a request has failed `tries` times and is repeated nevertheless. Then not called
   * again until the service has answered a request.
   */
  readonly onUnavailable?: (error: BatonError) => void
  /** Timeout of one attempt in milliseconds; 60 s by default. */
  readonly timeout?: number
  readonly fetch?: typeof fetch
  /** Waits for a number of milliseconds between attempts; replaces the default timer. */
  readonly pause?: (ms: number) => Promise<void>
}

/** Waits between attempts, in milliseconds: from `first` on, doubled each time up to `last`. */
const WAIT = { first: 250, last: 4000 } as const

interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Whether the request is never retried. */
  readonly once?: boolean
}

/** The entity tag that a record must have. */
interface Condition {
  readonly if_match?: string | undefined
}
/** A reply, and the entity tag of the record if the service sent one. */
export interface Exchanged {
  readonly reply: unknown
  readonly etag?: string
}

export class Transport {
  readonly #options: ClientOptions
  readonly #urls: readonly string[]
  readonly #pause: (ms: number) => Promise<void>
  #at = 0
  /** Whether the service has answered a request. */
  #answered = false
  #isUnavailable = false
  constructor(options: ClientOptions) {
    this.#options = options
    this.#urls = (typeof options.url === 'string' ? [options.url] : options.url).map((url) =>
      url.replace(/\/$/, ''),
    )
    if (this.#urls.length === 0) throw new Error('A client needs at least one address.')
    this.#pause = options.pause ?? ((ms) => new Promise((done) => setTimeout(done, ms)))
  }
  get project(): string {
    return this.#options.project ?? 'default'
  }
  /** The address for the next request, without a trailing slash. */
  get url(): string {
    return this.#urls[this.#at % this.#urls.length] ?? ''
  }
  /**
   * Switches to the next address if the address that failed is still the current one. A concurrent
   * request may have switched already.
   */
  next(failed = this.url): void {
    if (failed === this.url) this.#at++
  }
  /**
   * The headers with the credential.
   * @throws BatonError if the key has a character that a header cannot contain.
   */
  get headers(): Record<string, string> {
    const headers = { authorization: `Bearer ${this.#options.key}` }
    if (invalidHeader(headers) !== undefined)
      throw new BatonError(401, 'unauthorized', `The key has a character that ${NOT_IN_HEADER}.`)
    return headers
  }
  get fetch(): typeof fetch {
    return this.#options.fetch ?? fetch
  }
  /**
   * Waits for the given milliseconds, with a jitter of ±25 %. If the service has requested a wait
   * (`retryAfter`), waits for this time instead, or up to 25 % longer.
   */
  pause(ms: number, retryAfter?: number): Promise<void> {
    const jitter = Math.random() / 4
    if (retryAfter !== undefined) return this.#pause(retryAfter * (1 + jitter))
    return this.#pause(ms * (0.75 + 2 * jitter))
  }

  /**
   * Returns the path of a row, and the fields of the input that the path does not contain.
   * @throws BatonError if a path parameter is missing or cannot be part of a path.
   */
  path(
    row: Row,
    input: Readonly<Record<string, unknown>>,
  ): { path: string; rest: Record<string, unknown> } {
    const rest: Record<string, unknown> = { ...input }
    const { path, slots } = routeOf(row)
    let filled = path
    for (const slot of slots) {
      const value = slot === 'project' ? (rest[slot] ?? this.project) : rest[slot]
      const segment = pathSegment(value)
      if (segment === undefined) {
        const fault = value ? `${slot} must not be "${value}"` : `${row.route} needs ${slot}`
        throw new BatonError(400, 'bad_request', `${fault}.`)
      }
      delete rest[slot]
      filled = filled.replace(`:${slot}`, () => segment)
    }
    return { path: `/v1${filled}`, rest }
  }

  /**
   * Calls a command or query of the API table. By default the call requests all additions of the
   * row, or none if the service does not know one of them. A field `include` in the input overrides
   * this.
   * @throws BatonError if the service refuses the request or does not respond, or if a path
   * parameter is missing.
   */
  async call(row: Row, input: Readonly<Record<string, unknown>>): Promise<unknown> {
    return (await this.exchange(row, input)).reply
  }
  /**
   * Makes a call like `call`, and also returns the entity tag of the record.
   * @param condition `if_match` is the entity tag that the record must have. If it has another one,
   * the service refuses the request with `precondition_failed`. A request with `if_match` is never
   * retried, because a repeat would be refused.
   * @throws the same errors as `call`.
   */
  async exchange(
    row: Row,
    input: Readonly<Record<string, unknown>>,
    condition: Condition = {},
  ): Promise<Exchanged> {
    const { additions } = row.shape
    if (!additions || input['include'] !== undefined) return this.#exchange(row, input, condition)
    try {
      const include = Object.keys(additions)
      return await this.#exchange(row, { ...input, include }, condition)
    } catch (error) {
      // An older service refuses the request, and has not executed it.
      if (!isUnknownInclude(error)) throw error
      return this.#exchange(row, input, condition)
    }
  }
  async #exchange(
    row: Row,
    input: Readonly<Record<string, unknown>>,
    { if_match }: Condition,
  ): Promise<Exchanged> {
    const { path, rest } = this.path(row, input)
    const { method } = routeOf(row)
    const key = method === 'POST' ? randomUUID() : undefined
    const query = new URLSearchParams()
    const inQuery = membersOf(row.shape.query)
    for (const [name, value] of Object.entries(rest)) {
      if (value !== undefined && row.shape.body && !(name in inQuery)) continue
      if (value !== undefined)
        query.set(name, Array.isArray(value) ? value.join(',') : String(value))
      delete rest[name]
    }
    const body =
      row.shape.body && (Object.keys(rest).length > 0 || !row.shape.bodyOptional)
        ? JSON.stringify(rest)
        : undefined
    const headers = {
      ...this.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(if_match !== undefined && { 'if-match': if_match }),
    }
    const sent = this.#send({
      once: method === 'PATCH' || if_match !== undefined,
      method,
      path: `${path}${query.size > 0 ? `?${query}` : ''}`,
      headers,
      ...(body !== undefined && { body }),
    })
    return row.shape.key ? sent.catch((error: unknown) => this.#startedRun(path, error)) : sent
  }

  /**
   * Returns the run of an earlier start if the error says that the idempotency key belongs to that
   * start.
   * @throws the given error in all other cases.
   */
  #startedRun(path: string, error: unknown): Promise<Exchanged> {
    const run =
      error instanceof BatonError && error.code === 'idempotency_key_conflict'
        ? error.details?.['run_id']
        : undefined
    if (run === undefined) throw error
    return this.#send({
      method: 'GET',
      path: `${path.split('/', 4).join('/')}/runs/${String(run)}`,
      headers: this.headers,
    })
  }

  #send({ method, path, headers, body, once = false }: Request): Promise<Exchanged> {
    return this.request(
      path,
      () => ({
        method,
        headers,
        ...(body !== undefined && { body }),
      }),
      async (answer) => {
        const text = await answer.text()
        const etag = answer.headers.get('etag')
        return {
          reply: answer.ok && text !== '' ? (JSON.parse(text) as unknown) : undefined,
          ...(etag !== null && { etag }),
        }
      },
      {
        once,
        timeout: this.#options.timeout ?? 60_000,
        // A 404 on a repeated DELETE is a success: an earlier attempt may have deleted the
        // resource, and its response was lost.
        accepts: ({ ok, status }, attempt) =>
          ok || (method === 'DELETE' && attempt > 1 && status === 404),
      },
    )
  }

  /** Maximum number of attempts per request at present, including the first. */
  get tries(): number {
    const { tries = 4, reconnectTries = tries } = this.#options
    return this.#answered ? reconnectTries : tries
  }
  #recordAnswer(): void {
    this.#answered = true
    this.#isUnavailable = false
  }
  /** Reports a failure once, if the request is repeated longer than `tries` allows. */
  #reportFailure(attempt: number, failure: BatonError): void {
    if (attempt < (this.#options.tries ?? 4) || this.#isUnavailable) return
    this.#isUnavailable = true
    this.#options.onUnavailable?.(failure)
  }
  /**
   * Sends a request and reads the response. After a temporary failure, the request is repeated: at
   * the same address if the status is 429, otherwise at the next one. With `once`, it is never
   * repeated.
   * @param make creates the request of each attempt. Its exceptions propagate. If it has a signal,
   * the signal ends the request and its repetition with the reason of the signal.
   * @param timeout of one attempt in milliseconds, after which the request is repeated; none by
   * default. Not used together with a signal of the request.
   * @param accepts whether a response is a success; by default, one with a 2xx status.
   * @throws BatonError if the service refuses the request or does not respond; the error of a
   * request body that cannot be read.
   */
  async request<T>(
    path: string,
    make: () => RequestInit & { readonly duplex?: 'half' },
    read: (answer: Response) => Promise<T>,
    {
      once = false,
      timeout,
      accepts = ({ ok }) => ok,
    }: {
      readonly once?: boolean
      readonly timeout?: number
      readonly accepts?: (answer: Response, attempt: number) => boolean
    } = {},
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const { url } = this
      const init = make()
      const { signal } = init
      const header = invalidHeader(init.headers)
      if (header !== undefined)
        throw new BatonError(
          400,
          'bad_request',
          `The header ${header} has a character that ${NOT_IN_HEADER}.`,
        )
      const faults: unknown[] = []
      let answer: Response | undefined
      let failure: BatonError
      let retryAfter: number | undefined
      try {
        answer = await this.fetch(url + path, {
          ...init,
          ...(timeout !== undefined && { signal: AbortSignal.timeout(timeout) }),
          ...(init.body instanceof ReadableStream && {
            body: ReadableStream.from(reportingFailure(init.body, (fault) => faults.push(fault))),
          }),
        })
        if (accepts(answer, attempt)) {
          const result = await read(answer)
          this.#recordAnswer()
          return result
        }
        failure = refusalError(answer, await answer.text())
        if (!isTemporary(answer.status)) {
          this.#recordAnswer()
          throw failure
        }
        retryAfter = retryAfterMs(answer)
        if (answer.status !== 429) this.next(url)
      } catch (error) {
        if (error instanceof BatonError) throw error
        if (faults.length > 0) throw faults[0]
        if (signal?.aborted) throw signal.reason
        if (error instanceof SyntaxError && answer && !isMediaType(answer, JSON_TYPE))
          throw unexpectedResponse(url, answer, JSON_TYPE)
        failure = unreachableError(url, error)
        this.next(url)
      }
      if (once || attempt >= this.tries) throw failure
      this.#reportFailure(attempt, failure)
      const paused = this.pause(Math.min(WAIT.last, WAIT.first * 2 ** (attempt - 1)), retryAfter)
      await (signal ? orAborted(paused, signal) : paused)
    }
  }
}

const NOT_IN_HEADER = 'an HTTP header cannot contain'
const membersOf = (schema: unknown): Readonly<Record<string, unknown>> =>
  (schema as { properties?: Record<string, unknown> } | undefined)?.properties ?? {}

/**
 * Returns the reason why a stream must be requested again after an error response, and the wait
 * that the response requests, in milliseconds. Also switches to the next address, unless the status
 * is 429.
 * @throws BatonError for a 4xx status other than 429.
 */
export async function reasonToRepeat(
  transport: Transport,
  url: string,
  answer: Response,
): Promise<{ readonly reason: string; readonly retryAfter: number | undefined }> {
  const refused = refusalError(answer, await answer.text())
  if (answer.status < 500 && answer.status !== 429) throw refused
  if (answer.status !== 429) transport.next(url)
  return { reason: refused.message, retryAfter: retryAfterMs(answer) }
}
