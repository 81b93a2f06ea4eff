/** Converts a refusal into the outcome of a job: a temporary refusal is retried. */

import { errorBody, errors, type Refusal } from '../../protocol/errors.ts'
import { cutText } from '../../protocol/rules/cut-text.ts'
import type { Outcome } from './handler.ts'

/** Pause before another attempt, in milliseconds. */
const PAUSE_MS = 500
/** Maximum number of characters of a stored message. */
const MAX_MESSAGE_LENGTH = 2000

/** Returns the outcome of an attempt that was refused. */
export function refusedOutcome(refusal: Refusal): Outcome {
  const { code, message, details } = errorBody(refusal).error
  const fields = Array.isArray(details?.['fields']) ? `: ${JSON.stringify(details['fields'])}` : ''
  return {
    status: 'failed',
    error_type: code,
    error_message: cutText(`${message}${fields}`, MAX_MESSAGE_LENGTH),
    ...('retryable' in errors[refusal.refused] ? { retry_in: PAUSE_MS } : { final: true as const }),
  }
}
