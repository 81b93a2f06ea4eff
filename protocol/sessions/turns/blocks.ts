/**
 * The content blocks of messages. There are seven types. All are open: fields that a provider adds
 * are stored and sent back to the provider.
 */
import { type Static, Type } from 'typebox'
import { JsonObject } from '../../common.ts'

const open = { additionalProperties: true } as const
export const Text = Type.Object({ type: Type.Literal('text'), text: Type.String() }, open)
export const Thinking = Type.Object(
  {
    type: Type.Literal('thinking'),
    thinking: Type.String(),
    signature: Type.Optional(Type.String()),
  },
  open,
)
export const ResolvedAction = Type.Object({
  name: Type.String({ description: 'Name of the action that was called' }),
  input: JsonObject,
})
export const ToolUse = Type.Object(
  {
    type: Type.Literal('tool_use'),
    id: Type.String(),
    name: Type.String(),
    input: JsonObject,
    status: Type.Optional(
      Type.String({
        description: 'Status of the call: pending, running, waiting, ok, error or cancelled',
      }),
    ),
    progress: Type.Optional(JsonObject),
    resolved_action: Type.Optional(ResolvedAction),
  },
  open,
)
export const ToolResult = Type.Object(
  {
    type: Type.Literal('tool_result'),
    tool_use_id: Type.String(),
    content: Type.Optional(Type.Union([Type.String(), Type.Array(JsonObject)])),
    is_error: Type.Optional(Type.Boolean()),
  },
  open,
)
export const Image = Type.Object(
  {
    type: Type.Literal('image'),
    source: Type.Optional(JsonObject),
    media_type: Type.Optional(Type.String()),
    title: Type.Optional(Type.String()),
    size_bytes: Type.Optional(Type.Integer()),
  },
  open,
)
export const Document = Type.Object(
  {
    type: Type.Literal('document'),
    source: JsonObject,
    title: Type.Optional(Type.String()),
    media_type: Type.Optional(Type.String()),
    size_bytes: Type.Optional(Type.Integer()),
    page_count: Type.Optional(Type.Integer({ minimum: 1 })),
    context: Type.Optional(Type.String()),
    citations: Type.Optional(JsonObject),
  },
  open,
)
export const Reminder = Type.Object(
  {
    type: Type.Literal('reminder'),
    name: Type.String(),
    tier: Type.Enum(['contextual', 'operator']),
    content: Type.String(),
  },
  open,
)

export const Block = Type.Union([Text, Thinking, ToolUse, ToolResult, Image, Document, Reminder], {
  description: 'Content block; unknown members are kept',
})
export type Block = Static<typeof Block>
export type ToolUseBlock = Static<typeof ToolUse>
export type ToolResultBlock = Static<typeof ToolResult>
export type ReminderBlock = Static<typeof Reminder>
export type ResolvedAction = Static<typeof ResolvedAction>
/** The types of blocks that may be stored. */
export const blockTypes = [
  'text',
  'thinking',
  'tool_use',
  'tool_result',
  'image',
  'document',
  'reminder',
] as const

/** Returns the tool uses in the content of a message, in order. */
export const toolUses = (content: readonly Block[]): readonly ToolUseBlock[] =>
  content.filter((block) => block.type === 'tool_use')
/** Returns the concatenated text of a message's content. */
export const textOf = (content: readonly Block[]): string =>
  content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
