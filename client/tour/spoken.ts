/** What happens in a session as lines for a person: each thing once, when it is known as a whole. */
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import type { Transcript } from '../transcript.ts'

const MAX_LINE_LENGTH = 130
const clipped = (text: string): string =>
  text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH - 1)}…` : text

export class Lines {
  readonly #say: (line: string) => void
  readonly #said = new Map<string, string>()

  /** @param say told every line. */
  constructor(say: (line: string) => void) {
    this.#say = say
  }
  /** Tell what is new in a transcript. */
  show(transcript: Transcript): void {
    for (const { id, status } of transcript.turns.values())
      if (status === 'running') this.#once(`turn ${id}`, 'turn', status)
    for (const { id, role, status, content } of transcript.messages()) {
      // A piece of text is followed by more of it; what comes behind it, or the end of its message, makes it whole.
      for (const [index, block] of content.entries())
        if (status === 'final' || index < content.length - 1 || block.type === 'tool_use')
          this.#block(`${id} ${index}`, role, block)
    }
    for (const { id, status, title, outcome } of transcript.interactions.values())
      this.#once(
        `question ${id}`,
        status === 'pending' ? 'asks' : 'answered',
        status === 'pending'
          ? title
          : status === 'completed'
            ? `${title}: ${outcome === true ? 'yes' : JSON.stringify(outcome)}`
            : `${title}: ${status}`,
      )
    for (const { id, status } of transcript.turns.values()) this.#once(`turn ${id}`, 'turn', status)
  }

  #block(key: string, role: string, block: Block): void {
    switch (block.type) {
      case 'text':
        return void this.#once(key, role === 'user' ? 'asked' : 'says', block.text)
      case 'thinking':
        return void this.#once(key, 'thinks', block.thinking)
      case 'tool_use': {
        const { name, input } = block.resolved_action ?? block
        // What is only to be done, or may be done now, says nothing yet.
        if (block.status === undefined || block.status === 'pending') return
        return void this.#once(key, 'tool', `${name} ${block.status}`, JSON.stringify(input))
      }
      case 'tool_result':
        return void this.#once(
          key,
          'result',
          typeof block.content === 'string' ? block.content : JSON.stringify(block.content),
        )
    }
  }
  /** Say it, unless it was the last thing said of this. @param details said the first time only. */
  #once(key: string, what: string, text: string, details?: string): void {
    const known = this.#said.get(key)
    if (known === text) return
    this.#said.set(key, text)
    this.#say(
      `${what.padEnd(9)}  ${clipped((known === undefined && details !== undefined ? `${text} ${details}` : text).replaceAll(/\s+/g, ' '))}`,
    )
  }
}
