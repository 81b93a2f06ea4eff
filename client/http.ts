/**
 * Checks of requests and responses that `fetch` leaves to its caller, in browsers and in Node.js.
 */

/** Media types of the responses of the service. */
export const JSON_TYPE = 'application/json'
export const EVENT_STREAM = 'text/event-stream'

/**
 * Returns a value as a segment of a path. Returns undefined for `.`, `..` and empty values: URLs
 * resolve them even if they are encoded, so the request would reach another resource.
 */
export const pathSegment = (value: unknown): string | undefined => {
  const text = String(value ?? '')
  return ['', '.', '..'].includes(text) ? undefined : encodeURIComponent(text)
}

const mediaTypeOf = ({ headers }: Response): string =>
  (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
/** Whether a response has a media type, regardless of parameters such as `charset`. */
export const isMediaType = (answer: Response, type: string): boolean => mediaTypeOf(answer) === type

/** Returns the message about a success response whose media type is not the expected one. */
export const notBaton = (url: string, answer: Response, expected: string): string =>
  `${url} is not the address of a Baton service: it sent ` +
  `${mediaTypeOf(answer) || 'a response without a media type'} instead of ${expected}.`

/**
 * HTTP statuses of responses after which a request may be repeated. 505 is among them because
 * uWebSockets.js can answer it when the first line of a request arrives in several parts (issue 1776
 * of uNetworking/uWebSockets). The request is then not executed.
 */
const temporaryStatuses: ReadonlySet<number> = new Set([429, 500, 502, 503, 504, 505])
/** Whether a request may be repeated after a response with this status. 0: there is no response. */
export const isTemporary = (status: number): boolean =>
  status === 0 || temporaryStatuses.has(status)
/**
 * Whether a response with this status proves that the request was not executed, so that a request
 * without an idempotency key may be repeated too.
 */
export const isUnexecuted = (status: number): boolean => status === 429 || status === 505

/** Maximum wait in milliseconds that a `Retry-After` header can cause. */
const MAX_RETRY_AFTER_MS = 60_000
/**
 * Returns the milliseconds after which a response asks to repeat the request. Returns undefined if
 * it has no `Retry-After` header with a number of seconds.
 */
export function retryAfterMs({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after'))
  return seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined
}

/** Returns the error in the body of a response; undefined if the body is not from the service. */
export function errorIn(text: string) {
  try {
    const { error } = JSON.parse(text) as {
      error: { code: string; message: string; details?: Record<string, unknown> }
    }
    return typeof error.code === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the name of a header whose value HTTP does not permit. The exception of `Headers` is not
 * used, because it contains the value, which may be a credential.
 */
export const invalidHeader = (headers: RequestInit['headers']): string | undefined =>
  Object.entries(headers ?? {}).find(([name, value]) => {
    try {
      new Headers([[name, String(value)]])
      return false
    } catch {
      return true
    }
  })?.[0]

/** Yields the chunks of a request body. Calls `report` with the error of a body that fails. */
export async function* reportingFailure<T>(
  body: AsyncIterable<T>,
  report: (error: unknown) => void,
): AsyncGenerator<T, void> {
  try {
    yield* body
  } catch (error) {
    report(error)
    throw error
  }
}
