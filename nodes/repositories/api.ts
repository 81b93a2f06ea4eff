/**
 * Sends requests to the APIs of repository hosts. Responses are not trusted: their size is limited,
 * only the required members are read, and errors contain only the status.
 */
import type { TokenFailure } from '../../protocol/repositories/token.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import type { Post } from '../outbound/post.ts'

/** Timeout of one request in milliseconds, and maximum size of its response in bytes. */
const LIMITS = { timeout: 8000, most: 512 * 1024 } as const

interface ApiRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The body of a POST request as JSON; absent for GET. */
  readonly body?: unknown
}
/**
 * A response. `body` is the JSON object that it contains, or an empty object if it contains none.
 */
interface ApiAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}
/** Sends a request. Failures are returned, never thrown. */
export type CallApi = (request: ApiRequest) => Promise<ApiAnswer | TokenFailure>

export const unavailable = (message: string): TokenFailure => ({ failed: 'unavailable', message })
export const denied = (message: string): TokenFailure => ({ failed: 'denied', message })

function jsonObject(body: Buffer): ApiAnswer['body'] {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/**
 * Creates the function that sends requests.
 * @param agent value of the `User-Agent` header, which GitHub requires.
 */
export const createApi =
  (post: Post, agent: string): CallApi =>
  async ({ url, headers, body }) => {
    const answer = await post({
      url,
      owner: 'repositories',
      ...(body === undefined && { method: 'GET' }),
      schemes: ['https:'],
      plain: true,
      headers: {
        accept: 'application/json',
        ...headers,
        'user-agent': agent,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? '' : JSON.stringify(body),
      timeout: LIMITS.timeout,
      most: LIMITS.most,
      signal: new AbortController().signal,
    })
    return 'failed' in answer
      ? unavailable(`The repository host ${new URL(url).host} did not answer: ${answer.message}.`)
      : { status: answer.status, body: jsonObject(answer.body) }
  }

/** Returns the failure for a status that is unrelated to the repository. */
export const unexpected = (url: string, status: number): TokenFailure => {
  const { host } = new URL(url)
  return unavailable(
    status === 401
      ? `The repository host ${host} does not accept the stored key or token; store a new one.`
      : `The repository host ${host} answered with status ${status}; retry later.`,
  )
}

/** Whether a value of a response can be a token. */
export const isToken = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value)
