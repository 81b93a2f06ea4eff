/**
 * Schemas of sessions, turns, messages and nudges as clients receive them. All objects except
 * usages and pages of messages are closed: they have no other fields. The messages and turns of a
 * transcript have the same fields in pages and in frames, except that only frames contain the
 * `phase` of a turn.
 */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { InlineConfig } from '../agents/inline.ts'
import { CompactionPolicy, resolvedPolicy, ThinkingEffort } from '../agents/schema.ts'
import { Closed, JsonObject, Timestamp } from '../common.ts'
import { EnvironmentStatus } from '../environments/schema.ts'
import { Interaction } from '../interactions/schema.ts'
import { Retention } from './retention.ts'
import { Block } from './turns/blocks.ts'

const closed = { additionalProperties: false } as const
const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])
const Count = Type.Integer({ minimum: 0 })

export const sessionStatuses = ['active', 'archived', 'deleted'] as const
export const LatestCompaction = Type.Object(
  { message_id: Type.String(), sequence: Type.Integer(), covers_through_sequence: Type.Integer() },
  closed,
)
/**
 * The progress of a compaction. `in_progress` becomes false at the deadline, so that a compaction
 * whose job is lost does not look active forever.
 */
export const CompactionProgress = Type.Object(
  {
    in_progress: Type.Boolean(),
    started_at: Type.Optional(Timestamp),
    deadline: Type.Optional(Timestamp),
    from_sequence: Type.Optional(Type.Integer()),
    through_sequence: Type.Optional(Type.Integer()),
    message_count: Type.Optional(Type.Integer()),
    threshold_tokens: Type.Optional(Type.Integer()),
  },
  closed,
)
export type CompactionProgress = Static<typeof CompactionProgress>
const session = {
  id: Type.String(),
  agent_id: Type.String(),
  title: Type.String(),
  status: Type.Enum([...sessionStatuses]),
  origin: Type.Enum(['manual', 'api', 'loop', 'interaction']),
  scope: Type.Enum(['agent', 'loop']),
  scope_ref_id: Type.String(),
  scope_name: Type.String({ description: 'Deprecated name of session_key' }),
  session_key: Type.String(),
  visibility: Type.Enum(['project', 'private']),
  model: Type.Optional(Type.String()),
  model_provider: Type.Optional(Type.String()),
  compaction_policy: Type.Optional(CompactionPolicy),
  retention: Type.Optional(Retention),
  expires_at: Type.Optional(orNull(Timestamp)),
  thinking_effort: Type.Optional(ThinkingEffort),
  message_count: Count,
  token_input_total: Count,
  token_output_total: Count,
  cache_read_input_total: Count,
  cache_creation_input_total: Count,
  version: Type.Integer({ minimum: 1 }),
  last_message_at: Type.Optional(orNull(Timestamp)),
  forked_from_session_id: Type.Optional(Type.String()),
  forked_from_sequence: Type.Optional(Type.Integer()),
  created_by: Type.Optional(Type.String()),
  metadata: Type.Optional(JsonObject),
  created_at: Timestamp,
  updated_at: Timestamp,
} as const
/** A session in lists and in replies to commands. */
export const Session = Type.Object(session, closed)
const config = { config: Type.Optional(InlineConfig) } as const
/** The stored record of a session. Its `config` is returned only by `GET /sessions/{id}`. */
export type Session = Static<typeof Session> & {
  readonly config?: Static<typeof InlineConfig>
}
/**
 * Returns a session as clients receive it, with a complete compaction policy. Records of earlier
 * releases may lack parts of the policy.
 */
export const shownSession = <S extends Session>(session: S): S => ({
  ...session,
  compaction_policy: resolvedPolicy(session.compaction_policy),
})
/** Returns a session without the fields that only `GET /sessions/{id}` returns. */
export const publicSession = ({ config: _, ...record }: Session): Session => shownSession(record)
const Cost = Type.Optional(
  Type.Integer({
    minimum: 0,
    description:
      'Cost of the answers of models whose price is configured, in thousandths of a credit ' +
      '(1 credit is 0.01 USD)',
  }),
)
/** A session as `GET /sessions/{id}` returns it. */
export const SessionDetail = Type.Object(
  {
    ...session,
    ...config,
    latest_compaction: Type.Optional(orNull(LatestCompaction)),
    compaction: CompactionProgress,
    environment: Type.Optional(
      Type.Object(
        { id: Type.String(), status: EnvironmentStatus },
        {
          ...closed,
          description:
            'Environment of the agent; present if its tools use an environment that exists',
        },
      ),
    ),
    credit_cost_milli: Cost,
  },
  closed,
)
export type SessionDetail = Static<typeof SessionDetail>
const { include, ...detailAdditions } = additions({
  environment: {},
  credit_cost_milli: {},
})
/** The query, reply and additions that a row for reading a single session declares. */
export const sessionDetail = {
  ...detailAdditions,
  query: Closed({ include }),
  reply: SessionDetail,
} as const

