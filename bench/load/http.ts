/**
 * An HTTP/1.1 client for load tests: a pool of keep-alive connections with one request at a time
 * on each. Responses must have a content length. Like other clients, it retries a request that the
 * service cannot serve right now (503). The measured time includes the retries.
 */
import { pause } from '../support/measure.ts'
import { dial, headOf, type Line } from './wire.ts'

export interface Reply {
  readonly status: number
  /** The body, one Latin-1 character per byte. */
  readonly body: string
}
interface Asked {
  readonly bytes: string
  readonly done: (reply: Reply) => void
  readonly failed: (error: Error) => void
}

/** Maximum time for retries of a request, and pause between attempts, in milliseconds. */
const RETRIES_MS = { whole: 30_000, between: 200 } as const

/** Milliseconds after which an idle connection is not reused. */
const MAX_IDLE_MS = 5000
interface Idle {
  readonly begin: (asked: Asked) => void
  readonly line: Line
  readonly since: number
}

export class Http {
  /** Number of retries after 503 responses. */
  unavailable = 0
  readonly #port: number
  readonly #tail: string
  readonly #most: number
  readonly #lines = new Set<Line>()
  readonly #idle: Idle[] = []
  readonly #queue: Asked[] = []

  /** @param most maximum number of connections. Further requests wait for a free connection. */
  constructor(port: number, key: string, most: number) {
    this.#port = port
    this.#most = most
    this.#tail = ` HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n`
  }

  get(path: string): Promise<Reply> {
    return this.#patiently(`GET ${path}${this.#tail}\r\n`)
  }
  /** @param body JSON in ASCII. */
  post(path: string, body: string): Promise<Reply> {
    return this.#patiently(
      `POST ${path}${this.#tail}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  }
  close(): void {
    for (const line of this.#lines) line.close()
  }

  async #patiently(bytes: string): Promise<Reply> {
    const first = await this.#ask(bytes)
    if (first.status !== 503) return first
    for (const until = performance.now() + RETRIES_MS.whole; ; ) {
      this.unavailable++
      await pause(RETRIES_MS.between)
      const reply = await this.#ask(bytes)
      if (reply.status !== 503 || performance.now() > until) return reply
    }
  }
  #ask(bytes: string): Promise<Reply> {
    return new Promise((done, failed) => {
      const asked = { bytes, done, failed }
      const idle = this.#lately()
      if (idle) idle.begin(asked)
      else if (this.#lines.size < this.#most) this.#open(asked)
      else this.#queue.push(asked)
    })
  }
  /**
   * Closes connections that have been idle for too long. Returns the most recently used idle
   * connection; undefined if none is left. The server closes connections that were idle for 10 s,
   * possibly just when a request arrives.
   */
  #lately(): Idle | undefined {
    const oldest = performance.now() - MAX_IDLE_MS
    while (this.#idle[0] && this.#idle[0].since < oldest) this.#idle.shift()?.line.close()
    return this.#idle.pop()
  }
  #open(first: Asked): void {
    let current: Asked | undefined
    let text = ''
    const begin = (asked: Asked) => {
      current = asked
      line.send(asked.bytes)
    }
    const line: Line = dial(
      this.#port,
      (bytes) => {
        text = text === '' ? bytes : text + bytes
        const head = headOf(text)
        if (!head || text.length < head.body + head.length) return
        const reply: Reply = { status: head.status, body: text.slice(head.body) }
        text = ''
        const answered = current
        current = undefined
        const next = this.#queue.shift()
        if (next) begin(next)
        else this.#idle.push({ begin, line, since: performance.now() })
        answered?.done(reply)
      },
      (error) => {
        this.#lines.delete(line)
        const at = this.#idle.findIndex((idle) => idle.line === line)
        if (at >= 0) this.#idle.splice(at, 1)
        current?.failed(error ?? new Error('the server closed a connection with a request on it'))
        // A new connection is opened for a queued request, because the lost connection may have
        // been the last one.
        const next = this.#queue.shift()
        if (next) this.#open(next)
      },
    )
    this.#lines.add(line)
    begin(first)
  }
}
