/**
 * Parses a form with a file (RFC 7578) while its body arrives in chunks of any size. It accepts the
 * same forms as `../multipart.ts`, which explains why no package is used.
 *
 * Invariants:
 * F1. The parts do not depend on where the body is split into chunks.
 * F2. Between two chunks, the parser keeps at most the headers of one part or the start of a
 *     possible delimiter, never the content of a part.
 */
import { headOf, MULTIPART_LIMITS, type PartHead } from '../multipart.ts'

/** An element of a form: the headers of a part, some of its bytes, or its end. */
export type FormEvent =
  | { readonly kind: 'part'; readonly head: PartHead }
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'end' }

const BLANK_LINE = '\r\n\r\n'
/** Length in bytes of the line break before a delimiter or after the headers. */
const BREAK_BYTES = 2

export class FormParser {
  readonly #delimiter: Buffer
  /**
   * The bytes that are not interpreted yet. A line break is put in front of the body, because the
   * parser expects a line break before every delimiter.
   */
  #rest: Buffer = Buffer.from('\r\n')
  #state: 'preamble' | 'delimiter' | 'head' | 'content' | 'closed' = 'preamble'
  /** Whether the line break that ends the headers is still at the start of the content. */
  #fresh = false
  #parts = 0

  /** @param boundary the boundary in the Content-Type header. */
  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /**
   * Parses the next chunk. Returns its events in order, or a text that describes the error, such as
   * `is truncated`. No chunk may follow an error. The bytes of events share memory with the chunk,
   * so they are valid until the chunk's buffer is reused.
   */
  push(chunk: Buffer): readonly FormEvent[] | string {
    const events: FormEvent[] = []
    if (this.#state === 'closed') return events
    this.#rest = this.#joined(chunk, events)
    for (;;) {
      const went = this.#step(events)
      if (typeof went === 'string') return went
      if (went) continue
      // A copy, because the rest is used after the caller has overwritten the chunk.
      this.#rest = Buffer.from(this.#rest)
      return events
    }
  }
  /** Ends the body. Returns a text that describes the error, or undefined. */
  end(): string | undefined {
    if (this.#state === 'closed') return undefined
    if (this.#state === 'preamble') return 'has no part'
    return this.#state === 'head' ? 'has a part without a name' : 'is truncated'
  }

  /**
   * Returns the uninterpreted bytes followed by the next chunk. Usually, these bytes are content
   * and do not begin a delimiter. Then they are added to `events`, and only the chunk is returned,
   * without being copied.
   */
  #joined(chunk: Buffer, events: FormEvent[]): Buffer {
    const rest = this.#rest
    if (rest.length === 0) return chunk
    if (this.#state === 'content' && !this.#fresh && chunk.length >= this.#delimiter.length) {
      const seam = Buffer.concat([rest, chunk.subarray(0, this.#delimiter.length - 1)])
      if (seam.indexOf(this.#delimiter) < 0) {
        events.push({ kind: 'data', bytes: rest })
        return chunk
      }
    }
    return Buffer.concat([rest, chunk])
  }
  /** Interprets one element. Returns false when more bytes are needed. */
  #step(events: FormEvent[]): boolean | string {
    switch (this.#state) {
      case 'preamble':
        return this.#preamble()
      case 'delimiter':
        return this.#afterDelimiter()
      case 'head':
        return this.#head(events)
      case 'content':
        return this.#content(events)
      case 'closed':
        return false
    }
  }
  #preamble(): boolean {
    const found = this.#rest.indexOf(this.#delimiter)
    if (found < 0) {
      this.#drop(this.#rest.length - this.#delimiter.length + 1)
      return false
    }
    this.#drop(found + this.#delimiter.length)
    this.#state = 'delimiter'
    return true
  }
  #afterDelimiter(): boolean | string {
    const rest = this.#rest
    if (rest.length < BREAK_BYTES) return false
    if (rest.toString('latin1', 0, 2) === '--') {
      this.#state = 'closed'
      this.#rest = Buffer.alloc(0)
      return true
    }
    const end = rest.indexOf('\r\n')
    if (end < 0 && rest.length <= MULTIPART_LIMITS.head) return false
    if (end < 0 || end > MULTIPART_LIMITS.head || rest.toString('latin1', 0, end).trim() !== '')
      return 'is truncated'
    this.#drop(end)
    this.#state = 'head'
    return true
  }
  #head(events: FormEvent[]): boolean | string {
    const end = this.#rest.indexOf(BLANK_LINE)
    if (end < 0 && this.#rest.length < MULTIPART_LIMITS.head + BLANK_LINE.length) return false
    if (end < 0 || end > MULTIPART_LIMITS.head) return 'has a part without a name'
    const head = headOf(this.#rest.toString('utf8', BREAK_BYTES, end))
    if (!head) return 'has a part without a name'
    if (++this.#parts > MULTIPART_LIMITS.parts)
      return `has more than ${MULTIPART_LIMITS.parts} parts`
    events.push({ kind: 'part', head })
    this.#drop(end + BREAK_BYTES)
    this.#state = 'content'
    this.#fresh = true
    return true
  }
  #content(events: FormEvent[]): boolean {
    const found = this.#rest.indexOf(this.#delimiter)
    const end = found < 0 ? this.#rest.length - this.#delimiter.length + 1 : found
    // The line break after the headers also begins the delimiter if the content is empty. It is
    // therefore still in the buffer, and is skipped here.
    const start = this.#fresh ? BREAK_BYTES : 0
    if (end > start) events.push({ kind: 'data', bytes: this.#rest.subarray(start, end) })
    if (end >= start) this.#fresh = false
    if (found < 0) {
      if (end >= start) this.#drop(end)
      return false
    }
    events.push({ kind: 'end' })
    this.#drop(found + this.#delimiter.length)
    this.#state = 'delimiter'
    this.#fresh = false
    return true
  }
  #drop(bytes: number): void {
    if (bytes > 0) this.#rest = this.#rest.subarray(bytes)
  }
}
