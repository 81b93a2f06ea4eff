/**
 * The errors of requests: the service refused the request, did not respond, or sent a response that
 * is not in its format.
 */
import type { Code } from '../protocol/errors.ts'
import { EVENT_STREAM, errorIn, isMediaType, notBaton } from './http.ts'

/**
 * The codes that only clients use. `unreachable`: no complete response arrived, so the effect of
 * the request is unknown. `unexpected_response`: the response is not in the format of the service,
 * as after a wrong base address or behind a proxy that requires a login.
 */
type ClientCode = 'unreachable' | 'unexpected_response'

/** The error of a failed request. `code` is stable and intended for branching. */
export class BatonError extends Error {
  readonly status: number
  readonly code: Code | ClientCode
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly request_id: string | undefined
  constructor(
    status: number,
    code: Code | ClientCode,
    message: string,
    details?: Readonly<Record<string, unknown>>,
    requestId?: string,
  ) {
    super(message)
    this.name = 'BatonError'
    this.status = status
    this.code = code
    this.details = details
    this.request_id = requestId
  }
}

/** Creates the error of a request that received no complete response. */
export const unreachableError = (url: string, error: unknown): BatonError =>
  new BatonError(0, 'unreachable', `${url} does not respond: ${reasonOf(error)}`)

/** Creates the error of a success response that is not in the format of the service. */
export const unexpectedResponse = (url: string, answer: Response, expected: string): BatonError =>
  new BatonError(answer.status, 'unexpected_response', notBaton(url, answer, expected))
/**
 * Requires that a success response is a stream of events.
 * @throws BatonError if its media type is different.
 */
export function requireEventStream(url: string, answer: Response): void {
  if (!isMediaType(answer, EVENT_STREAM)) throw unexpectedResponse(url, answer, EVENT_STREAM)
}

/**
 * Converts an error response to a `BatonError`, even if its body is not in the format of the
 * service.
 */
export function refusalError(answer: Response, text: string): BatonError {
  const id = answer.headers.get('x-request-id') ?? undefined
  const { status, statusText } = answer
  const code = status === 404 ? 'not_found' : 'internal'
  const error = errorIn(text) ?? { code, message: `${status} ${statusText}`, details: undefined }
  return new BatonError(status, error.code as Code, error.message, error.details, id)
}

/**
 * Returns the message of an error's innermost cause, because `fetch` reports only `fetch failed`
 * and puts the reason into the cause.
 */
export function reasonOf(error: unknown): string {
  const { message, cause, code, library, reason } = error as Error &
    Readonly<Record<'code' | 'library' | 'reason', string | undefined>>
  if (cause !== undefined) return reasonOf(cause)
  // The messages of OpenSSL contain addresses in memory and file names of its source.
  if (library === 'SSL routines' && reason !== undefined)
    return `${reason} (TLS); the address may begin with http:// instead of https://`
  return message || code || String(error)
}

/**
 * Whether a service refused a request because it does not know the parameter `include` of the row,
 * or one of its values, as an older service.
 */
export function isUnknownInclude(error: unknown): boolean {
  if (!(error instanceof BatonError) || error.code !== 'bad_request') return false
  const fields = error.details?.['fields']
  return (
    Array.isArray(fields) &&
    fields.some(({ field }: { readonly field?: unknown }) => /^include\b/.test(String(field)))
  )
}
