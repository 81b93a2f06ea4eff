/**
 * The one place that writes an HTTP answer. Boundary: wraps a uWS response; nothing else holds one.
 *
 * Invariants:
 * W1. After an abort or an end the response is never touched again.
 * W2. An answer goes out in one piece with its Content-Length, so that a client can tell it is whole.
 * W3. Every write is corked. A stream knows how many bytes wait unsent: uWS tells it only at the following write, so the
 *     estimate is never too low.
 */
import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'

/** What goes back. `text` is sent as it is with its `type`; `body` as JSON; neither: no body. */
export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly text?: string | Uint8Array
  readonly type?: string
}

/** A response held open, written in pieces. */
export interface Sink {
  /** Write now or queue; nothing happens after the end. */
  write(text: string): void
  /** So much waits unsent that nothing more may be written before it drains. */
  readonly full: boolean
  readonly closed: boolean
  /** Called whenever everything unsent has gone out. */
  onDrain(run: () => void): void
  /** Called once, when the client goes away or the stream ends. */
  onClose(run: () => void): void
  end(): void
}

/** Unsent bytes of a stream beyond which it counts as full. */
export const UNSENT_LIMIT = 1_048_576
/** A comment, so small that it costs nothing; writing is what makes uWS flush. */
const NUDGE = ':\n\n'

export class Exchange {
  readonly #res: HttpResponse
  #open = true
  #closers: (() => void)[] = []

  constructor(res: HttpResponse) {
    this.#res = res
    res.onAborted(() => this.#finish())
  }

  /** Neither answered nor aborted. */
  get open(): boolean {
    return this.#open
  }

  /** Called once the exchange is over: answered, ended or aborted. */
  onClose(run: () => void): void {
    if (this.#open) this.#closers.push(run)
    else run()
  }

  /** Send an answer. @param headOnly for HEAD: the length of the body, not the body. @param close give up the connection afterwards. */
  answer(answer: Answer, headOnly: boolean, close: boolean): void {
    if (!this.#open) return
    const content = answer.text ?? (answer.body === undefined ? undefined : JSON.stringify(answer.body))
    const res = this.#res
    res.cork(() => {
      this.#head(answer.status, answer.headers)
      if (content === undefined) {
        // A 204 has no length; uWS omits it only when called without arguments.
        if (answer.status === 204 && !close) res.endWithoutBody()
        else res.endWithoutBody(0, close)
        return
      }
      res.writeHeader('Content-Type', answer.type ?? 'application/json')
      if (headOnly) res.endWithoutBody(Buffer.byteLength(content), close)
      else res.end(content, close)
    })
    this.#finish()
  }

  /** Begin a stream; `first` goes out with the head, so that the client sees the answer at once. */
  stream(headers: Readonly<Record<string, string>>, first: string): Sink {
    const res = this.#res
    let unsent = 0
    let blocked = false
    let drained = () => {}
    const put = (text: string): boolean => {
      let ok = true
      res.cork(() => { ok = res.write(text) })
      return ok
    }
    const write = (text: string) => {
      if (!this.#open || text === '') return
      const size = Buffer.byteLength(text)
      blocked = !put(text)
      unsent = blocked ? unsent + size : size
    }
    if (this.#open) {
      res.onWritable(() => {
        if (!this.#open) return true
        if (!put(NUDGE)) return false
        const was = blocked
        blocked = false
        unsent = 0
        if (was) drained()
        return true
      })
      res.cork(() => {
        this.#head(200, headers)
        write(first)
      })
    }
    const isOpen = () => this.#open
    return {
      write,
      get full() { return blocked && unsent > UNSENT_LIMIT },
      get closed() { return !isOpen() },
      onDrain: (run) => { drained = run },
      onClose: (run) => this.onClose(run),
      end: () => {
        if (!this.#open) return
        res.cork(() => res.end())
        this.#finish()
      },
    }
  }

  #head(status: number, headers: Readonly<Record<string, string>> = {}): void {
    this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`)
    for (const [name, value] of Object.entries(headers)) this.#res.writeHeader(name, value)
  }

  #finish(): void {
    if (!this.#open) return
    this.#open = false
    for (const run of this.#closers.splice(0)) run()
  }
}
