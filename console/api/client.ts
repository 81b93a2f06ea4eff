/**
 * Calls operations of the API from the browser, with the types of the endpoint table. The browser
 * sends the cookie of the console session.
 *
 * Invariants:
 * C1. A request is retried only if it cannot take effect twice. All attempts of a POST share one
 *     `Idempotency-Key`, even if a person retries the same JSON request after the last attempt went
 *     unanswered. A PATCH has no key, so it is retried only after a 429 or 505.
 * C2. If a PUT, PATCH or DELETE may have taken effect although no response confirms it, the error
 *     has the code `outcome_unknown`, and everything that is shown is loaded again.
 */
import { isTemporary, isUnexecuted, pathSegment } from '../../client/http.ts'
import type { Api } from '../../protocol/api.ts'
import type { Input, Reply, Row } from '../../protocol/contract.ts'
import { embeddedRoute } from './routes.ts'
import { apiText } from './text.ts'

/** Names of the operations that `call` supports: commands and queries. */
export type CallName = {
  [N in keyof Api]: Api[N] extends { readonly verb: 'command' | 'query' } ? N : never
}[keyof Api]
/** Path parameters, query parameters and body of an operation in one object. */
export type CallInput<N extends CallName> = Api[N] extends infer R extends Row ? Input<R> : never
/** The response of an operation. */
export type CallReply<N extends CallName> = Api[N] extends infer R extends Row ? Reply<R> : never

/** A fault of one field of a request. `field` is a path such as `spec.steps.0.key`. */
export interface FieldFault {
  readonly field: string
  readonly message: string
}

/**
 * The error of a request: an error response (`status` from 400), or no response (`status` 0 and
 * code `unreachable`). With the code `outcome_unknown`, a change may have taken effect.
 */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string | undefined
  constructor(
    status: number,
    code: string,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    requestId?: string,
  ) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
  }
  /** The permission that the caller lacks; undefined if the service names none. */
  get permission(): string | undefined {
    const { permission } = this.details
    return this.code === 'forbidden' && typeof permission === 'string' ? permission : undefined
  }
  /** The faults of individual fields; empty if the response lists none. */
  get fields(): readonly FieldFault[] {
    const { fields } = this.details
    return Array.isArray(fields) ? (fields as FieldFault[]) : []
  }
}

/** Options of a call. */
export interface CallOptions {
  readonly signal?: AbortSignal
  /**
   * Idempotency key of a POST; by default the key of an identical request that was not answered, or
   * a new key.
   */
  readonly key?: string
  /** Condition of an update, sent as the header `If-Match`. */
  readonly ifMatch?: string
}

/** Maximum number of attempts of a request. */
const MAX_ATTEMPTS = 4
/** Code for an error response that contains none, such as a response from a proxy. */
const UNNAMED = 'internal_error'
/**
 * Base of the back-off in milliseconds. The pause after attempt `n` is this value times 2 to the
 * power of `n`.
 */
const PAUSE_BASE_MS = 300
/** Maximum pause between attempts in milliseconds, even if `Retry-After` is longer. */
const MAX_PAUSE_MS = 10_000
/** Maximum number of keys kept for unanswered requests. */
const MAX_KEPT_KEYS = 100
/** Idempotency keys of unanswered POST requests, by path and body, for a later retry. */
const openKeys = new Map<string, string>()

/**
 * Whether the outcome of a failed request is unknown. A 503 with a specific code, unlike
 * `service_unavailable`, is a refusal, so its outcome is known.
 */
const isLost = ({ status, code }: ApiError): boolean =>
  status === 0 ||
  status === 502 ||
  status === 504 ||
  (status === 503 && (code === 'service_unavailable' || code === UNNAMED))

/** Creates a random key. `randomUUID` exists only in secure contexts. */
export const randomKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')

let onSignedOut: () => void = () => {}
/** Sets the function that is called when the service responds with 401: the session has ended. */
export function setSignedOutHandler(run: () => void): void {
  onSignedOut = run
}

let onForbidden: () => void = () => {}
/** Sets the function that is called when the service responds with 403: a permission is missing. */
export function setForbiddenHandler(run: () => void): void {
  onForbidden = run
}
let onUnknown: () => void = () => {}
/** Sets the function that is called when the outcome of a change is unknown. */
export function setUnknownOutcomeHandler(run: () => void): void {
  onUnknown = run
}

