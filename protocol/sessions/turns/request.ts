/**
 * Requests to a model: the conversion of session rows to messages, and the validation of the
 * model's answer. Executors and workers call the providers.
 */

import type { JsonObject } from '../../common.ts'
import { WORKSPACE } from '../../environments/actions.ts'
import { isJsonObject } from '../../rules/json-object.ts'
import type { TranscriptMessage, Usage } from '../schema.ts'
import type { Block } from './blocks.ts'
import type { TurnDefinition } from './definition.ts'
import type { ShownTool } from './tools.ts'

export interface ModelMessage {
  readonly role: 'user' | 'assistant'
  readonly content: readonly JsonObject[]
}
/**
 * The content of a generation job. In addition, a field that is named after the brand contains the
 * ids of the organization and the project.
 */
export interface GenerationSpec {
  readonly route: JsonObject
  readonly request: JsonObject
}

/**
 * Converts a block to its form in a request to a model, without the fields that are only for
 * clients.
 */
function toModel(block: Block): JsonObject {
  const { original, ...open } = block as Block & { original?: JsonObject }
  if (original) return original
  if (open.type === 'tool_use') {
    const { status: _, progress: __, resolved_action: ___, ...rest } = open
    return rest
  }
  return open.type === 'reminder'
    ? {
        type: 'text',
        text: `<reminder name="${open.name}" tier="${open.tier}">\n${open.content}\n</reminder>`,
      }
    : open
}
const SUMMARY = 'Summary of the conversation so far, in place of its older part:'
function spoken({ role, content, entry_type }: TranscriptMessage): ModelMessage {
  const blocks = content.map(toModel)
  return {
    role: role === 'assistant' ? 'assistant' : 'user',
    content: entry_type === 'compaction' ? [{ type: 'text', text: SUMMARY }, ...blocks] : blocks,
  }
}

/**
 * Returns whether a block contains nothing that a model can answer. Providers refuse messages that
 * consist only of thinking or blank texts.
 */
const isSilent = (block: Block): boolean =>
  block.type === 'thinking' ||
  (block.type === 'text' && block.text.trim() === '' && !('original' in block))
/**
 * Converts rows, given in the order of the conversation, to messages. Adjacent rows of the same
 * role become one message. The first message always has the role `user`, as models require. Rows
 * without any text, file or tool call are omitted.
 */
export function messagesOf(rows: readonly TranscriptMessage[]): ModelMessage[] {
  const messages: ModelMessage[] = []
  for (const row of rows) {
    if (row.content.every(isSilent)) continue
    const message = spoken(row)
    const last = messages.at(-1)
    if (last?.role === message.role)
      messages[messages.length - 1] = {
        role: last.role,
        content: [...last.content, ...message.content],
      }
    else messages.push(message)
  }
  return messages[0]?.role === 'assistant'
    ? [
        {
          role: 'user',
          content: [{ type: 'text', text: 'The conversation begins with what you said.' }],
        },
        ...messages,
      ]
    : messages
}
/**
 * Returns the fault of a conversation, or undefined if it has none. Each tool use must have a
 * result in the next message, and the last message must have the role `user`. Adjacent rows of the
 * same role count as one message, as in `messagesOf`.
 */
export function conversationFault(rows: readonly TranscriptMessage[]): string | undefined {
  let last: ModelMessage['role'] | undefined
  /** Ids of the tool uses in the newest assistant message that have no result so far. */
  const left = new Set<string>()
  for (const { role: by, content } of rows) {
    if (content.every(isSilent)) continue
    const role = by === 'assistant' ? 'assistant' : 'user'
    if (role === 'assistant' && last === 'user' && left.size > 0) break
    for (const block of content) {
      if (block.type === 'tool_use') left.add(block.id)
      else if (block.type === 'tool_result') left.delete(block.tool_use_id)
    }
    last = role
  }
  const [missing] = left
  if (missing !== undefined) return `the tool use ${missing} has no result`
  return last === 'user' ? undefined : 'the agent received no message'
}

/**
 * Returns the content of a generation job.
 * @param brand name of the field that contains the ids of the organization and the project.
 */
export function generationSpec(
  definition: TurnDefinition,
  brand: string,
  messages: readonly ModelMessage[],
  tools: readonly ShownTool[],
): GenerationSpec {
  const { route, instructions, memory, tables, environment, effort, max_tokens, scope } = definition
  const system = [instructions, environment && WORKSPACE, memory, tables]
    .filter((text) => text !== undefined && text !== '')
    .map((text) => ({ type: 'text', text }))
  return {
    route: { ...route },
    [brand]: { ...scope },
    request: {
      model: route.model,
      ...(system.length > 0 && { system }),
      messages,
      ...(max_tokens !== undefined && { max_tokens }),
      ...(effort !== undefined && { reasoning_effort: effort }),
      ...(tools.length > 0 && { tools, tool_choice: { type: 'auto' } }),
    },
  } as GenerationSpec
}

