/**
 * The rows for sessions of agents: invocation, turns, messages and nudges. The published contract
 * leaves these points open, and this service decides them as follows:
 * - Unknown fields of a request are refused.
 * - A message with a block of type `file` is dropped. A request with any other unknown type of
 *   block is refused.
 * - Readers of the project may read its sessions, except private sessions (`visibility.ts`) and
 *   sessions of channels that they may not read.
 */
import { type Static, Type } from 'typebox'
import { InlineConfig } from '../agents/inline.ts'
import { AgentName, CompactionPolicy, compactionFaults, ThinkingEffort } from '../agents/schema.ts'
import { channelOfKey } from '../channels/exchange.ts'
import { bodyKey, Closed, Id, JsonObject, pageOf, paging, Timestamp, valuesOf } from '../common.ts'
import { command, query } from '../contract.ts'
import type { FieldError } from '../errors.ts'
import { checkAppended, checkContent, checkContext, checkMetadata, checkOutput } from './check.ts'
import { limits } from './limits.ts'
import { Retention } from './retention.ts'
import {
  AgentTurn,
  MessagePage,
  NudgeAck,
  NudgeStatus,
  Session,
  SessionNudge,
  sessionDetail,
  sessionStatuses,
  TurnAck,
  TurnDetail,
  turnDetail,
  turnInclude,
} from './schema.ts'

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
const SessionKey = Type.String({ maxLength: limits.session_key })
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
const CreateSession = Closed({
  agent_id: Id,
  model: Type.Optional(Type.String({ maxLength: 256 })),
  ...seed,
})
export type SessionSeed = Partial<Omit<Static<typeof CreateSession>, 'agent_id'>>
const checkSeed = (
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
const Invoke = Closed({
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
function checkInvoke({
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
const StartTurn = Closed({
  content: Content,
  role: Type.Optional(Type.Literal('user')),
  idempotency_key: Type.Optional(Key),
  operation: Type.Optional(Operation),
  context: Type.Optional(Context),
  output: Type.Optional(Output),
  metadata: Type.Optional(JsonObject),
})
const checkStart = ({
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
const UpdateSession = Closed({
  title: Type.Optional(Title),
  status: Type.Optional(Type.Enum([...sessionStatuses])),
  compaction_policy: Type.Optional(CompactionPolicy),
  thinking_effort: Type.Optional(ThinkingEffort),
})
const checkUpdate = ({ compaction_policy }: Static<typeof UpdateSession>): FieldError[] =>
  compactionFaults(compaction_policy)
const Total = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }))
const Append = Closed({
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
const checkAppend = ({ messages }: Static<typeof Append>): FieldError[] => checkAppended(messages)
const Nudge = Closed({
  content: Type.String({ minLength: 1, maxLength: limits.nudge }),
  idempotency_key: Type.Optional(Key),
  metadata: Type.Optional(JsonObject),
  wake: Type.Optional(Type.Boolean()),
})
const checkNudge = ({ metadata }: Static<typeof Nudge>): FieldError[] =>
  checkMetadata(metadata, 'metadata')
const Order = Type.Optional(Type.Enum(['asc', 'desc'], { default: 'asc' }))
const Include = Type.Optional(valuesOf(Type.Enum(['context'])))
const After = Type.Optional(Type.Integer({ minimum: 0 }))
const P = '/projects/:project'
const S = `${P}/sessions/:session_id`
const tag = 'sessions'
const self = { kind: 'session', slot: 'session_id', prefix: 'agent_session' } as const
/** Maximum body size, in bytes, of a request with input for a session. */
const LIMIT = 2_097_152
const act = { tag, permission: 'agent.invoke', to: self } as const
const read = { tag, permission: 'project.view', errors: ['not_found'] } as const
const unresolved = ['unknown_agent', 'definition_resolver_unavailable'] as const
const nudging = ['not_found', 'conflict', 'agent_inactive', ...unresolved] as const
const starting = [...nudging, 'session_turn_active'] as const

const cancelTurn = {
  ...act,
  summary: 'Cancel a turn; its committed messages stay',
  selfAccess: true,
  body: Closed({}),
  bodyOptional: true,
  reply: AgentTurn,
  errors: ['not_found', 'turn_owned_by_run'],
} as const
const cancelSession = {
  ...act,
  summary: 'Cancel the active turns of a session; turns of runs only with force',
  selfAccess: true,
  body: Closed({}),
  bodyOptional: true,
  query: Closed({ force: Type.Optional(Type.Boolean()) }),
  reply: Session,
  errors: ['not_found'],
} as const
const cancelNudge = {
  ...act,
  summary: 'Cancel a nudge that has not been delivered',
  body: Closed({}),
  bodyOptional: true,
  reply: SessionNudge,
  errors: ['not_found', 'nudge_already_delivered'],
} as const

export const sessions = {
  'agent.invoke': command(`POST ${P}/agents/invoke`, {
    summary: 'Send a message to an agent: finds or creates the session and starts a turn',
    selfAccess: true,
    tag,
    permission: 'agent.invoke',
    to: { kind: 'session', found: 'agent_session' },
    body: Invoke,
    check: checkInvoke,
    // An idempotency key is scoped to a session. It therefore has no effect if each request creates
    // a new session.
    key: ({ input, session = {} }: Static<typeof Invoke>) =>
      session.mode === 'new' && !(session.session_key ?? session.scope_name)?.trim()
        ? undefined
        : bodyKey(input),
    reply: TurnAck,
    status: 202,
    stream: 'accept',
    limit: LIMIT,
    errors: starting,
  }),
  'session.create': command(`POST ${P}/sessions`, {
    summary: 'Find or create a session',
    tag,
    permission: 'agent.invoke',
    to: { kind: 'session', found: 'agent_session' },
    body: CreateSession,
    check: checkSeed,
    reply: Session,
    errors: ['not_found', 'conflict', 'agent_inactive'],
  }),
  'session.list': query(`GET ${P}/sessions`, {
    ...read,
    summary: 'Sessions, latest activity first; `query` finds text in the title or the key',
    reply: pageOf(Session),
    errors: ['session_agent_ref_conflict', 'session_key_scope_required', 'not_found'],
    query: Closed({
      agent_id: Type.Optional(Id),
      agent_name: Type.Optional(AgentName),
      session_key: Type.Optional(SessionKey),
      scope_name: Type.Optional(SessionKey),
      status: Type.Optional(valuesOf(Type.Enum([...sessionStatuses]))),
      scope: Type.Optional(Type.Enum(['agent', 'loop'])),
      provider: Type.Optional(Id),
      integration_id: Type.Optional(Id),
      since: Type.Optional(Timestamp),
      query: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      ...paging,
    }),
  }),
  'session.get': query(`GET ${S}`, { ...read, ...sessionDetail, summary: 'One session' }),
  'session.update': command(`PATCH ${S}`, {
    ...act,
    summary: 'Change, archive or restore a session',
    untagged: true,
    body: UpdateSession,
    check: checkUpdate,
    reply: Session,
    errors: ['not_found', 'conflict'],
  }),
  'session.delete': command(`DELETE ${S}`, {
    ...act,
    permission: 'project.edit',
    summary: 'Delete a session; its session key can then be used again',
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'session.cancel': command(`POST ${S}/cancel`, cancelSession),
  'session.compact': command(`POST ${S}/compact`, {
    ...act,
    summary: 'Summarize the messages since the last compaction, and wait for the summary',
    body: Closed({}),
    bodyOptional: true,
    reply: Session,
    errors: ['not_found', 'conflict', 'agent_inactive'],
  }),
  'session.messages': query(`GET ${S}/messages`, {
    ...read,
    summary: 'Messages of a session, ordered by number',
    reply: MessagePage,
    query: Closed({
      after_sequence: After,
      before_sequence: Type.Optional(Type.Integer({ minimum: 1 })),
      order: Order,
      limit: paging.limit,
      include: Include,
    }),
  }),
  'session.append': command(`POST ${S}/messages`, {
    ...act,
    summary: 'Add messages without starting a turn',
    body: Append,
    check: checkAppend,
    reply: Session,
    limit: LIMIT,
    errors: ['not_found', 'conflict'],
  }),
  'session.turns': query(`GET ${S}/turns`, {
    ...read,
    summary: 'Turns of a session, ordered by creation',
    ...turnDetail,
    reply: pageOf(TurnDetail),
    query: Closed({ ids: Type.Optional(valuesOf(Id)), order: Order, ...turnInclude, ...paging }),
    exact: 'ids',
  }),
  'session.start_turn': command(`POST ${S}/turns`, {
    ...act,
    summary: 'Start a turn',
    selfAccess: true,
    body: StartTurn,
    check: checkStart,
    key: bodyKey,
    reply: TurnAck,
    status: 202,
    stream: 'accept',
    limit: LIMIT,
    errors: starting,
  }),
  'session.turn': query(`GET ${S}/turns/:turn_id`, { ...read, ...turnDetail, summary: 'One turn' }),
  'session.cancel_turn': command(`POST ${S}/turns/:turn_id/cancel`, cancelTurn),
  'session.turn_messages': query(`GET ${P}/turns/:turn_id/messages`, {
    ...read,
    summary: 'Messages of a turn, ordered by number',
    reply: MessagePage,
    query: Closed({ after_sequence: After, limit: paging.limit, include: Include }),
  }),
  'session.nudges': query(`GET ${S}/nudges`, {
    ...read,
    summary: 'Nudges of a session, ordered by creation',
    reply: pageOf(SessionNudge),
    query: Closed({ status: Type.Optional(valuesOf(NudgeStatus)), order: Order, ...paging }),
  }),
  'session.nudge': command(`POST ${S}/nudges`, {
    ...act,
    summary: 'Send a nudge to the active turn; if no turn is active, start one',
    selfAccess: true,
    body: Nudge,
    check: checkNudge,
    key: bodyKey,
    reply: NudgeAck,
    status: 202,
    errors: nudging,
  }),
  'session.get_nudge': query(`GET ${S}/nudges/:nudge_id`, {
    ...read,
    summary: 'One nudge',
    reply: SessionNudge,
  }),
  'session.cancel_nudge': command(`POST ${S}/nudges/:nudge_id/cancel`, cancelNudge),

  'session.cancellations': command(`POST ${S}/cancellations`, {
    ...cancelSession,
    tag: 'compat',
    alias: 'session.cancel',
    as: 'session.cancel',
  }),
  'session.turn_cancellations': command(`POST ${S}/turns/:turn_id/cancellations`, {
    ...cancelTurn,
    tag: 'compat',
    alias: 'session.cancel_turn',
    as: 'session.cancel_turn',
  }),
  'session.nudge_cancellations': command(`POST ${S}/nudges/:nudge_id/cancellations`, {
    ...cancelNudge,
    tag: 'compat',
    alias: 'session.cancel_nudge',
    as: 'session.cancel_nudge',
  }),
} as const
