/**
 * Fits a request to the context of its model. The number of tokens of a text is not known before
 * the provider counts them, so it is estimated from the number of characters. The stored rows of
 * the session do not change.
 */
import { beginningOf } from '../../../actors/sessions/history/shorten.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'
import type { ModelRequest } from '../speech.ts'

/**
 * Number of characters that a token has at least. Most texts have three or more. Dense texts, such
 * as numbers and some scripts, have about one.
 */
const CHARACTERS = { usual: 3, dense: 1 } as const
/** Share of the context that is reserved for the answer, unless the request sets a maximum. */
const RESERVED = 1 / 8
/** Maximum share of the context that is reserved for the answer. */
const MAX_RESERVED = 1 / 2
/** Minimum number of characters to which a text is shortened. */
const MIN_LENGTH = 200

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Returns the text of a tool result. */
function resultText({ content }: JsonObject): string {
  if (!Array.isArray(content)) return text(content)
  return content.map((part) => (isJsonObject(part) ? text(part['text']) : '')).join('')
}
/**
 * Returns the text of a block that may be shortened; undefined for other blocks.
 * @param all whether texts of participants and documents may be shortened too.
 */
function shortenable(block: JsonObject, all: boolean): string | undefined {
  const { type, source } = block
  if (type === 'tool_result') return resultText(block)
  if (!all) return undefined
  if (type === 'text') return text(block['text'])
  return type === 'document' && isJsonObject(source) && source['type'] === 'text'
    ? text(source['data'])
    : undefined
}
function shortened(block: JsonObject, value: string): JsonObject {
  if (block['type'] === 'tool_result') return { ...block, content: value }
  return block['type'] === 'text'
    ? { ...block, text: value }
    : { ...block, source: { ...(block['source'] as JsonObject), data: value } }
}
/** Returns the number of characters of a block. Files that are not text count as 0. */
function sizeOf(block: JsonObject): number {
  const known = shortenable(block, true)
  if (known !== undefined) return known.length
  return block['type'] === 'image' || block['type'] === 'document'
    ? 0
    : JSON.stringify(block).length
}
const sizeOfAll = (messages: readonly ModelMessage[]): number =>
  messages.reduce((sum, { content }) => content.reduce((all, one) => all + sizeOf(one), sum), 0)

/** Shortens texts, beginning with the oldest, until at most `limit` characters are left. */
function shorten(
  messages: readonly ModelMessage[],
  limit: number,
  all: boolean,
): readonly ModelMessage[] {
  const lengths = messages.map(({ content }) =>
    content.map((block) => shortenable(block, all)?.length ?? 0),
  )
  let older = lengths.flat().reduce((sum, length) => sum + length, 0)
  let left = limit - (sizeOfAll(messages) - older)
  return messages
    .toReversed()
    .map(({ role, content }) => ({
      role,
      content: content
        .toReversed()
        .map((block) => {
          const value = shortenable(block, all)
          if (value === undefined) return block
          older -= value.length
          // A text leaves half of the rest to older texts, or all that these need.
          const share = Math.max(MIN_LENGTH, Math.floor(left / 2), left - older)
          left -= Math.min(value.length, share)
          return value.length > share ? shortened(block, beginningOf(value, share)) : block
        })
        .toReversed(),
    }))
    .toReversed()
}
/**
 * Omits the oldest messages while there are more than `limit` characters. The first message that is
 * kept has the role `user` and no results of tools.
 */
function newest(messages: readonly ModelMessage[], limit: number): readonly ModelMessage[] {
  let from = 0
  let size = sizeOfAll(messages)
  for (const [index, message] of messages.entries()) {
    const { role, content } = message
    if (index > 0 && role === 'user' && content.every(({ type }) => type !== 'tool_result'))
      from = index
    if (from === index && size <= limit) break
    size -= sizeOfAll([message])
  }
  const [first, ...rest] = messages.slice(from)
  if (!first || from === 0) return messages
  const note = { type: 'text', text: `[${from} earlier messages were left out]` }
  return [{ role: first.role, content: [note, ...first.content] }, ...rest]
}

/**
 * Returns a request that is expected to fit into the context of its model. Old and large tool
 * results are shortened first. Returns the same object if nothing has to be shortened.
 * @param tokens size of the context in tokens.
 * @param texts `dense` after the provider has refused the request, because each character may be a
 * token. All texts are then shortened, and the oldest messages are omitted if this is not enough.
 */
export function fitRequest(
  request: ModelRequest,
  tokens: number,
  texts: keyof typeof CHARACTERS,
): ModelRequest {
  const { system = [], tools = [], messages, max_tokens = tokens * RESERVED } = request
  const limit =
    (tokens - Math.min(max_tokens, tokens * MAX_RESERVED)) * CHARACTERS[texts] -
    JSON.stringify([system, tools]).length
  if (sizeOfAll(messages) <= limit) return request
  const isDense = texts === 'dense'
  const fitting = shorten(messages, limit, isDense)
  return { ...request, messages: isDense ? newest(fitting, limit) : fitting }
}
