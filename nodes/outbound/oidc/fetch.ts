/**
 * Sends the requests of sign-ins to the OpenID provider, under the rules for outbound requests. The
 * operator configures the issuer, so its host may have any address. Other hosts in the provider's
 * metadata must have public or allowed addresses.
 */
import { createGuard, type Guard } from '../guard.ts'
import { createPost } from '../post.ts'

/** Thrown when the provider cannot be reached, or responds with a server error (5xx). */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
}
/** Timeout of a request in milliseconds. */
const TIMEOUT_MS = 10_000
/** Maximum size of a response body in bytes. */
const MAX_BYTES = 1_048_576

type Fetch = (
  url: string,
  options: {
    readonly method: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: unknown
    readonly signal?: AbortSignal | undefined
  },
) => Promise<Response>

/** Creates the function that the provider's client uses to send its requests. */
export function createProviderFetch(guard: Guard, issuer: string): Fetch {
  const host = new URL(issuer).hostname
  const configured = createGuard(['0.0.0.0/0', '::/0'])
  const post = createPost({
    check: (name, cause) => (name === host ? configured : guard).check(name, cause),
  })
  return async (url, { method, headers, body, signal }) => {
    const received = await post({
      method: method === 'GET' ? 'GET' : 'POST',
      url,
      owner: 'sign-in',
      schemes: ['https:'],
      plain: true,
      headers,
      body: body === undefined || body === null ? '' : String(body),
      timeout: TIMEOUT_MS,
      most: MAX_BYTES,
      signal: signal ?? new AbortController().signal,
    })
    if ('failed' in received) throw new ProviderUnavailable(received.message)
    if (received.status >= 500)
      throw new ProviderUnavailable(`the provider answered ${received.status}`)
    return new Response(received.status === 204 ? null : new Uint8Array(received.body), {
      status: received.status,
      headers: { 'content-type': received.content_type },
    })
  }
}
