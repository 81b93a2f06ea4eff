/**
 * The body of an upload. The body is paused until `bytes`, `chunks` or `discard` is called, because
 * the request is first admitted and then waits for the semaphore.
 *
 * Invariants:
 * U1. The listener for data is added in the turn of the event loop in which the request arrives,
 *     because otherwise the first chunk is lost. Data that arrives before the body is read is kept.
 *     This is at most the data that uWS had received before the body was paused.
 * U2. After the exchange has ended, the response is never touched again.
 * U3. A refusal waits until the rest of the body has been discarded, because a client that is still
 *     sending might not read the response. At most `MAX_DRAINED_BYTES` above the limit are
 *     discarded.
 * U4. While `chunks` is read, the client is paused whenever more than `MAX_UNREAD_BYTES` are
 *     unread, so memory is bounded by `MAX_UNREAD_BYTES` and one read of the socket (512 KiB).
 * U5. Of the uploads that are read by `chunks`, only those that have a turn receive or yield bytes.
 *     An upload without a turn therefore holds only the bytes that arrived with its headers. A turn
 *     ends when the received bytes are consumed, or after `SILENCE_MS` without a byte, so that
 *     silent clients do not delay others for long.
 * U6. Bytes that arrive during a turn are copied into buffers of a pool. A buffer is reused when
 *     the reader requests the next bytes. Without a pool, a waiting upload would hold one chunk in
 *     each of its stages, because a suspended generator keeps its last value alive.
 */
import type { HttpResponse } from 'uWebSockets.js'
import { type BufferPool, createBufferPool } from './buffer-pool.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/** Maximum number of bytes above the limit that are discarded before a refusal is sent. */
const MAX_DRAINED_BYTES = 16 * 1_048_576
/** Maximum number of unread bytes before the client is paused. */
const MAX_UNREAD_BYTES = 262_144

/** Maximum number of uploads of a gateway that receive bytes at the same time. */
const MAX_RECEIVING = 8
/** Maximum size in bytes of the slices that `chunks` yields. */
const SLICE_BYTES = 65_536
/** Maximum number of bytes that a gateway keeps for slices while no upload uses them. */
const MAX_KEPT_BYTES = 4 * 1_048_576
/** Milliseconds after which a turn ends if no byte arrives. */
const SILENCE_MS = 100

/** State that the uploads of a gateway share: turns, buffers, and the gateway's clock. */
export interface UploadTurns {
  readonly turns: Semaphore
  readonly slices: BufferPool
  later(ms: number, run: () => void): () => void
}
export const createUploadTurns = (clock: Pick<UploadTurns, 'later'>): UploadTurns => ({
  turns: createSemaphore(MAX_RECEIVING),
  slices: createBufferPool(SLICE_BYTES, MAX_KEPT_BYTES),
  later: (ms, run) => clock.later(ms, run),
})

/**
 * Thrown when the body of an upload ends early, because the body exceeds the limit or the client
 * has disconnected.
 */
export class UploadCut extends Error {
  readonly reason: 'too_large' | 'disconnected'
  constructor(reason: UploadCut['reason']) {
    super(`the upload was cut: ${reason}`)
    this.reason = reason
  }
}

/** A buffer of a pool whose first `length` bytes were received. */
interface Slice {
  readonly buffer: Buffer
  length: number
}

export class Upload {
  readonly #res: HttpResponse
  readonly #limit: number
  /**
   * Unread bytes outside of the pool: all bytes that `bytes` reads, or the bytes that arrived
   * before the first turn of `chunks`.
   */
  #chunks: Buffer[] = []
  /** Unread bytes that `chunks` yields. */
  readonly #slices: Slice[] = []
  /** The pool of the buffers of `#slices`. */
  #pool: BufferPool | undefined
  #size = 0
  #whole = false
  #over = false
  #dropping = false
  #flowing = false
  #chunked = false
  #paused = false
  #unread = 0
  #wake: (() => void) | undefined
  readonly #gone = new AbortController()

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