const turnStatuses = ['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const
/**
 * Token and model call counts of a turn. A count of zero is omitted, except for input and output
 * tokens.
 */
export const Usage = Type.Object({
  input_tokens: Type.Optional(Count),
  output_tokens: Type.Optional(Count),
  cache_read_input_tokens: Type.Optional(Count),
  cache_creation_input_tokens: Type.Optional(Count),
  reasoning_tokens: Type.Optional(Count),
  calls: Type.Optional(Count),
})
export type Usage = Static<typeof Usage>
/** The interaction that a turn waits for. */
export const Wait = Type.Object(
  {
    kind: Type.Literal('interaction'),
    interaction_id: Type.String(),
    tool_call_id: Type.String(),
    expires_at: Type.Optional(Timestamp),
  },
  closed,
)
const turn = {
  id: Type.String(),
  agent_id: Type.String(),
  session_id: Type.String(),
  run_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  channel_exchange_id: Type.Optional(Type.String()),
  attempt: Type.Integer({ minimum: 1 }),
  status: Type.Enum([...turnStatuses]),
  seq: Type.Optional(Type.Integer()),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  output: Type.Optional(JsonObject),
  output_source: Type.Optional(Type.Enum(['tool', 'text'])),
  usage: Type.Optional(Usage),
  created_at: Timestamp,
  updated_at: Timestamp,
  completed_at: Type.Optional(Timestamp),
} as const
/** A turn in pages of the transcript. */
export const TranscriptTurn = Type.Object({ ...turn, wait: Type.Optional(Wait) }, closed)
export type TranscriptTurn = Static<typeof TranscriptTurn>
/**
 * A turn as it is stored, and as the `turn.upsert` frame contains it. `phase` is null when the turn
 * has ended.
 */
export type TurnUpsert = TranscriptTurn & {
  readonly phase: 'queued' | 'running' | 'waiting' | null
}
/** Converts a turn from a frame to a turn of a page, which has no `phase`. */
export const transcriptTurn = ({ phase: _, ...record }: TurnUpsert): TranscriptTurn => record
const agentTurnMembers = {
  ...turn,
  error_scope: Type.Optional(
    Type.Literal('agent_turn', {
      description: 'agent_turn: the budget of the whole turn is exhausted',
    }),
  ),
  effective_timeout_seconds: Type.Optional(Type.Integer()),
} as const
/** A turn in replies to commands. */
export const AgentTurn = Type.Object(agentTurnMembers, closed)
export type AgentTurn = Static<typeof AgentTurn>
/** A turn as queries return it. */
export const TurnDetail = Type.Object(
  {
    ...agentTurnMembers,
    asked_by: Type.Optional(
      Type.String({ description: 'Id of the principal that requested the turn' }),
    ),
    credit_cost_milli: Cost,
  },
  closed,
)
type TurnDetail = Static<typeof TurnDetail>
const turns = additions({ asked_by: {}, credit_cost_milli: {} })
/** The query parameter of rows that return turns. */
export const turnInclude = { include: turns.include }
/** The query, reply and additions that a row for reading a single turn declares. */
export const turnDetail = {
  additions: turns.additions,
  query: Closed(turnInclude),
  reply: TurnDetail,
} as const
/** Fields of a turn's record that the transcript does not contain. */
export type TurnExtra = Pick<
  TurnDetail,
  'error_scope' | 'effective_timeout_seconds' | 'asked_by' | 'credit_cost_milli'
>
/**
 * Returns the record of a turn: the turn of a frame, without its `phase` and `wait`, plus the
 * fields that the transcript does not contain.
 */
export const agentTurn = (
  { phase: _, wait: __, ...turn }: TurnUpsert,
  extra: TurnExtra,
): AgentTurn => ({ ...turn, ...extra })

const roles = ['system', 'user', 'assistant', 'tool', 'compaction'] as const
const Role = Type.Enum([...roles])
const EntryType = Type.Enum(['message', 'compaction'])
/**
 * A message of the transcript. A row with status `streaming` has no sequence. It keeps its id when
 * it becomes final.
 */
export const TranscriptMessage = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    agent_id: Type.String(),
    turn_id: Type.Optional(Type.String()),
    role: Role,
    content: Type.Array(Block),
    entry_type: EntryType,
    status: Type.Enum(['streaming', 'final']),
    turn_index: orNull(Type.Integer()),
    sequence: orNull(Type.Integer()),
    covers_through_sequence: Type.Optional(Type.Integer()),
    metadata: Type.Optional(JsonObject),
    created_at: Timestamp,
  },
  closed,
)
export type TranscriptMessage = Static<typeof TranscriptMessage>
/**
 * A message of a session's log. Messages are numbered consecutively from 1. Context rows are
 * numbered too, but are listed only on request.
 */
