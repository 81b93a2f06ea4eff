/**
 * Schemas of the frames in the two streams of a session, by event name: the transcript stream
 * (version 2) and the older numbered stream (version 1).
 */
import { type TProperties, Type } from 'typebox'
import { JsonObject, Timestamp } from '../../common.ts'
import { Interaction } from '../../interactions/schema.ts'
import { TranscriptMessage, TranscriptTurn, Usage, Wait } from '../schema.ts'
import { Block, ResolvedAction } from '../turns/blocks.ts'

const named = <P extends TProperties>(event_type: string, members: P) =>
  Type.Object({ event_type: Type.Literal(event_type), ...members })
const place = {
  session_id: Type.String(),
  message_id: Type.String(),
  content_index: Type.Integer({ minimum: 0 }),
}
const turn = { session_id: Type.String(), turn_id: Type.String() }
const end = (reasons: string[]) =>
  named('stream.end', { session_id: Type.String(), reason: Type.Enum(reasons) })

/** The frames of `GET …/transcript/stream`. A row replaces the earlier row with the same id. */
export const transcriptFrames = {
  'message.upsert': named('message.upsert', TranscriptMessage.properties),
  'message.block': named('message.block', { ...place, block: Block }),
  'message.block.patch': named('message.block.patch', {
    ...place,
    status: Type.Optional(Type.String()),
    progress: Type.Optional(
      Type.Union([JsonObject, Type.Null()], {
        description: 'Progress of the tool call; null removes it; if absent, it is not changed',
      }),
    ),
    resolved_action: Type.Optional(ResolvedAction),
  }),
  'message.delta': named('message.delta', {
    ...place,
    text: Type.Optional(Type.String({ description: 'Text to append to the text of the block' })),
    thinking: Type.Optional(
      Type.String({ description: 'Text to append to the thinking of the block' }),
    ),
  }),
  'turn.upsert': named('turn.upsert', {
    ...TranscriptTurn.properties,
    phase: Type.Union([Type.Enum(['queued', 'running', 'waiting']), Type.Null()], {
      description: 'Phase of the turn; null after the turn has ended',
    }),
  }),
  'interaction.upsert': named('interaction.upsert', Interaction.properties),
  'stream.ready': named('stream.ready', {
    session_id: Type.String(),
    resume_cursor: Type.String({ description: 'Cursor up to which all changes have been sent' }),
  }),
  'stream.end': end(['idle', 'rotate']),
} as const

const nudge = (event_type: string) =>
  named(event_type, {
    ...turn,
    nudge_id: Type.String(),
    delivery: Type.Enum(['current_turn', 'new_turn']),
    status: Type.Enum(['pending', 'delivered', 'cancelled']),
  })
const said = (event_type: string) =>
  named(event_type, {
    session_id: Type.String(),
    turn_id: Type.Optional(Type.String()),
    message_id: Type.String(),
    sequence: TranscriptMessage.properties.sequence,
    role: Type.String(),
    content: Type.Array(Block),
    metadata: Type.Optional(JsonObject),
  })
const nullable = { text: Type.Union([Type.String(), Type.Null()]) }

/**
 * The frames of `GET …/stream`. The frame of a stored message has the sequence of the message as
 * its event id. All other frames have no id.
 */
export const numberedFrames = {
  'user.message': said('user.message'),
  'agent.message': said('agent.message'),
  'turn.started': named('turn.started', turn),
  'turn.waiting': named('turn.waiting', {
    ...turn,
    reason: Type.Literal('interaction'),
    wait: Type.Optional(Wait),
  }),
  'turn.completed': named('turn.completed', { ...turn, usage: Type.Optional(Usage) }),
  'turn.failed': named('turn.failed', {
    ...turn,
    error: Type.String(),
    error_type: Type.String(),
  }),
  'turn.cancelled': named('turn.cancelled', { ...turn, reason: Type.String() }),
  'session.message.preview': named('session.message.preview', {
    ...turn,
    id: Type.String(),
    agent_id: Type.Optional(Type.String()),
    role: Type.String(),
    entry_type: Type.String(),
    content: Type.Array(Block),
    metadata: JsonObject,
    emitted_at: Timestamp,
  }),
  'generation.delta': named('generation.delta', {
    ...turn,
    run_id: nullable.text,
    job_id: Type.String(),
    tool_call_id: Type.Null(),
    live_sequence: Type.Null(),
    delta_sequence: Type.Union([Type.Integer(), Type.Null()]),
    emitted_at: Timestamp,
    worker_id: nullable.text,
    model: nullable.text,
    delta: JsonObject,
  }),
  'tool.call': named('tool.call', {
    session_id: Type.String(),
    turn_id: Type.Optional(Type.String()),
    tool_call_id: Type.String(),
    tool_name: Type.String(),
    input: Type.Optional(Type.Unknown()),
    emitted_at: Timestamp,
  }),
  'tool.result': named('tool.result', {
    ...turn,
    tool_call_id: Type.String(),
    tool_name: Type.String(),
    content: Type.Array(JsonObject),
    display: Type.String(),
    is_error: Type.Boolean(),
    error: Type.Optional(Type.String({ description: 'Error message; only if is_error is true' })),
    emitted_at: Timestamp,
  }),
  'nudge.queued': nudge('nudge.queued'),
  'nudge.delivered': nudge('nudge.delivered'),
  'nudge.cancelled': nudge('nudge.cancelled'),
  'compaction.started': named('compaction.started', {
    session_id: Type.String(),
    trigger: Type.Enum(['auto', 'manual', 'append']),
    from_sequence: Type.Integer(),
    through_sequence: Type.Integer(),
    message_count: Type.Integer(),
    estimated_tokens: Type.Integer(),
    summary_model: Type.String(),
  }),
  'compaction.created': named('compaction.created', {
    ...said('compaction.created').properties,
    covers_through_sequence: Type.Optional(Type.Integer()),
    trigger: Type.Optional(Type.String()),
    message_count: Type.Optional(Type.Integer()),
    summary_model: Type.Optional(Type.String()),
  }),
  'compaction.failed': named('compaction.failed', {
    session_id: Type.String(),
    trigger: Type.Enum(['auto', 'manual', 'append']),
    from_sequence: Type.Integer(),
    through_sequence: Type.Integer(),
    error_type: Type.String(),
    error_message: Type.String(),
  }),
  'session.resync': named('session.resync', {
    session_id: Type.String(),
    reason: Type.Literal('preview_gap'),
  }),
  'stream.end': end(['idle', 'rotate']),
} as const
