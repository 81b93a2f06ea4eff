/**
 * The frames of event streams, by row name and event name. The frames of the worker socket are in
 * `workers/socket.ts`.
 */
import { type TSchema, Type } from 'typebox'
import type { RowName } from '../api.ts'
import { ChannelEventRecord } from '../channels/schema.ts'
import { JsonObject, Timestamp } from '../common.ts'
import { RunLogLine } from '../jobs/logs.ts'
import { McpAnswer, McpMessage } from '../mcp/messages.ts'
import { timelineTypes } from '../runs/events.ts'
import { ProjectRunEvent, RunEventRecord } from '../runs/schema.ts'
import { numberedFrames, transcriptFrames } from '../sessions/transcript/frames.ts'
import { StreamFrame } from '../streams/rows.ts'

/**
 * A frame that reports that a stream does not continue directly after the requested cursor.
 * `cursor_too_old`: events after the cursor are no longer stored. `cursor_too_new`: the journal ends
 * before the cursor, for example because a backup was restored, and later events may have cursors
 * that the client knows.
 */
const StreamReset = Type.Object({
  reason: Type.Enum(['cursor_too_old', 'cursor_too_new']),
  requested: Type.Integer(),
  resumed_from: Type.Integer(),
})
const reset = { 'stream.reset': StreamReset }
/**
 * A frame with a chunk of the output of a model for a step of a run. It has no cursor and is only
 * sent live.
 */
const GenerationDelta = Type.Object({
  event_type: Type.Literal('generation.delta'),
  delta: JsonObject,
  run_id: Type.String(),
  session_id: Type.String(),
  turn_id: Type.String(),
  job_id: Type.String(),
  delta_sequence: Type.Optional(Type.Integer()),
  sequence: Type.Optional(Type.Integer()),
  emitted_at: Timestamp,
  worker_id: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
})
const each = <T extends TSchema>(types: Iterable<string>, schema: T) =>
  Object.fromEntries([...types].map((type) => [type, schema]))

/** Schemas of frame data, by event name. */
export type Frames = Readonly<Record<string, TSchema>>
/** The frames of event streams, by row name. Clients must ignore events with unknown names. */
export const streamFrames: { readonly [N in RowName]?: Frames } = {
  'run.events': {
    ...each(timelineTypes, RunEventRecord),
    'generation.delta': GenerationDelta,
    ...reset,
  },
  'run.logs': { 'log.line': RunLogLine },
  'run.feed': { ...each(ProjectRunEvent.properties.type.enum, ProjectRunEvent), ...reset },
  'channel.events': {
    ...each(ChannelEventRecord.properties.event_type.enum, ChannelEventRecord),
    ...reset,
  },
  'session.transcript_stream': transcriptFrames,
  'session.stream': numberedFrames,
  'stream.follow': { message: StreamFrame },
  'mcp.listen': { message: Type.Union([McpMessage, McpAnswer]) },
}
