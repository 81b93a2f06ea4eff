/** Asking as a careful client does: the same request again, under the same key, at the other gateway, until the answer is final. */
import type { Asked } from './history.ts'

export type Json = Readonly<Record<string, unknown>>
export interface Reply {
  readonly status: number
  readonly body: Json
}
/** Milliseconds one try may take: longer than a gateway itself waits before it answers 503. */
const TRY = 17_000
const PAUSE = 100

export interface Request {
  readonly method: 'GET' | 'POST'
  /** Below `/v1`. */
  readonly path: string
  readonly body?: Json
  /** Value of `Idempotency-Key`. */
  readonly key?: string
}

export class Asker {
  readonly #urls: readonly string[]
  readonly #headers: Readonly<Record<string, string>>
  readonly #now: () => number
  #turn = 0
  /** Every request, for its waits. */
  readonly requests: Asked[] = []
  /** Tries that had to be repeated, by reason. */
  readonly again = new Map<string, number>()
  /** Set when nobody waits any longer: requests end without an answer. */
  over = false
  open = 0

  constructor(urls: readonly string[], key: string, now: () => number) {
    this.#urls = urls
    this.#headers = { authorization: `Bearer ${key}` }
    this.#now = now
  }

  /** The final answer; undefined when the run of chaos ended first. @param measured whether its wait counts. */
  async ask({ method, path, body, key }: Request, measured = true): Promise<Reply | undefined> {
    const asked: { at: number; done?: number } = { at: this.#now() }
    if (measured) this.requests.push(asked)
    const headers = { ...this.#headers, ...(body && { 'content-type': 'application/json' }), ...(key !== undefined && { 'idempotency-key': key }) }
    const text = body && JSON.stringify(body)
    this.open++
    try {
      for (let at = this.#turn++; !this.over; at++) {
        try {
          const answer = await fetch(`${this.#urls[at % this.#urls.length]}/v1${path}`, { method, headers, ...(text !== undefined && { body: text }), signal: AbortSignal.timeout(TRY) })
          const got = await answer.text()
          if (answer.status < 500 && answer.status !== 429) {
            asked.done = this.#now()
            return { status: answer.status, body: got === '' ? {} : (JSON.parse(got) as Json) }
          }
          this.#count(String(answer.status))
        } catch (error) {
          const { name, cause } = error as Error & { cause?: { code?: string } }
          this.#count(name === 'TimeoutError' ? 'no answer' : (cause?.code ?? name))
        }
        await new Promise((next) => setTimeout(next, PAUSE))
      }
      return undefined
    } finally {
      this.open--
    }
  }

  #count(reason: string): void {
    this.again.set(reason, (this.again.get(reason) ?? 0) + 1)
  }
}
