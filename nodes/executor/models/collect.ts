/**
 * Assembles an answer, block by block, from its stream. A stream that ends without a finish reason
 * was cut off and yields no answer.
 */
import type { FinishReason, LanguageModelUsage, TextStreamPart, ToolSet } from 'ai'
import type { JsonObject } from '../../../protocol/common.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import { ExecutorFault } from '../faults.ts'
import type { Counts, Delta, GeneratedMessage, StopReason } from '../speech.ts'

type Part = TextStreamPart<ToolSet>
interface Block {
  readonly key: string
  readonly block: Record<string, unknown>
}

/** The arguments that models send instead of an empty object. */
const NO_ARGUMENTS: ReadonlySet<unknown> = new Set([null, '', 'null'])
/**
 * Returns the arguments of a call; undefined if they are not a JSON object. The library does not
 * parse the arguments of a call of an unknown tool if they are blank.
 */
const inputOf = (input: unknown): JsonObject | undefined => {
  if (isJsonObject(input)) return input
  return NO_ARGUMENTS.has(typeof input === 'string' ? input.trim() : input) ? {} : undefined
}
const stops: Readonly<Partial<Record<FinishReason, StopReason>>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  'content-filter': 'refusal',
}

const whole = (count: number): number => Math.max(0, Math.round(count) || 0)
/**
 * Converts the token counts of the AI SDK. `input_tokens` excludes tokens that a cache served or
 * stored. Counts that are 0 or that the provider does not report are omitted, except `input_tokens`
 * and `output_tokens`.
 */
function countsOf({
  inputTokens = 0,
  inputTokenDetails: { noCacheTokens, cacheReadTokens = 0, cacheWriteTokens = 0 },
  outputTokens = 0,
  outputTokenDetails: { reasoningTokens = 0 },
}: LanguageModelUsage): Counts {
  return {
    input_tokens: whole(noCacheTokens ?? inputTokens - cacheReadTokens - cacheWriteTokens),
    output_tokens: whole(outputTokens),
    ...(cacheReadTokens > 0 && { cache_read_input_tokens: whole(cacheReadTokens) }),
    ...(cacheWriteTokens > 0 && { cache_creation_input_tokens: whole(cacheWriteTokens) }),
    ...(reasoningTokens > 0 && { reasoning_tokens: whole(reasoningTokens) }),
  }
}

/**
 * Reads a stream to its end.
 * @param moved called for every part, because each part shows that the provider is alive.
 * @throws the error of the stream, or an ExecutorFault when the answer is invalid or truncated, or
 * the generation was stopped.
 */
export async function collect(
  stream: AsyncIterable<Part>,
  provider: string,
  model: string,
  show: (delta: Delta) => void,
  moved: () => void,
): Promise<GeneratedMessage> {
  const blocks: Block[] = []
  const open = (kind: string, id: string, begin: Record<string, unknown>) => {
    const key = `${kind} ${id}`
    const known = blocks.find((one) => one.key === key)
    if (known) return known.block
    blocks.push({ key, block: begin })
    return begin
  }
  /** Ignored if the answer reached its maximum length, because its last call is then cut off. */
  let fault: ExecutorFault | undefined
  let end:
    | {
        readonly reason: FinishReason
        readonly raw: string | undefined
        readonly usage: Counts
        readonly id: string
        readonly model: string
      }
    | undefined
  for await (const part of stream) {
    moved()
    switch (part.type) {
      case 'text-start':
        open('text', part.id, { type: 'text', text: '' })
        break
      case 'text-delta': {
        const block = open('text', part.id, { type: 'text', text: '' })
        block['text'] += part.text
        if (part.text !== '') show({ text: part.text })
        break
      }
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end': {
        const { itemId, reasoningEncryptedContent } = part.providerMetadata?.['openai'] ?? {}
        // OpenAI sends the summaries of one reasoning item as several parts.
        const id = typeof itemId === 'string' ? itemId : part.id
        const block = open('thinking', id, { type: 'thinking', thinking: '', provider })
        const { signature = reasoningEncryptedContent, redactedData } =
          part.providerMetadata?.['anthropic'] ?? {}
        if (typeof redactedData === 'string')
          Object.assign(block, { type: 'redacted_thinking', data: redactedData })
        if (typeof signature === 'string' && signature !== '') block['signature'] = signature
        const next = part.type === 'reasoning-start' && block['thinking'] !== '' ? '\n\n' : ''
        const more = part.type === 'reasoning-delta' ? part.text : next
        if (more !== '') {
          block['thinking'] += more
          show({ type: 'thinking', thinking: more })
        }
        break
      }
      case 'tool-call': {
        const input = inputOf(part.input)
        if (!input)
          fault ??= new ExecutorFault(
            'invalid_response',
            `The arguments of a call to ${part.toolName} are not a JSON object.`,
          )
        blocks.push({
          key: 'tool',
          block: {
            type: 'tool_use',
            id: part.toolCallId,
            name: part.toolName,
            input: input ?? {},
          },
        })
        break
      }
      case 'finish-step':
        end = {
          reason: part.finishReason,
          raw: part.rawFinishReason,
          usage: countsOf(part.usage),
          id: part.response.id,
          model: part.response.modelId,
        }
        break
      case 'error':
        throw part.error
      case 'abort':
        throw new ExecutorFault('stopped', 'The generation was stopped.')
    }
  }
  if (!end || end.reason === 'error' || (end.reason === 'other' && end.raw === undefined))
    throw new ExecutorFault('invalid_response', 'The response of the provider was truncated.')
  if (fault && end.reason !== 'length') throw fault
  const content = blocks
    .map(({ block }) => clean(block))
    .filter((block) => block['type'] !== 'text' || block['text'] !== '')
  const uses = content.some((block) => block['type'] === 'tool_use')
  const stop_reason = stops[end.reason] ?? 'end_turn'
  return {
    id: end.id || 'unnamed',
    model: end.model || model,
    content,
    stop_reason: uses && stop_reason === 'end_turn' ? 'tool_use' : stop_reason,
    usage: end.usage,
  }
}
/** Removes the field `thinking` from a redacted block, which has no thinking text. */
function clean(block: Record<string, unknown>): JsonObject {
  if (block['type'] !== 'redacted_thinking') return block
  const { thinking: _, ...rest } = block
  return rest
}
