/**
 * Requests of a client that retries: each is repeated under the same key, through the gateways in
 * round-robin order, until the response is final.
 */
import { Agent, request } from 'node:http'
import type { Asked } from './history.ts'

export type Json = Readonly<Record<string, unknown>>
export interface Reply {
  readonly status: number
  readonly body: Json
}
/**
 * Timeout of one attempt, in milliseconds. It exceeds the time after which a gateway answers 503.
 */
const ATTEMPT_TIMEOUT_MS = 17_000
const PAUSE_MS = 100
/**
 * Milliseconds after which an idle connection is closed. A gateway keeps idle connections longer,
 * so no request uses a connection that the gateway is closing.
 */
const MAX_IDLE_MS = 5000

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** The path below `/v1`. */
  readonly path: string
  readonly body?: Json
  /** Value of `Idempotency-Key`. */
  readonly key?: string
}

export class Asker {
  readonly #urls: readonly string[]
  readonly #headers: Readonly<Record<string, string>>
  readonly #now: () => number
  readonly #agent = new Agent({ keepAlive: true, timeout: MAX_IDLE_MS })
  #turn = 0
  readonly requests: Asked[] = []
  /** The number of repeated attempts, by reason. */
  readonly again = new Map<string, number>()
  /**
   * If true, no more attempts are made. A pending request then ends without a response, unless its
   * current attempt receives the final response.
   */
  over = false
  open = 0

  constructor(urls: readonly string[], key: string, now: () => number) {
    this.#urls = urls
    this.#headers = { authorization: `Bearer ${key}` }
    this.#now = now
  }

  /**
   * Sends a request and returns the final response, or undefined if `over` is set first.
   * @param measured whether to record the waiting time.
   */
  async ask({ method, path, body, key }: Request, measured = true): Promise<Reply | undefined> {
    const asked: { at: number; done?: number } = { at: this.#now() }
    if (measured) this.requests.push(asked)
    const headers = {
      ...this.#headers,
      ...(body && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    }
    const text = body && JSON.stringify(body)
    this.open++
    try {
      for (let at = this.#turn++; !this.over; at++) {
        try {
          const answer = await this.#send(
            `${this.#urls[at % this.#urls.length]}/v1${path}`,
            method,
            headers,
            text,
          )
          if (answer.status < 500 && answer.status !== 429) {
            asked.done = this.#now()
            return {
              status: answer.status,
              body: answer.text === '' ? {} : (JSON.parse(answer.text) as Json),
            }
          }
          this.#count(String(answer.status))
        } catch (error) {
          const { name, code } = error as Error & { code?: string }
          this.#count(code ?? name)
        }
        await new Promise((next) => setTimeout(next, PAUSE_MS))
      }
      return undefined
    } finally {
      this.open--
    }
  }

  /**
   * Performs one attempt without `fetch`. With 3000 open requests, `fetch` would use four times the
   * processor time, at the expense of the servers.
   */
  #send(
    url: string,
    method: string,
    headers: Readonly<Record<string, string>>,
    text: string | undefined,
  ): Promise<{ status: number; text: string }> {
    return new Promise((done, failed) => {
      const sent = request(
        url,
        {
          method,
          agent: this.#agent,
          headers: {
            ...headers,
            ...(text !== undefined && { 'content-length': Buffer.byteLength(text) }),
          },
        },
        (answer) => {
          let got = ''
          answer.setEncoding('utf8').on('data', (part: string) => {
            got += part
          })
          answer
            .once('end', () => done({ status: answer.statusCode ?? 0, text: got }))
            .once('error', failed)
        },
      )
      const timer = setTimeout(
        () => sent.destroy(Object.assign(new Error('no answer'), { code: 'no answer' })),
        ATTEMPT_TIMEOUT_MS,
      )
      sent.once('error', failed).once('close', () => {
        clearTimeout(timer)
        failed(new Error('closed before its end'))
      })
      sent.end(text)
    })
  }

  #count(reason: string): void {
    this.again.set(reason, (this.again.get(reason) ?? 0) + 1)
  }
}
