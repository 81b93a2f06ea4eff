/**
 * A client that behaves like a browser that shows the console: it stores the session cookie and
 * sends the `Origin` header.
 */
import type { Raw, Service } from '../../support/service.ts'

export class Browser {
  readonly service: Service
  readonly url: string
  readonly origin: string
  /** Name and value of the session cookie; undefined when signed out. */
  cookie: string | undefined
  constructor(service: Service, url: string = service.url, cookie?: string) {
    this.service = service
    this.url = url
    this.origin = url
    this.cookie = cookie
  }
  /** Sends a request as a page of the service does; `headers` override the default headers. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Raw> {
    const answer = await this.service.raw(method, path, {
      key: null,
      url: this.url,
      headers: {
        ...(this.cookie !== undefined && { cookie: `theme=dark; ${this.cookie}` }),
        ...(method !== 'GET' && { origin: this.origin }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        'sec-fetch-site': 'same-origin',
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const set = answer.headers.getSetCookie().find((one) => /_session/.test(one))
    if (set !== undefined)
      this.cookie = /Max-Age=0;/.test(set) ? undefined : (set.split(';')[0] ?? '')
    return answer
  }
  signIn(body: Readonly<Record<string, string>>): Promise<Raw> {
    return this.send('POST', '/v1/auth/console/sessions', body)
  }
  who(): Promise<Raw> {
    return this.send('GET', '/v1/auth/console/session')
  }
  /**
   * Returns a client with the same session for another gateway. The name of a session cookie
   * contains the port of the gateway.
   */
  at(url: string): Browser {
    const port = new URL(url).port
    return new Browser(
      this.service,
      url,
      this.cookie?.replace(/_session_\d+=/, `_session_${port}=`),
    )
  }
}
