/**
 * Sends HTTP requests from tests to a service. `node:http` takes a fraction of the processor time
 * of `fetch`, and tests make many thousands of requests.
 */
import { Agent, request } from 'node:http'

/**
 * Closes idle connections before the service does, so that no request uses a connection that the
 * service is closing.
 */
const agent = new Agent({ keepAlive: true, timeout: 4000 })

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}
/**
 * Sends a request, and reads the whole response. Redirects are not followed.
 * @throws the error of the socket if there is no response.
 */
export const send = (
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<Reply> =>
  new Promise((done, failed) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const asked = request(
      url,
      { agent, method, headers: { ...headers, ...length } },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', failed)
        response.on('end', () =>
          done({
            status: response.statusCode ?? 0,
            headers: new Headers(response.headers as Record<string, string>),
            text: Buffer.concat(parts).toString(),
          }),
        )
      },
    )
    asked.on('error', failed)
    asked.end(body)
  })
