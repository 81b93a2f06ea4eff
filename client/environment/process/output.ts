/**
 * Captures an output stream of a command: its beginning and its end, in bounded memory.
 *
 * Invariants:
 * O1. At most twice the limit is kept in memory, whatever the stream contains.
 * O2. If the limit is at least twice `MAX_NOTICE_BYTES`, the text has at most `limit` bytes as
 *     UTF-8, and at most three times `limit` bytes as JSON.
 * O3. A UTF-8 character is never split, and the text reports the number of omitted bytes.
 */

/** Maximum size in bytes of the notice about omitted bytes. */
const MAX_NOTICE_BYTES = 64
/** Matches the notice about omitted bytes. */
export const OMISSION = /\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/
/** Number of chunks above which the chunks are joined. */
const MAX_CHUNKS = 256
/** Control characters except tab, line feed, carriage return and escape. */
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

export class Capture {
  readonly #limit: number
  readonly #headLimit: number
  #head: Buffer[] = []
  #headSize = 0
  #tail: Buffer[] = []
  #tailSize = 0
  #omitted: number

  /**
   * @param limit maximum number of bytes.
   * @param omitted number of bytes that an earlier capture of the stream omitted.
   */
  constructor(limit: number, omitted = 0) {
    this.#limit = limit
    this.#headLimit = Math.ceil(budgetOf(limit) / 2)
    this.#omitted = omitted
  }
  add(chunk: Uint8Array): void {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const free = this.#headLimit - this.#headSize
    if (free > 0) {
      const part = rest.subarray(0, free)
      this.#head.push(Buffer.from(part))
      this.#headSize += part.length
      rest = rest.subarray(part.length)
    }
    if (rest.length === 0) return
    const tailLimit = this.#limit - this.#headLimit
    if (rest.length > tailLimit) {
      this.#omitted += this.#tailSize + rest.length - tailLimit
      this.#tail = []
      this.#tailSize = 0
      rest = rest.subarray(rest.length - tailLimit)
    }
    this.#tail.push(Buffer.from(rest))
    this.#tailSize += rest.length
    if (this.#tailSize > 2 * tailLimit || this.#tail.length > MAX_CHUNKS) this.#compact(tailLimit)
  }
  text(): string {
    this.#compact(this.#limit - this.#headLimit)
    let head = Buffer.concat(this.#head)
    let tail = this.#tail[0] ?? Buffer.alloc(0)
    if (this.#omitted === 0) return this.#clean(Buffer.concat([head, tail]), 0)
    const keep = Math.max(0, budgetOf(this.#limit) - this.#headLimit)
    const whole = head.length + tail.length
    head = head.subarray(0, endOfCharacter(head))
    tail = tail.subarray(startOfCharacter(tail, Math.max(0, tail.length - keep)))
    const omitted = this.#omitted + whole - head.length - tail.length
    const notice = Buffer.from(`\n[... ${omitted} bytes left out ...]\n`)
    return this.#clean(Buffer.concat([head, notice, tail]), omitted)
  }

  /**
   * Decodes bytes, and replaces control characters. If replacement characters make the text too
   * long, it is shortened again.
   */
  #clean(bytes: Buffer, omitted: number): string {
    let text = decoder.decode(bytes).replace(CONTROLS, '\ufffd')
    if (Buffer.byteLength(JSON.stringify(text)) > 3 * this.#limit)
      text = text.replaceAll('\x1b', '\ufffd')
    const cleaned = Buffer.from(text)
    if (cleaned.length <= Math.max(this.#limit, 2 * MAX_NOTICE_BYTES)) return text
    const shorter = new Capture(this.#limit, omitted)
    shorter.add(cleaned)
    return shorter.text()
  }
  #compact(limit: number): void {
    if (this.#tailSize <= limit && this.#tail.length <= 1) return
    const all = Buffer.concat(this.#tail)
    const kept = all.subarray(Math.max(0, all.length - limit))
    this.#omitted += all.length - kept.length
    this.#tail = [Buffer.from(kept)]
    this.#tailSize = kept.length
  }
}
/** Returns the number of bytes of the stream that fit into the limit together with the notice. */
const budgetOf = (limit: number): number =>
  limit >= 2 * MAX_NOTICE_BYTES ? limit - MAX_NOTICE_BYTES : Math.ceil(limit / 2)

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80
/** Returns the length of the bytes without an incomplete character at the end. */
export function endOfCharacter(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
/** Returns the position of the first character that begins at or after `from`. */
function startOfCharacter(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length && at < from + 3 && isContinuation(bytes[at] ?? 0)) at++
  return at
}
