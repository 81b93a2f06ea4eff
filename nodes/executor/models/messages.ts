/**
 * Converts the messages of a request to the format of the `ai` library. A file whose content is not
 * available is replaced by a short text. Thinking is sent only to the provider that generated it,
 * because other providers reject its signature. The signature of a thinking block of OpenAI is its
 * encrypted reasoning.
 */
import type { AssistantContent, ModelMessage, UserContent } from 'ai'
import type { JsonObject } from '../../../protocol/common.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import type { ModelMessage as Said } from '../../../protocol/sessions/turns/request.ts'
import type { ProviderAccess } from '../../models.ts'

type AssistantPart = Exclude<AssistantContent, string>[number]
type UserPart = Exclude<UserContent, string>[number]
type Result = Extract<
  Extract<ModelMessage, { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const object = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

type Access = Pick<ProviderAccess, 'provider' | 'kind'>
const isThinking = ({ type }: JsonObject): boolean =>
  type === 'thinking' || type === 'redacted_thinking'

/**
 * Returns the messages without the thinking that the provider would not use: thinking of other
 * providers, and for OpenAI reasoning that is not encrypted, or that precedes the last message of a
 * participant. OpenAI uses reasoning between the tool calls of one turn only, and refuses it after a
 * change to the key of another organization.
 */
export function withUsableThinking(
  messages: readonly Said[],
  { provider, kind }: Access,
): readonly Said[] {
  const asked = messages.findLastIndex(
    ({ role, content }) => role === 'user' && content.every(({ type }) => type !== 'tool_result'),
  )
  const isUsable = (block: JsonObject, index: number): boolean =>
    block['provider'] === provider &&
    (kind !== 'openai' || (index > asked && text(block['signature']) !== ''))
  return messages.map((message, index) =>
    message.role !== 'assistant' || !message.content.some(isThinking)
      ? message
      : {
          ...message,
          content: message.content.filter((block) => !isThinking(block) || isUsable(block, index)),
        },
  )
}

/** The ids of tool calls in the form of a provider, and its kind. */
interface Dialect {
  readonly kind: ProviderAccess['kind']
  readonly idOf: (id: unknown) => string
}
/**
 * Returns the converted messages.
 * @param access the provider that receives the messages. Only thinking that it uses is included.
 */
export function toMessages(given: readonly Said[], access: Access): ModelMessage[] {
  const { kind } = access
  const messages = withUsableThinking(given, access)
  // Other providers use ids with characters that Anthropic refuses, such as `functions.read:0`.
  const idOf = (id: unknown): string =>
    kind === 'anthropic' ? text(id).replaceAll(/[^A-Za-z0-9_-]/g, '_') : text(id)
  const dialect: Dialect = { kind, idOf }
  const tools = new Map<string, string>()
  return messages.flatMap(({ role, content }): ModelMessage[] => {
    if (role === 'assistant') {
      for (const block of content)
        if (block['type'] === 'tool_use') tools.set(text(block['id']), text(block['name']))
      const parts = content.flatMap((block) => assistantPart(block, dialect))
      return parts.length > 0 ? [{ role, content: parts }] : []
    }
    const results = content
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => resultOf(block, tools, dialect))
    const rest = content.filter((block) => block['type'] !== 'tool_result').flatMap(userPart)
    return [
      ...(results.length > 0 ? [{ role: 'tool' as const, content: results }] : []),
      ...(rest.length > 0 ? [{ role: 'user' as const, content: rest }] : []),
    ]
  })
}

function assistantPart(block: JsonObject, { kind, idOf }: Dialect): AssistantPart[] {
  const { type } = block
  if (type === 'text')
    return text(block['text']).trim() === '' ? [] : [{ type, text: text(block['text']) }]
  if (type === 'tool_use')
    return [
      {
        type: 'tool-call',
        toolCallId: idOf(block['id']),
        toolName: text(block['name']),
        input: block['input'] ?? {},
      },
    ]
  const signature = text(block['signature'])
  const providerOptions =
    kind === 'openai'
      ? { openai: { reasoningEncryptedContent: signature } }
      : { anthropic: { signature } }
  if (type === 'thinking')
    return [
      {
        type: 'reasoning',
        text: text(block['thinking']),
        ...(signature !== '' && { providerOptions }),
      },
    ]
  return type === 'redacted_thinking'
    ? [
        {
          type: 'reasoning',
          text: '',
          providerOptions: { anthropic: { redactedData: text(block['data']) } },
        },
      ]
    : []
}

/** Converts a tool result to text, which every provider accepts. */
function resultOf(
  block: JsonObject,
  tools: ReadonlyMap<string, string>,
  { idOf }: Dialect,
): Result {
  const { content, is_error } = block
  const id = text(block['tool_use_id'])
  const value =
    typeof content === 'string'
      ? content
      : Array.isArray(content)
        ? content.map((part) => text(object(part)['text'])).join('')
        : ''
  return {
    type: 'tool-result',
    toolCallId: idOf(id),
    toolName: tools.get(id) ?? 'tool',
    output: { type: is_error === true ? 'error-text' : 'text', value },
  }
}

function userPart(block: JsonObject): UserPart[] {
  const { type } = block
  if (type === 'text')
    return text(block['text']).trim() === '' ? [] : [{ type, text: text(block['text']) }]
  if (type !== 'image' && type !== 'document') return []
  const source = object(block['source'])
  const title = text(block['title']) || type
  const mediaType =
    text(source['media_type']) ||
    text(block['media_type']) ||
    (type === 'image' ? 'image/png' : 'application/pdf')
  if (source['type'] === 'text' || (source['type'] === 'base64' && mediaType.startsWith('text/'))) {
    const data = text(source['data'])
    return [
      {
        type: 'text',
        text: `${title}:\n${source['type'] === 'text' ? data : Buffer.from(data, 'base64').toString('utf8')}`,
      },
    ]
  }
  const data =
    source['type'] === 'base64'
      ? text(source['data'])
      : source['type'] === 'url' && URL.canParse(text(source['url']))
        ? new URL(text(source['url']))
        : undefined
  if (data === undefined || data === '')
    return [{ type: 'text', text: `[${title}: cannot be read here]` }]
  return [
    type === 'image'
      ? { type, image: data, mediaType }
      : { type: 'file', data, mediaType, filename: title },
  ]
}
