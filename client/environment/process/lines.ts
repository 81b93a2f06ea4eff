/**
 * Splits the output of a program into lines as it arrives. Memory is bounded: a line that has not
 * ended yet is passed on in chunks.
 */
import { StringDecoder } from 'node:string_decoder'

/** Number of characters per chunk of a line that has not ended yet. */
const CHUNK_LENGTH = 8000
/** Maximum length of a credential that is recognized although it crosses the end of a chunk. */
const MAX_CREDENTIAL_LENGTH = 1024

export class Lines {
  readonly #decoder = new StringDecoder('utf8')
  readonly #line: (text: string) => void
  readonly #redact: (text: string) => string
  #rest = ''

  /**
   * @param line called with each line, without its line break. Empty lines are omitted.
   * @param redact removes credentials from a line before it is divided into chunks.
   */
  constructor(line: (text: string) => void, redact: (text: string) => string = (text) => text) {
    this.#line = line
    this.#redact = redact
  }
  add(chunk: Buffer): void {
    // Progress displays end their lines with a carriage return, so it is a line break too.
    const parts = (this.#rest + this.#decoder.write(chunk)).split(/\r\n|[\n\r]/)
    this.#rest = parts.pop() ?? ''
    for (const part of parts) this.#pass(part)
    this.#passChunks(MAX_CREDENTIAL_LENGTH)
  }
  /** Passes on the rest of the output as the last line. */
  end(): void {
    this.#rest += this.#decoder.end()
    this.#passChunks(0)
    this.#pass(this.#rest)
    this.#rest = ''
  }
  /** @param kept number of characters that are kept, because a credential may begin in them. */
  #passChunks(kept: number): void {
    if (this.#rest.length <= CHUNK_LENGTH + kept) return
    this.#rest = this.#redact(this.#rest)
    while (this.#rest.length > CHUNK_LENGTH + kept) {
      this.#pass(this.#rest.slice(0, CHUNK_LENGTH))
      this.#rest = this.#rest.slice(CHUNK_LENGTH)
    }
  }
  #pass(text: string): void {
    if (text !== '') this.#line(text)
  }
}
