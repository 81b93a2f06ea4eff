/**
 * The body of an upload. It is not read before `bytes` is called: a request is admitted first, and
 * waits until the semaphore admits its bytes. Boundary: next to `request.ts`, `respond.ts` and the
 * worker socket, the only code that touches a uWS response.
 *
 * Invariants:
 * U1. Listening begins in the turn of the request, because otherwise its first chunk is lost. Data
 *     that arrives before `bytes` is called is stored; it is no more than what was already in
 *     flight.
 * U2. After the exchange has ended, the response is never touched again.
 * U3. An answer that is ready before the body was read waits until the body has been discarded: a
 *     client that is still sending might not see the answer.
 */
import type { HttpResponse } from 'uWebSockets.js'

/** Maximum bytes that are discarded before a refusal is sent anyway. */
const DRAIN = 16 * 1_048_576

export class Upload {
  readonly #res: HttpResponse
  readonly #limit: number
  #chunks: Buffer[] = []
  #size = 0
  #whole = false
  #over = false
  #dropping = false
  #flowing = false
  #wake: (() => void) | undefined

  constructor(res: HttpResponse, limit: number) {
    this.#res = res
    this.#limit = limit
    res.onData((chunk, last) => this.#take(chunk, last))
    res.pause()
    // After the turn of the request, uWS starts the timeout for silent clients; pausing again stops
    // it.
    setImmediate(() => {
      if (!this.#over && !this.#flowing) res.pause()
    })
  }

  /** The complete body; `too_large`; undefined when the client disconnected. */
  async bytes(): Promise<Buffer | 'too_large' | undefined> {
    await this.#flow(() => this.#whole || this.#size > this.#limit)
    if (this.#size > this.#limit) {
      await this.discard()
      return 'too_large'
    }
    return this.#over ? undefined : Buffer.concat(this.#chunks)
  }
  /** Receives the rest of the body and discards it. */
  async discard(): Promise<void> {
    this.#dropping = true
    this.#chunks = []
    await this.#flow(() => this.#whole || this.#size > this.#limit + DRAIN)
  }
  /** Called when the exchange has ended. */
  gone(): void {
    this.#over = true
    this.#chunks = []
    this.#wake?.()
  }

  async #flow(enough: () => boolean): Promise<void> {
    // Resumes even when the body is complete, because the next data on the connection has to be
    // read.
    if (!this.#over && !this.#flowing) this.#res.resume()
    this.#flowing = true
    while (!this.#over && !enough())
      await new Promise<void>((wake) => {
        this.#wake = wake
      })
  }
  #take(chunk: ArrayBuffer, last: boolean): void {
    this.#size += chunk.byteLength
    // A copy, because the chunk is invalid after this callback returns.
    if (!this.#dropping && this.#size <= this.#limit)
      this.#chunks.push(Buffer.from(Buffer.from(chunk)))
    if (last) this.#whole = true
    this.#wake?.()
  }
}
