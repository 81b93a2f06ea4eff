/**
 * Classifies the failures of a generation, and decides whether and when to make another attempt. A
 * temporary failure is retried with exponential back-off. A provider may request a longer pause.
 */
import { cutText } from '../../protocol/rules/cut-text.ts'
import type { Outcome } from './handler.ts'

/** Initial and maximum pause before another attempt, in milliseconds, without jitter. */
const PAUSE = { first: 500, last: 30_000 } as const
/** Maximum number of characters of a stored error message. */
const MAX_MESSAGE_LENGTH = 500

/** The reason why an attempt has no response. The reasons in `passing` are temporary. */
export type FaultName =
  | 'rate_limited'
  | 'provider_error'
  | 'provider_unreachable'
  | 'provider_timeout'
  | 'invalid_response'
  | 'provider_refused'
  | 'credentials_unavailable'
  | 'model_unavailable'
  | 'script_invalid'
  | 'stopped'
  | 'files_unavailable'
const passing: ReadonlySet<FaultName> = new Set<FaultName>([
  'rate_limited',
  'provider_error',
  'provider_unreachable',
  'provider_timeout',
  'invalid_response',
  'stopped',
  'files_unavailable',
])

/** A failed attempt. `retry_after` is the pause in milliseconds that the provider requests. */
export class ExecutorFault extends Error {
  override readonly name = 'ExecutorFault'
  readonly is: FaultName
  readonly retry_after: number
  constructor(is: FaultName, message: string, retry_after = 0) {
    super(message)
    this.is = is
    this.retry_after = retry_after
  }
}

/** Returns the failure that an HTTP status represents. */
export const faultOfStatus = (status: number): FaultName =>
  status === 429
    ? 'rate_limited'
    : status === 408 || status === 409 || status >= 500
      ? 'provider_error'
      : 'provider_refused'

/**
 * Returns the pause before the next attempt, in milliseconds.
 * @param attempt the failed attempt, from 1.
 * @param spread jitter from 0 to 1, which spreads the retries of attempts that failed together.
 */
const pauseAfter = (attempt: number, spread: number): number =>
  Math.round(Math.min(PAUSE.last, PAUSE.first * 2 ** Math.min(16, attempt - 1)) * (1 + spread / 4))

/**
 * Returns the outcome of a failed attempt.
 * @param attempt the failed attempt, from 1.
 * @param spread jitter from 0 to 1, as in `pauseAfter`.
 * @param secret text that is removed from the message.
 */
export function failedOutcome(
  { is, message, retry_after }: ExecutorFault,
  attempt: number,
  spread: number,
  secret = '',
): Outcome {
  const text = cutText(
    secret === '' ? message : message.replaceAll(secret, '…'),
    MAX_MESSAGE_LENGTH,
  )
  return {
    status: 'failed',
    error_type: is,
    error_message: text,
    ...(passing.has(is)
      ? { retry_in: Math.max(retry_after, pauseAfter(attempt, spread)) }
      : { final: true as const }),
  }
}
