/** The bodies of the commands of sessions, with the checks that a schema cannot express. */
import { type Static, Type } from 'typebox'
import { InlineConfig } from '../agents/inline.ts'
import { AgentName, CompactionPolicy, compactionFaults, ThinkingEffort } from '../agents/schema.ts'
import { channelOfKey } from '../channels/exchange.ts'
import { Closed, Id, JsonObject, Timestamp } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { checkAppended, checkContent, checkContext, checkMetadata, checkOutput } from './check.ts'
import { limits } from './limits.ts'
import { Retention } from './retention.ts'
import { sessionStatuses } from './schema.ts'

const Content = Type.Array(JsonObject, {
  minItems: 1,
  maxItems: limits.blocks,
  description: 'Content blocks of type text, image or document',
})
export const ApplicationContext = Type.Object({ name: Type.String(), content: Type.String() })
const Context = Type.Array(ApplicationContext, {
  description: 'Application context; each entry is shown to the model under the name app-<name>',
})
const Key = Type.String({ maxLength: limits.key })
export const Operation = Closed({
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Maximum seconds of active execution; a longer time is reduced to the configured maximum',
    }),
  ),
})
export const Output = Closed({ schema: JsonObject })
export const SessionKey = Type.String({ maxLength: limits.session_key })
const Title = Type.String({ maxLength: limits.title })
const seed = {
  mode: Type.Optional(Type.Enum(['continue_or_create', 'new', 'continue'])),
  session_key: Type.Optional(SessionKey),
  scope_name: Type.Optional(SessionKey),
  title: Type.Optional(Title),
  visibility: Type.Optional(Type.Enum(['project', 'private'])),
  compaction_policy: Type.Optional(CompactionPolicy),
  retention: Type.Optional(Retention),
  thinking_effort: Type.Optional(ThinkingEffort),
  metadata: Type.Optional(JsonObject),
}
export const CreateSession = Closed({
  agent_id: Id,
  model: Type.Optional(Type.String({ maxLength: 256 })),
  ...seed,
})
/** The properties with which a session is found or created. */
export type SessionSeed = Partial<Omit<Static<typeof CreateSession>, 'agent_id'>>
/** Checks the properties with which a session is found or created, at the path `under`. */
export const checkSeed = (
  { compaction_policy, retention, metadata, session_key, scope_name }: SessionSeed,
  under = '',
): FieldError[] => [
  ...Object.entries({ session_key, scope_name }).flatMap(([field, key]) =>
    key !== undefined && channelOfKey(key.trim()) !== undefined
      ? [
          {
            field: `${under}${field}`,
            message: 'belongs to a channel; send messages to the channel instead',
            actual: key,
          },
        ]
      : [],
  ),
  ...compactionFaults(compaction_policy, `${under}compaction_policy`),
  ...checkMetadata(metadata, `${under}metadata`),
  ...(retention?.mode === 'bounded' && retention.ttl_seconds === undefined
    ? [{ field: `${under}retention.ttl_seconds`, message: 'is required for bounded' }]
    : []),
]
export const Invoke = Closed({
  agent_ref: Closed({ id: Type.Optional(Id), name: Type.Optional(AgentName) }),
  session: Type.Optional(Closed(seed)),
  config: Type.Optional(InlineConfig),
  operation: Type.Optional(Operation),
  input: Closed({
    content: Content,
    idempotency_key: Type.Optional(Key),
    context: Type.Optional(Context),
    metadata: Type.Optional(JsonObject),
  }),
  output: Type.Optional(Output),
  channel_context: Type.Optional(
    Closed({
      provider: Type.Optional(Type.String()),
      workspace_id: Type.Optional(Type.String()),
      channel_id: Type.Optional(Type.String()),
      thread_id: Type.Optional(Type.String()),
    }),
  ),
})
/** Checks a message to an agent, whose session may not exist yet. */
export function checkInvoke({
  agent_ref: { id, name },
  session,
  input,
  output,
}: Static<typeof Invoke>): FieldError[] {
  return [
    ...((id === undefined) === (name === undefined)
      ? [{ field: 'agent_ref', message: 'give exactly one of id and name' }]
      : []),
    ...checkSeed(session ?? {}, 'session.'),
    ...checkContent(input.content, 'input.content'),
    ...checkContext(input.context ?? [], 'input.context'),
    ...checkMetadata(input.metadata, 'input.metadata'),
    ...(output ? checkOutput(output.schema, 'output.schema') : []),
  ]
}
export const StartTurn = Closed({
  content: Content,
  role: Type.Optional(Type.Literal('user')),
  idempotency_key: Type.Optional(Key),
  operation: Type.Optional(Operation),
  context: Type.Optional(Context),
  output: Type.Optional(Output),
  metadata: Type.Optional(JsonObject),
})
/** Checks a message that starts a turn. */
export const checkStart = ({
  content,
  context,
  output,
  metadata,
}: Static<typeof StartTurn>): FieldError[] => [
  ...checkContent(content, 'content'),
  ...checkContext(context ?? [], 'context'),
  ...checkMetadata(metadata, 'metadata'),
  ...(output ? checkOutput(output.schema, 'output.schema') : []),
]
export const UpdateSession = Closed({
  title: Type.Optional(Title),
  status: Type.Optional(Type.Enum([...sessionStatuses])),
  compaction_policy: Type.Optional(CompactionPolicy),
  thinking_effort: Type.Optional(ThinkingEffort),
})
/** Checks a change of a session. */
export const checkUpdate = ({ compaction_policy }: Static<typeof UpdateSession>): FieldError[] =>
  compactionFaults(compaction_policy)
const Total = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }))
export const Append = Closed({
  messages: Type.Array(
    Closed({
      role: Type.Enum(['system', 'user', 'assistant', 'tool']),
      content: Type.Array(JsonObject, { maxItems: limits.blocks }),
      metadata: Type.Optional(JsonObject),
      created_at: Type.Optional(Timestamp),
    }),
    { minItems: 1, maxItems: limits.append },
  ),
  token_input_total: Total,
  token_output_total: Total,
  cache_read_input_total: Total,
  cache_creation_input_total: Total,
  model: Type.Optional(Type.String({ maxLength: 256 })),
  model_provider: Type.Optional(Type.String({ maxLength: 256 })),
})
/** Checks messages that are added without a turn. */
export const checkAppend = ({ messages }: Static<typeof Append>): FieldError[] =>
  checkAppended(messages)
export const Nudge = Closed({
  content: Type.String({ minLength: 1, maxLength: limits.nudge }),
  idempotency_key: Type.Optional(Key),
  metadata: Type.Optional(JsonObject),
  wake: Type.Optional(Type.Boolean()),
})
/** Checks a nudge. */
export const checkNudge = ({ metadata }: Static<typeof Nudge>): FieldError[] =>
  checkMetadata(metadata, 'metadata')
