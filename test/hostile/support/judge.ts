/**
 * Checks whether a response is documented for its row. No request may receive any other response.
 */

import type { Row } from '../../../protocol/contract.ts'
import { type Code, errors } from '../../../protocol/errors.ts'
import { refusalsOf } from '../../../protocol/openapi/document.ts'
import { undocumented } from '../../support/service.ts'
import type { Answered } from './ask.ts'

type Open = Readonly<Record<string, unknown>>
const isOpen = (value: unknown): value is Open =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Minimum size in bytes of a request whose head may exceed the limit of 16 KiB. */
const LONG = 15_000

/**
 * Returns the fault of a refusal, or undefined if the refusal is documented.
 * @param codes the allowed codes.
 * @param sent the size of the request in bytes: its path and its body. It limits the size of the
 * refusal.
 */
export function badRefusal(
  { status, headers, text }: Answered,
  codes: readonly Code[],
  sent = 0,
): string | undefined {
  // uWebSockets.js itself refuses heads that are too long. Its response is HTML.
  if (status === 431) return sent > LONG ? undefined : `431 for ${sent} bytes`
  const body = parsed(text)
  const error = isOpen(body) && Object.keys(body).join() === 'error' ? body['error'] : undefined
  if (!isOpen(error)) return `no error in its body: ${text.slice(0, 300)}`
  const { code, message, details, ...more } = error
  const facts: { readonly status: number; readonly retryable?: true } | undefined =
    typeof code === 'string' && Object.hasOwn(errors, code) ? errors[code as Code] : undefined
  if (facts?.status !== status) return `${status} with the code ${String(code)}`
  // Failures are documented for all rows, but must not be caused by requests. A non-retryable 5xx
  // response results from the installation's configuration and is not a failure.
  if ((status >= 500 && facts.retryable) || !codes.includes(code as Code))
    return `${status} ${code} is not documented here: ${text.slice(0, 300)}`
  if (typeof message !== 'string' || message === '') return 'no message'
  if (Object.keys(more).length > 0)
    return `more than code, message and details: ${Object.keys(more).join()}`
  if (details !== undefined && !isOpen(details)) return 'details that are no object'
  if (code === 'permission_denied' && typeof details?.['permission'] !== 'string')
    return 'a permission is not named'
  if (code === 'bad_request') {
    const fields = details?.['fields']
    if (!Array.isArray(fields) || fields.length === 0)
      return `no details.fields: ${text.slice(0, 300)}`
    if (
      !fields.every(
        (field) =>
          isOpen(field) &&
          typeof field['field'] === 'string' &&
          field['field'] !== '' &&
          typeof field['message'] === 'string' &&
          field['message'] !== '',
      )
    )
      return `a field without name or message: ${text.slice(0, 300)}`
  }
  if (/\b(at|node:)\w* .*\.(ts|js|mjs):\d+|node_modules|RangeError|TypeError/.test(text))
    return `it tells of the inside: ${text.slice(0, 300)}`
  if (!/^application\/json/.test(String(headers['content-type'])))
    return `content type ${String(headers['content-type'])}`
  if (typeof headers['x-request-id'] !== 'string') return 'no X-Request-ID'
  return text.length > 100_000 + 2 * sent ? `${text.length} bytes of refusal` : undefined
}

/**
 * Returns the fault of a response, or undefined if the response is documented for the row.
 * @param sent the size of the request in bytes.
 * @param also additional allowed codes.
 */
export function bad(
  name: string,
  row: Row,
  answer: Answered,
  sent = 0,
  also: readonly Code[] = [],
): string | undefined {
  const { status, text, headers } = answer
  if (status >= 300) return badRefusal(answer, [...refusalsOf(row), ...also], sent)
  if (![row.shape.status ?? 200, ...(row.shape.alsoStatus ?? []), row.shape.bare].includes(status))
    return `${status} is not documented`
  if (/event-stream/.test(String(headers['content-type'])))
    return row.shape.stream ? undefined : 'a stream'
  if (row.verb === 'blob') return undefined
  if (status === 204 || status === row.shape.bare)
    return text === '' ? undefined : `a body with ${status}`
  return undocumented(name, row, parsed(text))
}
