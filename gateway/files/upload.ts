/**
 * The body of an upload. The body is paused until `bytes` or `discard` is called, because the
 * request is first admitted and then waits for the semaphore. Besides `request.ts`, `respond.ts`
 * and the worker socket, this is the only code that touches a uWS response.
 *
 * Invariants:
 * U1. The listener for data is added in the turn of the event loop in which the request arrives,
 *     because otherwise the first chunk is lost. Data that arrives before `bytes` is called is
 *     kept; it is at most what uWS had already received when it was paused.
 * U2. After the exchange has ended, the response is never touched again.
 * U3. A refusal waits until the rest of the body has been discarded, because a client that is still
 *     sending might not read the answer. At most `DRAIN` bytes above the limit are discarded.
 */
import type { HttpResponse } from 'uWebSockets.js'

/** Maximum number of bytes above the limit that are discarded before a refusal is sent. */
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
    // At the end of the turn in which a request arrives, uWS starts its timeout for idle clients.
    // Pausing again stops this timeout.
    setImmediate(() => {
      if (!this.#over && !this.#flowing) res.pause()
    })
  }

  /**
   * Reads the complete body. Returns `too_large` for a body above the limit, and undefined when the
   * client has disconnected.
   */
  async bytes(): Promise<Buffer | 'too_large' | undefined> {
    await this.#flow(() => this.#whole || this.#size > this.#limit)
    if (this.#size > this.#limit) {
      await this.discard()
      return 'too_large'
    }
    return this.#over ? undefined : Buffer.concat(this.#chunks)
  }
  /** Receives and discards the rest of the body, up to `DRAIN` bytes above the limit. */
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
    // Resumes even when the body is complete, because otherwise the next request on the connection
    // is never read.
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
