/** Classifies the errors of requests to providers. */
import { pauseOf } from '../answer.ts'
import { ExecutorFault, faultOfStatus } from '../faults.ts'

/** Matches the names of the library's errors for answers that it could not parse. */
const broken =
  /JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoContentGenerated|NoOutputGenerated/
/** Matches the names of the library's errors for requests that it cannot send to the provider. */
const unsupported = /UnsupportedFunctionality|InvalidDataContent/
/**
 * Returns the fault for an error of the library or of the network.
 * @param asked the provider, and the signal that stops the request.
 * @param now Unix milliseconds.
 */
export function faultOf(
  error: unknown,
  { signal, provider }: { readonly signal: AbortSignal; readonly provider: string },
  now: number,
): ExecutorFault {
  if (signal.aborted) return new ExecutorFault('stopped', 'The request was stopped.')
  if (error instanceof ExecutorFault) return error
  const {
    name = '',
    message = '',
    statusCode,
    responseHeaders,
    cause,
  } = error as {
    name?: string
    message?: string
    statusCode?: number
    responseHeaders?: Record<string, string>
    cause?: unknown
  }
  if (statusCode !== undefined && !(statusCode >= 200 && statusCode < 300))
    return new ExecutorFault(
      faultOfStatus(statusCode),
      `${provider} returned ${statusCode}: ${message}`,
      pauseOf(responseHeaders?.['retry-after'], now),
    )
  if (cause instanceof ExecutorFault) return cause
  if (broken.test(name))
    return new ExecutorFault('invalid_response', `The response of ${provider} is invalid.`)
  if (unsupported.test(name))
    return new ExecutorFault(
      'provider_refused',
      `${provider} does not accept the request: ${message}`,
    )
  // The library forwards an error within the stream as the provider sent it, not as an `Error`.
  if (!(error instanceof Error))
    return new ExecutorFault(
      'provider_error',
      `${provider} ended its response early: ${typeof error === 'string' ? error : JSON.stringify(error)}`,
    )
  const reason = cause instanceof Error ? cause.message : message
  return new ExecutorFault(
    'provider_unreachable',
    `${provider} could not be reached, or the connection was lost: ${reason}`,
  )
}