export const SessionMessage = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    agent_id: Type.String(),
    role: Role,
    content: Type.Array(Block),
    entry_type: EntryType,
    sequence: Type.Integer({ minimum: 1 }),
    covers_through_sequence: Type.Optional(Type.Integer()),
    turn_id: Type.Optional(Type.String()),
    metadata: Type.Optional(JsonObject),
    created_at: Timestamp,
  },
  closed,
)
export type SessionMessage = Static<typeof SessionMessage>
export const MessagePage = Type.Object({
  items: Type.Array(SessionMessage),
  has_more: Type.Boolean(),
  next_sequence: Type.Optional(Type.Integer()),
  prev_sequence: Type.Optional(Type.Integer()),
})
/** Converts a final row of the transcript to a message of the log. */
export const sessionMessage = ({
  id,
  session_id,
  agent_id,
  role,
  content,
  entry_type,
  sequence,
  covers_through_sequence,
  turn_id,
  metadata,
  created_at,
}: TranscriptMessage): SessionMessage => ({
  id,
  session_id,
  agent_id,
  role,
  content,
  entry_type,
  sequence: sequence ?? 0,
  ...(covers_through_sequence !== undefined && { covers_through_sequence }),
  ...(turn_id !== undefined && { turn_id }),
  ...(metadata && { metadata }),
  created_at,
})

/**
 * The reply to a request that started a turn. A stream that starts at `resume_cursor` contains
 * every row of the turn. `after_sequence` is the sequence of the turn's input.
 */
export const TurnAck = Type.Object(
  {
    session: Session,
    turn: AgentTurn,
    user_message: Type.Optional(TranscriptMessage),
    resume_cursor: Type.String({ minLength: 1 }),
    after_sequence: Type.Integer(),
    deduped: Type.Boolean(),
  },
  closed,
)
export type TurnAck = Static<typeof TurnAck>

const nudgeStatuses = ['pending', 'delivered', 'cancelled'] as const
export const NudgeStatus = Type.Enum([...nudgeStatuses])
const Delivery = Type.Enum(['current_turn', 'new_turn'])
export const TurnRef = Type.Object(
  { id: Type.String(), status: Type.Enum([...turnStatuses]) },
  closed,
)
export const SessionNudge = Type.Object(
  {
    id: Type.String(),
    status: NudgeStatus,
    delivery: Delivery,
    content: Type.String(),
    turn: TurnRef,
    sender_principal_id: Type.String(),
    created_at: Timestamp,
    delivered_at: Type.Optional(orNull(Timestamp)),
    cancelled_at: Type.Optional(orNull(Timestamp)),
  },
  closed,
)
export type SessionNudge = Static<typeof SessionNudge>
export const NudgeAck = Type.Object(
  {
    nudge_id: Type.String(),
    status: NudgeStatus,
    delivery: Delivery,
    session: Session,
    turn: AgentTurn,
    after_sequence: Type.Integer(),
    deduped: Type.Boolean(),
    woke_turn: Type.Boolean(),
  },
  closed,
)
export type NudgeAck = Static<typeof NudgeAck>

/**
 * A page of the transcript, which a client folds before it follows the stream.
 * @public
 */
export const TranscriptSnapshot = Type.Object(
  {
    messages: Type.Array(TranscriptMessage),
    turns: Type.Array(TranscriptTurn),
    interactions: Type.Array(Interaction),
    has_more: Type.Boolean(),
    resume_cursor: Type.String(),
    next_page_token: Type.Optional(Type.String()),
  },
  closed,
)
/** @public */
export type TranscriptSnapshot = Static<typeof TranscriptSnapshot>