  /** Aborted when the client disconnects or the exchange ends. The reason is an `UploadCut`. */
  get ended(): AbortSignal {
    return this.#gone.signal
  }
  /** Number of bytes that have arrived but are not read yet. */
  get unread(): number {
    return this.#unread
  }
  /**
   * Reads the complete body. Returns `too_large` for a body above the limit, and undefined when the
   * client has disconnected.
   */
  async bytes(): Promise<Buffer | 'too_large' | undefined> {
    await this.#flow(() => this.#whole || !this.#fits())
    if (!this.#fits()) {
      await this.discard()
      return 'too_large'
    }
    return this.#over ? undefined : Buffer.concat(this.#chunks)
  }
  /**
   * Yields the body as it arrives, in slices of at most 64 KiB. Backpressure slows the client to
   * the speed of the reader. A slice is valid until the next slice is requested.
   * @throws {UploadCut} when the body exceeds the limit or the client disconnects.
   */
  async *chunks(shared: UploadTurns): AsyncGenerator<Buffer, void> {
    this.#chunked = true
    let release = await shared.turns.acquire(1)
    this.#pool = shared.slices
    for (let first = this.#chunks.shift(); first; first = this.#chunks.shift()) this.#keep(first)
    let fresh = true
    try {
      for (;;) {
        while (this.#awaits()) {
          if (!fresh) {
            release()
            release = await shared.turns.acquire(1)
          }
          fresh = false
          if (this.#awaits()) await this.#receive(shared)
        }
        fresh = false
        if (this.#over) throw new UploadCut('disconnected')
        if (!this.#fits()) throw new UploadCut('too_large')
        const slice = this.#slices.shift()
        if (!slice) return this.#start()
        this.#unread -= slice.length
        try {
          yield slice.buffer.subarray(0, slice.length)
        } finally {
          shared.slices.give(slice.buffer)
        }
      }
    } finally {
      this.#drop()
      release()
    }
  }
  /** Receives and discards the rest of the body, up to `MAX_DRAINED_BYTES` above the limit. */
  async discard(): Promise<void> {
    this.#dropping = true
    this.#drop()
    if (this.#paused && !this.#over) this.#res.resume()
    this.#paused = false
    await this.#flow(() => this.#whole || this.#size > this.#limit + MAX_DRAINED_BYTES)
  }
  /** Called when the exchange has ended. */
  gone(): void {
    this.#over = true
    this.#drop()
    this.#wake?.()
    this.#gone.abort(new UploadCut('disconnected'))
  }

  #drop(): void {
    this.#chunks = []
    for (const { buffer } of this.#slices.splice(0)) this.#pool?.give(buffer)
    this.#unread = 0
  }
  #keep(bytes: Buffer): void {
    const pool = this.#pool
    if (!pool) return
    for (let rest = bytes; rest.length > 0; ) {
      let last = this.#slices.at(-1)
      if (!last || last.length === pool.size) {
        last = { buffer: pool.take(), length: 0 }
        this.#slices.push(last)
      }
      const copied = rest.copy(last.buffer, last.length)
      last.length += copied
      rest = rest.subarray(copied)
    }
  }
  /** Returns whether the reader needs bytes that have not arrived. */
  #awaits(): boolean {
    return !this.#over && !this.#whole && this.#slices.length === 0 && this.#fits()
  }
  /**
   * Resumes the client until bytes have arrived, or until `SILENCE_MS` have passed without a byte.
   */
  async #receive({ later }: UploadTurns): Promise<void> {
    if (this.#flowing) this.#res.resume()
    else this.#start()
    this.#paused = false
    const cancel = later(SILENCE_MS, () => this.#wake?.())
    await this.#arrival()
    cancel()
    if (!this.#over && !this.#whole && !this.#paused) this.#pause()
  }
  #fits(): boolean {
    return this.#size <= this.#limit
  }
  #start(): void {
    // Resumes even when the body is complete, because otherwise the next request on the connection
    // is never read.
    if (!this.#over && !this.#flowing) this.#res.resume()
    this.#flowing = true
  }
  #arrival(): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake
    })
  }
  async #flow(enough: () => boolean): Promise<void> {
    this.#start()
    while (!this.#over && !enough()) await this.#arrival()
  }
  /**
   * Pauses the client. uWS starts its timeout for idle clients after the current callback returns,
   * so the client is paused again afterwards, which stops the timeout.
   */
  #pause(): void {
    this.#paused = true
    this.#res.pause()
    setImmediate(() => {
      if (!this.#over && this.#paused) this.#res.pause()
    })
  }
  #take(chunk: ArrayBuffer, last: boolean): void {
    this.#size += chunk.byteLength
    // A copy, because the chunk is invalid after this callback returns.
    if (!this.#dropping && this.#size <= this.#limit && chunk.byteLength > 0) {
      if (this.#pool) this.#keep(Buffer.from(chunk))
      else this.#chunks.push(Buffer.from(Buffer.from(chunk)))
      this.#unread += chunk.byteLength
    }
    if (last) this.#whole = true
    else if (this.#chunked && !this.#dropping && this.#unread > MAX_UNREAD_BYTES && !this.#paused)
      this.#pause()
    this.#wake?.()
  }
}
