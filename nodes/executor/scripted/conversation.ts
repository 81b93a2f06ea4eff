/**
 * The facts about a conversation that a script can test: the last text from a person, the position
 * in the turn, and the tool results. They depend only on the request, so a repeated attempt reads
 * the same facts.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'

/** A result of a tool call. */
export interface Result {
  /** The tool name that the model used. */
  readonly tool: string
  /**
   * The argument `command` of the call, if it is a string. In a call to the router of a tool group,
   * `command` names the tool.
   */
  readonly command?: string
  readonly text: string
  readonly error: boolean
}
export interface Facts {
  /** The last text from a person. */
  readonly text: string
  /** The number of messages from people so far. */
  readonly turn: number
  /**
   * The number of answers since the last message from a person, including the one being computed.
   */
  readonly step: number
  /** The tool results in the last message. */
  readonly results: readonly Result[]
}

const string = (value: unknown): string => (typeof value === 'string' ? value : '')
/**
 * Matches a reminder that the service added for the model. A reminder does not count as text
 * from a person, unless it contains a person's direction (`user-direction`).
 */
const reminder = /^<reminder name="([^"]*)"[^>]*>\n([\s\S]*)\n<\/reminder>$/
const contentOf = ({ content }: { readonly content?: unknown }): string =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? (content as JsonObject[]).map((part) => string(part['text'])).join('')
      : ''

/** Reads the facts of a conversation. */
export function factsOf(messages: readonly ModelMessage[]): Facts {
  const uses = new Map<string, Pick<Result, 'tool' | 'command'>>()
  let [text, turn, step] = ['', 0, 1]
  for (const { role, content } of messages) {
    if (role === 'assistant') {
      step++
      for (const block of content) {
        if (block['type'] !== 'tool_use') continue
        const command = (block['input'] as JsonObject | undefined)?.['command']
        uses.set(string(block['id']), {
          tool: string(block['name']),
          ...(typeof command === 'string' && { command }),
        })
      }
      continue
    }
    const said = content
      .filter((block) => block['type'] === 'text')
      .map((block) => string(block['text']))
    const words = said.filter((one) => !reminder.test(one))
    const directions = said.flatMap((one) => {
      const [, name, inner = ''] = reminder.exec(one) ?? []
      return name === 'user-direction' ? [inner] : []
    })
    if (words.length > 0) [text, turn, step] = [words.join('\n'), turn + 1, 1]
    if (directions.length > 0) text = directions.join('\n')
  }
  const last = messages.at(-1)?.content ?? []
  const results = last
    .filter((block) => block['type'] === 'tool_result')
    .map(
      (block): Result => ({
        ...(uses.get(string(block['tool_use_id'])) ?? { tool: '' }),
        text: contentOf(block as { content?: unknown }),
        error: block['is_error'] === true,
      }),
    )
  return { text, turn, step, results }
}
