/**
 * The one place that writes an HTTP answer. Boundary: wraps a uWS response; nothing else holds one.
 *
 * Invariants:
 * W1. After an abort or an end the response is never touched again.
 * W2. An answer goes out in one piece with its Content-Length, so that a client can tell it is whole.
 * W3. Every write is corked, alone or together with others. A stream knows how many bytes wait unsent: uWS tells it only at
 *     the write that follows a cork, so the estimate is never too low.
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
  /** Writes made within `run` go out in one piece. */
  together(run: () => void): void
  /** So much waits unsent that nothing more may be written before it drains. */
  readonly full: boolean
  readonly closed: boolean
  /** Called whenever everything unsent has gone out. */
  onDrain(run: () => void): void
  /** Called once, when the client goes away or the stream ends. */
  onClose(run: () => void): void
  end(): void
}

const statusLines = new Map(Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]))
/** Unsent bytes of a stream beyond which it counts as full. */
const UNSENT_LIMIT = 1_048_576
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

  /** Send an answer. @param headers those it has besides its own, which come before them. @param headOnly for HEAD: the length of the body, not the body. @param close give up the connection afterwards. */
  answer(answer: Answer, headers: Readonly<Record<string, string>>, headOnly: boolean, close: boolean): void {
    if (!this.#open) return
    const content = answer.text ?? (answer.body === undefined ? undefined : JSON.stringify(answer.body))
    const res = this.#res
    res.cork(() => {
      this.#head(answer.status, answer.headers ? { ...headers, ...answer.headers } : headers)
      if (content === undefined) {
        // A 204 has no length; uWS omits it only when called without arguments.
        if (answer.status === 204 && !close) res.endWithoutBody()
        else res.endWithoutBody(0, close)
        return
      }
      res.writeHeader('Content-Type', answer.type ?? 'application/json')
      if (!headOnly) return void res.end(content, close)
      // Told a length, uWS waits for that many bytes and takes the next request on the connection for one that came too early.
      res.writeHeader('Content-Length', String(Buffer.byteLength(content)))
      if (close) res.writeHeader('Connection', 'close')
      res.endWithoutBody()
    })
    this.#finish()
  }

  /** Begin a stream; `first` goes out with the head, so that the client sees the answer at once. */
  stream(headers: Readonly<Record<string, string>>, first: string): Sink {
    const res = this.#res
    let unsent = 0
    let blocked = false
    let corked = false
    let more = false
    let drained = () => {}
    const put = (text: string): boolean => {
      let ok = true
      res.cork(() => { ok = res.write(text) })
      return ok
    }
    const write = (text: string) => {
      if (!this.#open || text === '') return
      const size = Buffer.byteLength(text)
      const ok = corked ? res.write(text) : put(text)
      // What was written before under the same cork still waits, although nothing was in its way.
      unsent = ok && !more ? size : unsent + size
      blocked = !ok
      more = corked
    }
    const together = (run: () => void) => {
      if (!this.#open || corked) return run()
      res.cork(() => {
        corked = true
        try {
          run()
        } finally {
          corked = more = false
        }
      })
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
      together,
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

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#res.writeStatus(statusLines.get(status) ?? `${status} Unknown`)
    for (const name of Object.keys(headers)) this.#res.writeHeader(name, headers[name] ?? '')
  }

  #finish(): void {
    if (!this.#open) return
    this.#open = false
    const closers = this.#closers
    this.#closers = []
    for (const run of closers) run()
  }
}
