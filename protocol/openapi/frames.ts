/** The frames of each stream of the table, by row name and then by event name. */
import { type TSchema, Type } from 'typebox'
import type { RowName } from '../api.ts'
import { ChannelEventRecord } from '../channels/schema.ts'
import { JsonObject, Timestamp } from '../common.ts'
import { McpAnswer, McpMessage } from '../mcp/messages.ts'
import { timelineTypes } from '../runs/events.ts'
import { ProjectRunEvent, RunEventRecord } from '../runs/schema.ts'
import { numberedFrames, transcriptFrames } from '../sessions/transcript/frames.ts'

/** Reports that entries between two cursors are no longer stored. */
const StreamReset = Type.Object({
  reason: Type.Literal('cursor_too_old'),
  requested: Type.Integer(),
  resumed_from: Type.Integer(),
})
const reset = { 'stream.reset': StreamReset }
/** A chunk of a model's output for a step, sent live: it has no cursor and is sent only once. */
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

/** Frames by event name. */
export type Frames = Readonly<Record<string, TSchema>>
/** The data schemas of the frames. Clients ignore events with unknown names. */
export const streamFrames: { readonly [N in RowName]?: Frames } = {
  'run.events': {
    ...each(timelineTypes, RunEventRecord),
    'generation.delta': GenerationDelta,
    ...reset,
  },
  'run.feed': { ...each(ProjectRunEvent.properties.type.enum, ProjectRunEvent), ...reset },
  'channel.events': {
    ...each(ChannelEventRecord.properties.event_type.enum, ChannelEventRecord),
    ...reset,
  },
  'session.transcript_stream': transcriptFrames,
  'session.stream': numberedFrames,
  'mcp.listen': { message: Type.Union([McpMessage, McpAnswer]) },
}
