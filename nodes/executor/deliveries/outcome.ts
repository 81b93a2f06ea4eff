/** Interprets the response to a delivery. */
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { type AttemptOutcome, pauseAfter } from '../../../protocol/webhooks/delivery.ts'
import { MAX_RESPONSE_CHARACTERS } from '../../../protocol/webhooks/rows.ts'
import type { Failed, Received } from '../../outbound/post.ts'
import { isTemporaryFailure, pauseOf } from '../answer.ts'

/**
 * Returns the outcome of an attempt: 2xx is accepted, a temporary failure is retried, any other
 * failure is final.
 * @param attempt.chance random number from 0 to 1, for the pause before the next attempt.
 */
export function outcomeOf(
  answer: Received | Failed,
  {
    attempt,
    chance,
    now,
  }: { readonly attempt: number; readonly chance: number; readonly now: number },
): AttemptOutcome {
  if ('failed' in answer) {
    const passes = answer.failed !== 'refused' && answer.failed !== 'too_large'
    return {
      delivered: false,
      error: `The URL could not be reached: ${answer.message}.`,
      ...(passes && { pause: pauseAfter(attempt, chance) }),
    }
  }
  const { status, retry_after } = answer
  if (status >= 200 && status < 300) return { delivered: true, response_code: status }
  const isRedirect = status >= 300 && status < 400
  return {
    delivered: false,
    response_code: status,
    error: `The receiver returned ${status}${isRedirect ? '; redirects are not followed' : ''}.`,
    ...(isTemporaryFailure(status) && {
      pause: pauseAfter(attempt, chance, pauseOf(retry_after, now, Infinity)),
    }),
  }
}

/**
 * Returns the beginning of a response's text as the field `answer`. Omits the field if the response
 * has no text.
 */
export function excerptOf(answer: Received | Failed): { readonly answer?: string } {
  if ('failed' in answer) return {}
  const beginning = answer.body.subarray(0, 4 * MAX_RESPONSE_CHARACTERS).toString('utf8')
  const text = cutText(beginning, MAX_RESPONSE_CHARACTERS)
  return text === '' ? {} : { answer: text }
}
