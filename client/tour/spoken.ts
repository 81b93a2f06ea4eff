/**
 * Prints the items of a session as lines of text. Texts and results are printed once, when they are
 * complete. Turns, questions and tool uses are printed whenever their status changes.
 */
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import type { Transcript } from '../transcript.ts'

/** Maximum length of a printed line in characters. */
const MAX_LINE_LENGTH = 130
const clipped = (text: string): string =>
  text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH - 1)}…` : text

export class Lines {
  readonly #say: (line: string) => void
  readonly #said = new Map<string, string>()

  /** @param say called with every line. */
  constructor(say: (line: string) => void) {
    this.#say = say
  }
  /** Prints the new and changed items of a transcript. */
  show(transcript: Transcript): void {
    for (const { id, status } of transcript.turns.values())
      if (status === 'running') this.#once(`turn ${id}`, 'turn', status)
    for (const { id, role, status, content } of transcript.messages()) {
      // A text block may still grow. It is complete once another block follows it, or its message
      // is final.
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
  /**
   * Prints a line, unless the previous line for this key had the same text.
   * @param details appended only to the first line for this key.
   */
  #once(key: string, what: string, text: string, details?: string): void {
    const known = this.#said.get(key)
    if (known === text) return
    this.#said.set(key, text)
    this.#say(
      `${what.padEnd(9)}  ` +
        clipped(
          (known === undefined && details !== undefined ? `${text} ${details}` : text).replaceAll(
            /\s+/g,
            ' ',
          ),
        ),
    )
  }
}
