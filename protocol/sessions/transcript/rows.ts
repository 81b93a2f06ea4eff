/**
 * The rows for following a session: the transcript as pages and as a stream, the older numbered
 * stream, and the uncommitted output of a turn.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, paging, Timestamp } from '../../common.ts'
import { query, stream } from '../../contract.ts'
import { TranscriptSnapshot } from '../schema.ts'

const Sealed = Type.Optional(Type.String({ minLength: 1, maxLength: 512 }))
const S = '/projects/:project/sessions/:session_id'
const read = { tag: 'sessions', permission: 'project.view', errors: ['not_found'] } as const

/**
 * A frame of the transcript stream: `event_type` and the fields of its payload. Clients must ignore
 * unknown types.
 */
const TranscriptFrame = Type.Object(
  { event_type: Type.String(), session_id: Type.Optional(Type.String()) },
  { additionalProperties: true },
)
const SessionEventFrame = Type.Object(
  { event_type: Type.String(), session_id: Type.String(), turn_id: Type.Optional(Type.String()) },
  { additionalProperties: true },
)
const LiveTurn = Type.Object(
  {
    session_id: Type.String(),
    turn_id: Type.String(),
    frames: Type.Array(JsonObject),
    last_live_sequence: Type.Integer({ minimum: 0 }),
    updated_at: Timestamp,
  },
  { additionalProperties: false },
)
export type LiveTurn = Static<typeof LiveTurn>

export const transcripts = {
  'session.transcript': query(`GET ${S}/transcript`, {
    ...read,
    summary: 'The newest part of the transcript, or its changes after a cursor, in pages',
    reply: TranscriptSnapshot,
    query: Closed({ cursor: Sealed, page_token: Sealed, limit: paging.limit }),
  }),
  'session.transcript_stream': stream(`GET ${S}/transcript/stream`, {
    ...read,
    summary:
      'Event stream of the transcript: the present state of everything that changed after a ' +
      'cursor, then live changes',
    stream: 'sse',
    reply: TranscriptFrame,
    query: Closed({ cursor: Sealed }),
  }),
  'session.stream': stream(`GET ${S}/stream`, {
    ...read,
    summary: 'Event stream of a session: messages after a number, then live events (version 1)',
    stream: 'sse',
    reply: SessionEventFrame,
    query: Closed({ after_sequence: Type.Optional(Type.Integer({ minimum: 0 })) }),
  }),
  'session.turn_live': query(`GET ${S}/turns/:turn_id/live`, {
    ...read,
    summary: 'Uncommitted output of a turn that is in progress',
    reply: LiveTurn,
  }),
} as const
