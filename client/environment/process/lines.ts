/**
 * Splits the output of a program into lines as it arrives. Memory is bounded: a line that has not
 * ended yet is passed on in chunks.
 */
import { StringDecoder } from 'node:string_decoder'

/** Number of characters per chunk of a line that has not ended yet. */
const CHUNK_LENGTH = 8000

export class Lines {
  readonly #decoder = new StringDecoder('utf8')
  readonly #line: (text: string) => void
  #rest = ''

  /** @param line called with each line, without its line break. Empty lines are omitted. */
  constructor(line: (text: string) => void) {
    this.#line = line
  }
  add(chunk: Buffer): void {
    // Progress displays end their lines with a carriage return, so it is a line break too.
    const parts = (this.#rest + this.#decoder.write(chunk)).split(/\r\n|[\n\r]/)
    this.#rest = parts.pop() ?? ''
    for (const part of parts) this.#pass(part)
    while (this.#rest.length > CHUNK_LENGTH) {
      this.#pass(this.#rest.slice(0, CHUNK_LENGTH))
      this.#rest = this.#rest.slice(CHUNK_LENGTH)
    }
  }
  /** Passes on the rest of the output as the last line. */
  end(): void {
    this.#pass(this.#rest + this.#decoder.end())
    this.#rest = ''
  }
  #pass(text: string): void {
    if (text !== '') this.#line(text)
  }
}