/** A request in its HTTP form. `path` begins with `/v1`. */
export interface HttpRequestOf {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/**
 * Returns the HTTP request for a call.
 * @throws Error if a path parameter is missing.
 */
export function requestOf(name: string, input: Readonly<Record<string, unknown>>): HttpRequestOf {
  const { route, query: inQuery = [], include, body: hasBody } = embeddedRoute(name)
  const [method = 'GET', pattern = ''] = route.split(' ')
  const rest: Record<string, unknown> = { ...(include && { include }), ...input }
  const path = pattern.replace(/:(\w+)/g, (_, slot: string) => {
    const segment = pathSegment(rest[slot])
    if (segment === undefined) throw new Error(`${route} needs ${slot}`)
    delete rest[slot]
    return segment
  })
  const query = new URLSearchParams()
  for (const [member, value] of Object.entries(rest)) {
    if (hasBody && !inQuery.includes(member)) continue
    delete rest[member]
    if (value !== undefined && value !== '')
      query.set(member, Array.isArray(value) ? value.join(',') : String(value))
  }
  return {
    method,
    path: `/v1${path}${query.size > 0 ? `?${query}` : ''}`,
    ...(hasBody && { body: rest }),
  }
}

/** Time for which the response to an early call is kept. */
const EARLY_MS = 10_000
const early = new Map<string, { readonly reply: Promise<unknown>; readonly end: () => void }>()
const identityOf = (name: string, input: object): string => `${name} ${JSON.stringify(input)}`

/**
 * Calls a query before the page that needs it is loaded. The first `call` with the same name and
 * input within `EARLY_MS` receives the response. If the early call has failed by then, `call`
 * sends a request as usual.
 */
export function callEarly<N extends CallName>(name: N, input: CallInput<N>): void {
  const id = identityOf(name, input as object)
  const reply = call(name, input)
  const timer = setTimeout(() => early.delete(id), EARLY_MS)
  const end = (): void => clearTimeout(timer)
  early.set(id, { reply, end })
  reply.catch(() => {
    if (early.get(id)?.reply !== reply) return
    early.delete(id)
    end()
  })
}

/**
 * Calls an operation, with retries after temporary failures.
 * @throws ApiError if the service refuses the request or does not respond; the abort reason if the
 * signal aborts.
 */
export async function call<N extends CallName>(
  name: N,
  input: CallInput<N>,
  options: CallOptions = {},
): Promise<CallReply<N>> {
  if (early.size > 0) {
    const id = identityOf(name, input as object)
    const called = early.get(id)
    early.delete(id)
    called?.end()
    if (called) return called.reply as Promise<CallReply<N>>
  }
  const { method, path, body } = requestOf(name, input as Record<string, unknown>)
  const response = await send(method, path, body === undefined ? undefined : JSON.stringify(body), {
    ...options,
    type: 'application/json',
  })
  const text = await response.text()
  return (text === '' ? undefined : JSON.parse(text)) as CallReply<N>
}

/**
 * Sends a request and returns its successful response, with retries after temporary failures.
 * `path` begins with `/`, because requests go only to the service itself.
 * @param options `type` is the media type of the body, absent for a form. `accept` is the requested
 * media type, such as `text/event-stream`.
 * @throws the same errors as `call`.
 */
export async function send(
  method: string,
  path: string,
  body?: BodyInit,
  {
    signal,
    key,
    ifMatch,
    type,
    accept,
  }: CallOptions & { readonly type?: string; readonly accept?: string } = {},
): Promise<Response> {
  const same = method === 'POST' && typeof body === 'string' ? `${path} ${body}` : undefined
  const used = key ?? (same === undefined ? undefined : openKeys.get(same)) ?? randomKey()
  const headers = {
    ...(body !== undefined && type && { 'content-type': type }),
    ...(accept !== undefined && { accept }),
    ...(method === 'POST' && { 'idempotency-key': used }),
    ...(ifMatch !== undefined && { 'if-match': ifMatch }),
  }
  for (let attempt = 1, unknown = false; ; attempt++) {
    const response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    }).catch(() => undefined)
    signal?.throwIfAborted()
    if (response?.ok) {
      if (same !== undefined) openKeys.delete(same)
      return response
    }
    const error = await errorOf(response)
    const lost = isLost(error)
    if (same !== undefined) storeKey(same, lost ? used : undefined)
    if (error.status === 401) onSignedOut()
    if (error.status === 403) onForbidden()
    // A 404 on a repeated DELETE is a success: an earlier attempt, whose response was lost, may
    // have deleted the record.
    if (method === 'DELETE' && unknown && error.status === 404)
      return new Response(null, { status: 204 })
    unknown ||= lost && method !== 'GET' && method !== 'POST'
    const again = method === 'PATCH' ? isUnexecuted(error.status) : isTemporary(error.status)
    if (!again || attempt === MAX_ATTEMPTS) {
      if (!unknown) throw error
      onUnknown()
      throw new ApiError(
        error.status,
        'outcome_unknown',
        apiText.unknown,
        error.details,
        error.requestId,
      )
    }
    const after = Number(response?.headers.get('retry-after') ?? 0) * 1000
    const pause = Math.min(MAX_PAUSE_MS, Math.max(after, PAUSE_BASE_MS * 2 ** attempt))
    await new Promise((again) => setTimeout(again, pause))
    signal?.throwIfAborted()
  }
}

/** Stores the key of an unanswered request. Without a key, removes the stored one. */
function storeKey(request: string, key: string | undefined): void {
  openKeys.delete(request)
  if (key === undefined) return
  openKeys.set(request, key)
  const [oldest] = openKeys.keys()
  if (oldest !== undefined && openKeys.size > MAX_KEPT_KEYS) openKeys.delete(oldest)
}

async function errorOf(response: Response | undefined): Promise<ApiError> {
  if (!response) return new ApiError(0, 'unreachable', apiText.unreachable)
  const body = (await response.json().catch(() => ({}))) as {
    error?: { code?: string; message?: string; details?: Record<string, unknown> }
  }
  const { code = UNNAMED, message, details } = body.error ?? {}
  return new ApiError(
    response.status,
    code,
    message ?? apiText.answered(response.status),
    details,
    response.headers.get('x-request-id') ?? undefined,
  )
}
