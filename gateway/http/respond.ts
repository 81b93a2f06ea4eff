/**
 * The one place that writes an HTTP answer. Boundary: wraps a uWS response; nothing else holds one.
 *
 * Invariants:
 * W1. After an abort or an end the response is never touched again.
 * W2. An answer goes out in one piece with its Content-Length, so that a client can tell it is whole.
 * W3. A value of a header has no line break: it is ours, or came in as a header's. The head goes to uWS as one piece, because
 *     each call costs.
 * W4. Every write to a stream is corked, and small enough to be gathered as a whole. A stream knows how many bytes wait
 *     unsent: uWS tells it only at the write that follows a cork, so the estimate is never too low.
 */
import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'

/** What goes back. `text` is sent as it is with its `type`, bytes as fast as they are taken; `body` as JSON; neither: no body. */
export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly text?: string | Uint8Array
  readonly type?: string
}

/** A response held open, written in pieces. */
export interface Sink {
  /** Write now or queue, in one piece; nothing happens after the end. */
  write(piece: string | Uint8Array): void
  /** So much waits unsent that nothing more may be written before it drains. */
  readonly full: boolean
  readonly closed: boolean
  /** Called whenever everything unsent has gone out. */
  onDrain(run: () => void): void
  /** Called once, when the client goes away or the stream ends. */
  onClose(run: () => void): void
  end(): void
}

const statusLines = new Map(
  Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]),
)
/** Unsent bytes of a stream beyond which it counts as full. */
const UNSENT_LIMIT = 1_048_576
/**
 * Bytes written at once to a stream: what uWS gathers in its buffer of 16 KiB as a whole, the chunk's length included. With
 * writes of 53 KB, `npm run chaos` saw whole chunks vanish behind their length towards slow clients; with these, none.
 */
export const WHOLE = 15_000
/** A comment, so small that it costs nothing; writing is what makes uWS flush. */
const NUDGE = ':\n\n'

/** A line of a head. */
const headerLine = (name: string, value: string): string => `\r\n${name}: ${value}`

export class Exchange {
  readonly request_id: string
  readonly #res: HttpResponse
  readonly #over: () => void
  /** The value of the first header, and the lines of those that every answer has. */
  #head: string
  #open = true
  #closers: (() => void)[] | undefined

  /** @param over called once it is over, before anybody else hears of it. */
  constructor(res: HttpResponse, request_id: string, over: () => void) {
    this.#res = res
    this.#head = this.request_id = request_id
    this.#over = over
    res.onAborted(() => this.#finish())
  }

  /** Add headers to the answer, whatever it will be. */
  add(headers: Readonly<Record<string, string>>): void {
    this.#head += linesOf(headers)
  }

  /** Neither answered nor aborted. */
  get open(): boolean {
    return this.#open
  }

  /** Called once the exchange is over: answered, ended or aborted. */
  onClose(run: () => void): void {
    if (!this.#open) run()
    else if (this.#closers) this.#closers.push(run)
    else this.#closers = [run]
  }

  /** Send an answer. @param headOnly for HEAD: the length of the body, not the body. @param close give up the connection afterwards. */
  answer(
    { status, headers, body, text, type = 'application/json' }: Answer,
    headOnly: boolean,
    close: boolean,
  ): void {
    if (!this.#open) return
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body))
    let lines = headers ? linesOf(headers) : ''
    if (content !== undefined) lines += headerLine('Content-Type', type)
    if (content instanceof Uint8Array && !headOnly && !close) {
      this.#pour(status, lines, content)
      return
    }
    const res = this.#res
    res.cork(() => {
      this.#begin(status, lines)
      if (content === undefined) {
        // A 204 has no length; uWS omits it only when called without arguments.
        if (status === 204 && !close) res.endWithoutBody()
        else res.endWithoutBody(0, close)
        return
      }
      if (!headOnly) return void res.end(content, close)
      // Told a length, uWS waits for that many bytes and takes the next request on the connection for one that came too early.
      res.writeHeader('Content-Length', String(Buffer.byteLength(content)))
      if (close) res.writeHeader('Connection', 'close')
      res.endWithoutBody()
    })
    this.#finish()
  }

  /** Send bytes with their length, no faster than the client takes them; uWS keeps nothing of them. */
  #pour(status: number, lines: string, bytes: Uint8Array): void {
    const res = this.#res
    const from = (offset: number): boolean => {
      const [accepted, done] = res.tryEnd(bytes.subarray(offset), bytes.length)
      if (done) this.#finish()
      return accepted
    }
    let begun = 0
    res.onWritable((offset) => {
      let accepted = true
      if (this.#open)
        res.cork(() => {
          accepted = from(offset - begun)
        })
      return accepted
    })
    res.cork(() => {
      this.#begin(status, lines)
      begun = res.getWriteOffset()
      from(0)
    })
  }

  /** Begin a stream; `first` goes out with the head, so that the client sees the answer at once. */
  stream(headers: Readonly<Record<string, string>>, first: string): Sink {
    const res = this.#res
    let unsent = 0
    let blocked = false
    let drained = () => {}
    let piece: string | Uint8Array = first
    let accepted = true
    // One function for all writes: there are many.
    const put = () => {
      accepted = res.write(piece)
    }
    const send = (given: string | Uint8Array, size: number) => {
      piece = given
      res.cork(put)
      unsent = accepted ? size : unsent + size
      blocked = !accepted
    }
    const write = (given: string | Uint8Array) => {
      if (!this.#open || given.length === 0) return
      const size = typeof given === 'string' ? Buffer.byteLength(given) : given.length
      if (size <= WHOLE) return send(given, size)
      const bytes = typeof given === 'string' ? Buffer.from(given) : given
      for (let from = 0; from < size; from += WHOLE) {
        const part = bytes.subarray(from, from + WHOLE)
        send(part, part.length)
      }
    }
    if (this.#open) {
      res.onWritable(() => {
        if (!this.#open) return true
        piece = NUDGE
        res.cork(put)
        if (!accepted) return false
        const was = blocked
        blocked = false
        unsent = 0
        if (was) drained()
        return true
      })
      res.cork(() => {
        this.#begin(200, linesOf(headers))
        write(first)
      })
    }
    const isOpen = () => this.#open
    return {
      write,
      get full() {
        return blocked && unsent > UNSENT_LIMIT
      },
      get closed() {
        return !isOpen()
      },
      onDrain: (run) => {
        drained = run
      },
      onClose: (run) => this.onClose(run),
      end: () => {
        if (!this.#open) return
        res.cork(() => res.end())
        this.#finish()
      },
    }
  }

  #begin(status: number, lines: string): void {
    if (status !== 200) this.#res.writeStatus(statusLines.get(status) ?? `${status} Unknown`)
    this.#res.writeHeader('X-Request-ID', this.#head + lines)
  }

  #finish(): void {
    if (!this.#open) return
    this.#open = false
    this.#over()
    const closers = this.#closers
    this.#closers = undefined
    if (closers) for (const run of closers) run()
  }
}

function linesOf(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name of Object.keys(headers)) lines += headerLine(name, headers[name] ?? '')
  return lines
}
