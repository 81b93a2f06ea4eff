/**
 * A typed client is the API table plus a way to send: no code is generated. Every POST carries an idempotency key of its
 * own, so that a request whose answer was lost can be sent again without acting twice.
 */
import { randomUUID } from 'node:crypto'
import { api, type Api } from '../protocol/api.ts'
import { routeOf, type Input, type Reply, type Row } from '../protocol/contract.ts'
import type { Code } from '../protocol/errors.ts'

export interface ClientOptions {
  /** Base address, such as `http://127.0.0.1:8080`; several are tried in turn when one does not answer. */
  readonly url: string | readonly string[]
  /** API key. */
  readonly key: string
  /** Handle of the project that calls are about; `default` unless named. */
  readonly project?: string
  /** Tries per request, the first included; 4 by default. */
  readonly tries?: number
  /** Milliseconds one try may take; 60 s by default. */
  readonly timeout?: number
  readonly fetch?: typeof fetch
}

/** A refusal of the service. `code` is stable; branch on it. */
export class BatonError extends Error {
  readonly status: number
  readonly code: Code | 'unreachable'
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly request_id: string | undefined
  constructor(status: number, code: Code | 'unreachable', message: string, details?: Readonly<Record<string, unknown>>, requestId?: string) {
    super(message)
    this.name = 'BatonError'
    this.status = status
    this.code = code
    this.details = details
    this.request_id = requestId
  }
}

type Called<R extends Row> = Omit<Input<R>, 'project'> & (Input<R> extends { project: string } ? { project?: string } : unknown)
type Call<R extends Row> = Partial<Called<R>> extends Called<R> ? (input?: Called<R>) => Promise<Reply<R>> : (input: Called<R>) => Promise<Reply<R>>
type Callable = { [N in keyof Api as Api[N] extends { readonly verb: 'command' | 'query' } ? N : never]: Api[N] }
type Group<N> = N extends `${infer G}.${string}` ? G : never
/** `client.run.start({…})`: every command and query of the table, by resource and name. */
export type Client = {
  readonly [G in Group<keyof Callable>]: { readonly [N in keyof Callable as N extends `${G}.${infer M}` ? M : never]: Callable[N] extends infer R extends Row ? Call<R> : never }
} & { readonly transport: Transport }

/** The client of a service. */
export function client(options: ClientOptions): Client {
  const transport = new Transport(options)
  const groups: Record<string, Record<string, unknown>> = {}
  for (const [name, row] of Object.entries(api)) {
    const [group = '', method = ''] = name.split('.')
    groups[group] ??= {}
    ;(groups[group] as Record<string, unknown>)[method] = (input: Record<string, unknown> = {}) => transport.call(row, input)
  }
  return { ...groups, transport } as unknown as Client
}

const RETRIED = new Set([429, 500, 502, 503, 504])

/** Sending: addresses, credentials, retries. */
export class Transport {
  readonly #options: ClientOptions
  readonly #urls: readonly string[]
  #at = 0
  constructor(options: ClientOptions) {
    this.#options = options
    this.#urls = (typeof options.url === 'string' ? [options.url] : options.url).map((url) => url.replace(/\/$/, ''))
  }
  get project(): string {
    return this.#options.project ?? 'default'
  }
  /** The address in use. */
  get url(): string {
    return this.#urls[this.#at % this.#urls.length] ?? ''
  }
  /** Turn to the next address: this one does not answer. */
  next(): void {
    this.#at++
  }
  get headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#options.key}` }
  }
  get fetch(): typeof fetch {
    return this.#options.fetch ?? fetch
  }

  /** Path and remaining members of an input, for a row. */
  path(row: Row, input: Record<string, unknown>): { path: string; rest: Record<string, unknown> } {
    const rest: Record<string, unknown> = { ...input }
    const { path, slots } = routeOf(row)
    let filled = path
    for (const slot of slots) {
      const value = slot === 'project' ? (rest[slot] ?? this.project) : rest[slot]
      delete rest[slot]
      filled = filled.replace(`:${slot}`, encodeURIComponent(String(value)))
    }
    return { path: `/v1${filled}`, rest }
  }

  /** Call a command or query of the table. @throws BatonError */
  async call(row: Row, input: Record<string, unknown>): Promise<unknown> {
    const { path, rest } = this.path(row, input)
    const { method } = routeOf(row)
    const query = new URLSearchParams()
    const inQuery = row.shape.query ? (row.shape.query as { properties?: object }).properties : undefined
    for (const [name, value] of Object.entries(rest)) {
      if (value === undefined || (row.shape.body && !(inQuery && name in inQuery))) continue
      query.set(name, Array.isArray(value) ? value.join(',') : String(value))
      delete rest[name]
    }
    const body = row.shape.body && (Object.keys(rest).length > 0 || !row.shape.bodyOptional) ? JSON.stringify(rest) : undefined
    const headers: Record<string, string> = { ...this.headers, ...(body !== undefined && { 'content-type': 'application/json' }), ...(method === 'POST' && { 'idempotency-key': randomUUID() }) }
    const repeatable = method !== 'PATCH'
    return this.#send(method, `${path}${query.size > 0 ? `?${query}` : ''}`, headers, body, repeatable)
  }

  async #send(method: string, path: string, headers: Record<string, string>, body: string | undefined, repeatable: boolean): Promise<unknown> {
    const tries = repeatable ? (this.#options.tries ?? 4) : 1
    for (let attempt = 1; ; attempt++) {
      let failure: BatonError
      let wait = 250 * 2 ** (attempt - 1)
      try {
        const answer = await this.fetch(this.url + path, { method, headers, ...(body !== undefined && { body }), signal: AbortSignal.timeout(this.#options.timeout ?? 60_000) })
        const text = await answer.text()
        if (answer.ok) return text === '' ? undefined : JSON.parse(text)
        failure = refusal(answer, text)
        if (!RETRIED.has(answer.status)) throw failure
        const after = Number(answer.headers.get('retry-after'))
        if (Number.isFinite(after) && after > 0) wait = Math.min(after, 60) * 1000
      } catch (error) {
        if (error instanceof BatonError) throw error
        failure = new BatonError(0, 'unreachable', `${this.url} does not answer: ${(error as Error).message}`)
        this.next()
      }
      if (attempt >= tries) throw failure
      await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)))
    }
  }
}

/** The refusal an answer carries. */
export function refusal(answer: Response, text: string): BatonError {
  const id = answer.headers.get('x-request-id') ?? undefined
  try {
    const { error } = JSON.parse(text) as { error: { code: Code; message: string; details?: Record<string, unknown> } }
    return new BatonError(answer.status, error.code, error.message, error.details, id)
  } catch {
    return new BatonError(answer.status, answer.status === 404 ? 'not_found' : 'internal', `${answer.status} ${answer.statusText}`, undefined, id)
  }
}