/** The parts of a model's answer that a session uses. */
export interface Answer {
  readonly content: readonly Block[]
  readonly model: string
  readonly stop_reason: string
  readonly usage: Usage
}
const known: Readonly<Record<string, (block: JsonObject) => boolean>> = {
  text: ({ text }) => typeof text === 'string',
  thinking: ({ thinking }) => typeof thinking === 'string',
  tool_use: ({ id, name, input }) =>
    typeof id === 'string' && id !== '' && typeof name === 'string' && isJsonObject(input),
  image: () => true,
  document: ({ source }) => isJsonObject(source),
}
/**
 * Wraps a block that only its provider understands in an empty block of a known type, so that it
 * can be sent back to the provider unchanged.
 */
const foreign = (original: JsonObject): Block =>
  Object.assign(
    original['type'] === 'redacted_thinking'
      ? { type: 'thinking' as const, thinking: '' }
      : { type: 'text' as const, text: '' },
    { original },
  )
const owned: ReadonlySet<string> = new Set(['tool_result', 'reminder'])
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const countOf = (value: unknown): number => (isCount(value) ? (value as number) : 0)
/**
 * The counts that a usage object must contain, and those that it may omit. Some models return null for
 * optional counts that they do not measure.
 */
const needed = ['input_tokens', 'output_tokens'] as const
const optional = [
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'reasoning_tokens',
] as const
function usageFault(usage: unknown): string | undefined {
  if (!isJsonObject(usage)) return 'llm_response.usage must be an object'
  const odd =
    needed.find((name) => !isCount(usage[name])) ??
    optional.find((name) => !isCount(usage[name] ?? 0))
  return odd === undefined
    ? undefined
    : `llm_response.usage.${odd} must be a whole number that is not negative`
}

/**
 * Reads the result of a generation, `{llm_response}` with an assistant message. If the result is
 * invalid, returns the reason as a string.
 */
export function readAnswer(result: JsonObject | undefined): Answer | string {
  const message = result?.['llm_response']
  if (!isJsonObject(message)) return 'the result has no llm_response'
  const { type, role, content, model, stop_reason, usage } = message
  if (type !== 'message') return 'llm_response.type must be message'
  if (role !== 'assistant') return 'llm_response.role must be assistant'
  const blank = (['id', 'model', 'stop_reason'] as const).find(
    (name) => typeof message[name] !== 'string' || message[name] === '',
  )
  if (blank) return `llm_response.${blank} must be a text`
  if (!Array.isArray(content)) return 'llm_response.content must be a list of blocks'
  const fault = usageFault(usage)
  if (fault !== undefined) return fault
  const odd = content.findIndex(
    (block) =>
      !isJsonObject(block) ||
      typeof block['type'] !== 'string' ||
      owned.has(block['type']) ||
      known[block['type']]?.(block) === false,
  )
  if (odd >= 0) return `llm_response.content[${odd}] is not a block type that a model can return`
  const blocks = (content as readonly JsonObject[]).map((block) =>
    Object.hasOwn(known, String(block['type'])) ? (block as Block) : foreign(block),
  )
  return {
    content: blocks,
    model: String(model),
    stop_reason: String(stop_reason),
    usage: usageOf(usage as JsonObject),
  }
}
function usageOf(usage: JsonObject): Usage {
  const details = isJsonObject(usage['output_tokens_details']) ? usage['output_tokens_details'] : {}
  const counts = {
    cache_read_input_tokens: countOf(usage['cache_read_input_tokens']),
    cache_creation_input_tokens: countOf(usage['cache_creation_input_tokens']),
    reasoning_tokens: countOf(usage['reasoning_tokens'] ?? details['reasoning_tokens']),
  }
  return {
    input_tokens: countOf(usage['input_tokens']),
    output_tokens: countOf(usage['output_tokens']),
    ...nonzero(counts),
    calls: 1,
  }
}
const nonzero = (counts: Readonly<Record<string, number>>): Usage =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
/** Returns the sum of two usages. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum = (name: keyof Usage): number => (a[name] ?? 0) + (b[name] ?? 0)
  return {
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    ...nonzero({
      cache_read_input_tokens: sum('cache_read_input_tokens'),
      cache_creation_input_tokens: sum('cache_creation_input_tokens'),
      reasoning_tokens: sum('reasoning_tokens'),
      calls: sum('calls'),
    }),
  }
}
/**
 * Estimates the number of tokens in rows for which no model has reported usage: a quarter of the
 * number of characters.
 */
export const tokensOf = (characters: number): number => Math.ceil(characters / 4)
