/**
 * The body of an upload. It stays with its client until somebody asks for it: a request is admitted first, and waits until there is
 * room for its bytes. Boundary: besides `request.ts`, `respond.ts` and the socket the only one that touches a uWS response.
 *
 * Invariants:
 * U1. Listening begins in the turn of the request, otherwise its first chunk is lost; what comes before anybody asks is kept, which
 *     is no more than what was on its way.
 * U2. After the exchange is over the response is never touched again.
 * U3. An answer that comes before the body was read waits until the body has been thrown away: a client that is still sending
 *     might not see it.
 */
import type { HttpResponse } from 'uWebSockets.js'

/** Bytes that are thrown away at most before a refusal is sent anyway. */
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
    // After the turn of the request uWS begins to count the time of a silent client; pausing again ends that.
    setImmediate(() => {
      if (!this.#over && !this.#flowing) res.pause()
    })
  }

  /** All of it; `too_large`; undefined when the client went away. */
  async bytes(): Promise<Buffer | 'too_large' | undefined> {
    await this.#flow(() => this.#whole || this.#size > this.#limit)
    if (this.#size > this.#limit) {
      await this.discard()
      return 'too_large'
    }
    return this.#over ? undefined : Buffer.concat(this.#chunks)
  }
  /** Let the rest come and throw it away. */
  async discard(): Promise<void> {
    this.#dropping = true
    this.#chunks = []
    await this.#flow(() => this.#whole || this.#size > this.#limit + DRAIN)
  }
  /** The exchange is over. */
  gone(): void {
    this.#over = true
    this.#chunks = []
    this.#wake?.()
  }

  async #flow(enough: () => boolean): Promise<void> {
    // Also when everything is here: whatever comes next on the connection has to be read.
    if (!this.#over && !this.#flowing) this.#res.resume()
    this.#flowing = true
    while (!this.#over && !enough())
      await new Promise<void>((wake) => {
        this.#wake = wake
      })
  }
  #take(chunk: ArrayBuffer, last: boolean): void {
    this.#size += chunk.byteLength
    // A copy, because the chunk is gone when this returns.
    if (!this.#dropping && this.#size <= this.#limit)
      this.#chunks.push(Buffer.from(Buffer.from(chunk)))
    if (last) this.#whole = true
    this.#wake?.()
  }
}
