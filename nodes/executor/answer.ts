/**
 * Derives the outcome of a call from the response of an HTTP action: the result, or the failure and
 * whether another attempt may help.
 */

import { parseJson } from '../../gateway/http/json.ts'
import { unsafeValueFault } from '../../gateway/http/validate.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { cutText } from '../../protocol/rules/cut-text.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { checkContext } from '../../protocol/sessions/check.ts'
import type { AppContext } from '../../protocol/sessions/turns/context.ts'
import { sizes } from '../../protocol/workers/socket.ts'
import type { Failed, Received } from '../outbound/post.ts'
import type { Outcome } from './handler.ts'

/** Maximum number of characters of a response that a failure message contains. */
const MAX_QUOTED_LENGTH = 500
/** Default maximum pause that a receiver may request, in milliseconds. */
const MAX_RETRY_AFTER_MS = 300_000

const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : { output: value })

/**
 * Converts the body of a 2xx response to a result: the `output` of an envelope, a JSON object
 * unchanged, other JSON as `{output}`, text as `{text}`, and an empty body as `{}`. Many receivers
 * declare no media type or `text/plain`, so an object or array counts as JSON under every type.
 * Other JSON, such as a number, could also be a text, so it counts as JSON only if it is declared.
 * The `context` of an envelope is returned as well. Returns a description of the fault if the
 * response is invalid.
 * @param envelope media type of envelopes.
 */
function resultOf(
  { content_type, body }: Pick<Received, 'content_type' | 'body'>,
  envelope: string,
): Carried | string {
  // Some receivers begin their answers with a byte order mark, which is no part of the text.
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  const type = content_type.split(';')[0]?.trim().toLowerCase() ?? ''
  const isDeclared = type === envelope || /^application\/(.*\+)?json$/.test(type)
  const parsed = isDeclared || /^\s*[[{]/.test(text) ? parseJson(text) : undefined
  if (parsed && 'fault' in parsed && parsed.tooMany) return `a JSON text that ${parsed.fault}`
  const json = parsed && 'value' in parsed ? parsed : undefined
  if (type === envelope)
    return isJsonObject(json?.value) ? opened(json.value) : 'an envelope that is not a JSON object'
  if (text.trim() === '') return { result: {} }
  return { result: json ? objectOf(json.value) : { text } }
}
interface Carried {
  readonly result: JsonObject
  readonly context?: readonly AppContext[]
}
function opened({ output, context }: JsonObject): Carried | string {
  const result = objectOf(output ?? {})
  if (context === undefined || context === null) return { result }
  const items = Array.isArray(context) ? (context as readonly unknown[]) : undefined
  if (
    !items?.every(
      (item): item is JsonObject & AppContext =>
        isJsonObject(item) &&
        typeof item['name'] === 'string' &&
        typeof item['content'] === 'string',
    )
  )
    return 'an envelope whose context is not a list of names with contents'
  const [fault] = checkContext(items, 'context')
  if (fault) return `an envelope with an invalid context: ${fault.field}: ${fault.message}`
  return {
    result,
    ...(items.length > 0 && { context: items.map(({ name, content }) => ({ name, content })) }),
  }
}

/**
 * Returns the pause in milliseconds that a receiver requests before the next attempt, or 0 when it
 * requests no pause.
 * @param after the header Retry-After: seconds or a date.
 * @param now Unix milliseconds.
 * @param longest upper limit of the returned pause, in milliseconds.
 */
export function pauseOf(
  after: string | undefined,
  now: number,
  longest = MAX_RETRY_AFTER_MS,
): number {
  if (after === undefined) return 0
  const ms = /^\d+(\.\d+)?$/.test(after) ? Number(after) * 1000 : Date.parse(after) - now
  return Number.isFinite(ms) ? Math.min(longest, Math.max(0, ms)) : 0
}

/** Returns whether a status indicates a temporary failure. */
export const isTemporaryFailure = (status: number): boolean =>
  status === 408 || status === 429 || status >= 500
const failed = (
  error_type: string,
  error_message: string,
  more: Pick<Outcome, 'final' | 'retry_in'> = {},
): Outcome => ({ status: 'failed', error_type, error_message, ...more })

/**
 * Returns the outcome of an attempt. A temporary failure (no connection, no response in time, a
 * stopped attempt, 408, 429, 5xx) may be retried. Any other failure is final.
 * @param answer the response, or the failure of the request.
 * @param options `envelope`: media type of envelopes; `delay`: milliseconds between attempts;
 *   `now`: Unix milliseconds.
 */
export function outcomeOf(
  answer: Received | Failed,
  {
    envelope,
    delay,
    now,
  }: { readonly envelope: string; readonly delay: number; readonly now: number },
): Outcome {
  const again = (pause: number) => ({ ...(pause > 0 && { retry_in: Math.round(pause) }) })
  if ('failed' in answer) {
    const passes =
      answer.failed === 'network' || answer.failed === 'timeout' || answer.failed === 'stopped'
    const names = {
      refused: 'address_refused',
      too_large: 'response_too_large',
      stopped: 'stopped',
      timeout: 'timeout',
      network: 'network_error',
    } as const
    return failed(
      names[answer.failed],
      `The endpoint could not be called: ${answer.message}.`,
      passes ? again(delay) : { final: true },
    )
  }
  const { status, body, retry_after } = answer
  if (status >= 200 && status < 300) {
    const carried = resultOf(answer, envelope)
    if (typeof carried === 'string')
      return failed('invalid_response', `The endpoint returned ${carried}.`, { final: true })
    // The depth is checked first, because `JSON.stringify` overflows the stack for a deep result.
    const fault = unsafeValueFault(carried.result)
    if (fault)
      return failed(
        'invalid_response',
        `The result of the endpoint cannot be stored: ${fault.field}: ${fault.message}.`,
        { final: true },
      )
    return Buffer.byteLength(JSON.stringify(carried.result)) > sizes.result
      ? failed(
          'response_too_large',
          `The endpoint returned a result of more than ${sizes.result} bytes.`,
          { final: true },
        )
      : { status: 'completed', ...carried }
  }
  const said = cutText(body.toString('utf8').trim(), MAX_QUOTED_LENGTH)
  const message =
    `The endpoint returned ${status}` +
    (status >= 300 && status < 400 ? '; redirects are not followed' : '') +
    (said === '' ? '.' : `: ${said}`)
  return failed(
    `http_${status}`,
    message,
    isTemporaryFailure(status)
      ? again(Math.max(delay, pauseOf(retry_after, now)))
      : { final: true },
  )
}
