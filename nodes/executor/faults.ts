/** How a generation fails: names, and whether and when another attempt may help. What may pass is tried again after a pause that doubles. */
import type { Outcome } from './handler.ts'

/** Milliseconds of the first pause and of the longest one. */
const PAUSE = { first: 500, last: 30_000 } as const
/** Characters of a provider's own words that are kept. */
const SHOWN = 500

/** Why an attempt has no answer. Those in `passing` may be gone by the next one. */
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

/** An attempt that failed. @param retry_after milliseconds that the provider asks for. */
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

/** The name of what an HTTP status says. */
export const faultOfStatus = (status: number): FaultName =>
  status === 429
    ? 'rate_limited'
    : status === 408 || status === 409 || status >= 500
      ? 'provider_error'
      : 'provider_refused'

/** The pause before the next attempt, in milliseconds. @param attempt the one that failed, from 1. @param spread 0 to 1: attempts that failed together do not come back together. */
const pauseAfter = (attempt: number, spread: number): number =>
  Math.round(Math.min(PAUSE.last, PAUSE.first * 2 ** Math.min(16, attempt - 1)) * (1 + spread / 4))

/** The outcome of an attempt that failed. @param secret is taken out of the message, whoever put it there. */
export function failedWith(
  { is, message, retry_after }: ExecutorFault,
  attempt: number,
  spread: number,
  secret = '',
): Outcome {
  const told = (secret === '' ? message : message.replaceAll(secret, '…')).slice(0, SHOWN)
  return {
    status: 'failed',
    error_type: is,
    error_message: told,
    ...(passing.has(is)
      ? { retry_in: Math.max(retry_after, pauseAfter(attempt, spread)) }
      : { final: true as const }),
  }
}
