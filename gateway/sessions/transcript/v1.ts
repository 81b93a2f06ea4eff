/**
 * The format of the older stream (`session.stream`): messages whose numbers are cursors, and events
 * without cursors, whose delivery is not guaranteed. A streaming row is sent in chunks. After
 * missed chunks, `session.resync` and a preview of the whole row are sent. A row that is restarted
 * is sent as a preview. `live_sequence` is null or absent, because a gateway does not count the
 * events of other publishers. The format of the transcript stream is in `v2.ts`.
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import { rowIn } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage, TurnUpsert } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { SummaryFields } from '../../../protocol/sessions/transcript/pages.ts'
import { type Caught, type Change, type Dialect, frameText } from './change.ts'
import { toOlderEvent } from './notes.ts'

/**
 * Returns the event for a final row.
 * @param summing details of the compaction, for a row with a summary.
 */
function said(
  {
    id: message_id,
    sequence,
    role,
    content,
    turn_id,
    metadata,
    covers_through_sequence,
  }: TranscriptMessage,
  summing?: SummaryFields,
): readonly [type: string, data: JsonObject] {
  const base = {
    ...(turn_id !== undefined && { turn_id }),
    message_id,
    sequence,
    role,
    content,
    ...(metadata && { metadata }),
  }
  if (role === 'compaction')
    return ['compaction.created', { ...summing, ...base, covers_through_sequence }]
  return [role === 'assistant' ? 'agent.message' : 'user.message', base]
}
/** Returns the event for the status of a turn, or undefined for a queued turn. */
function moved({
  id: turn_id,
  status,
  usage,
  wait,
  error_type,
  error_message,
}: TurnUpsert): readonly [type: string, data: JsonObject] | undefined {
  switch (status) {
    case 'running':
      return ['turn.started', { turn_id }]
    case 'waiting':
      return ['turn.waiting', { turn_id, reason: 'interaction', wait }]
    case 'completed':
      return ['turn.completed', { turn_id, ...(usage && { usage }) }]
    case 'failed':
      return [
        'turn.failed',
        { turn_id, error: error_message ?? '', error_type: error_type ?? 'error' },
      ]
    case 'cancelled':
      return ['turn.cancelled', { turn_id, reason: error_message ?? 'cancelled' }]
    case 'queued':
      return undefined
  }
}
/**
 * Returns the preview of a whole streaming row, as data of the event `session.message.preview`.
 * @param at Unix milliseconds.
 */
export const previewData = (row: TranscriptMessage, at: number): JsonObject => ({
  id: row.id,
  session_id: row.session_id,
  turn_id: row.turn_id ?? '',
  agent_id: row.agent_id,
  role: row.role,
  entry_type: row.entry_type,
  content: row.content,
  metadata: { ...row.metadata, response_message_index: row.turn_index },
  emitted_at: timestamp(at),
})
/**
 * Returns the tool calls of a streaming row, as data of the event `tool.call`.
 * @param at Unix milliseconds.
 */
export const toolCallData = ({ content, turn_id }: TranscriptMessage, at: number): JsonObject[] =>
  content.flatMap((block) =>
    block.type === 'tool_use'
      ? [
          {
            turn_id,
            tool_call_id: block.id,
            tool_name: block.name,
            input: block.input,
            emitted_at: timestamp(at),
          },
        ]
      : [],
  )

/**
 * Creates the format of the older stream.
 * @param idle milliseconds for which the stream of a session without active turns stays open if the
 * client has not received the end of a turn yet. Otherwise, the stream ends immediately.
 */
export function numberedDialect(session_id: string, idle: number): Dialect {
  const event = (type: string, data: JsonObject, id?: number): string =>
    frameText(type, { session_id, ...data }, id)
  const final = (row: TranscriptMessage, summing?: SummaryFields): string =>
    event(...said(row, summing), row.sequence ?? undefined)
  const turn = (record: TurnUpsert): string => {
    const named = moved(record)
    return named ? event(...named) : ''
  }
  const whole = (row: TranscriptMessage, at: number): string =>
    row.content.length === 0
      ? ''
      : `${event('session.message.preview', previewData(row, at))}${toolCallData(row, at)
          .map((call) => event('tool.call', call))
          .join('')}`
  /**
   * Returns the event for a turn. The start of a turn is sent only once, even if the turn continues
   * after a wait.
   */
  const goesOn = (record: TurnUpsert, began: boolean): string =>
    began && record.status === 'running' ? '' : turn(record)
  const caught = ({ page: { messages, turns, active, more }, rows, begun, at }: Caught): string => {
    const stored = [
      ...messages.map(({ revision, record, summing }) => ({
        revision,
        text: final(record, summing),
      })),
      ...turns.flatMap(({ revision, record }) =>
        settledTurns.has(record.status) ? [{ revision, text: turn(record) }] : [],
      ),
    ]
    return [
      ...stored.sort((a, b) => a.revision - b.revision).map(({ text }) => text),
      ...(more ? [] : active.map(({ record }) => goesOn(record, begun.has(record.id)))),
      ...rows.map((row) => whole(row, at)),
    ].join('')
  }
  const frame = ({
    frame: given,
    at,
    row,
    again,
    began = false,
  }: Extract<Change, { kind: 'frame' }>): string => {
    switch (given.type) {
      case 'message.upsert': {
        if (given.status === 'streaming')
          return again && row ? event('session.message.preview', previewData(row, at)) : ''
        // The summary of a compaction is sent with the event `compaction.created` that follows,
        // which has more details.
        return given.role === 'compaction' ? '' : final(rowIn(given))
      }
      case 'turn.upsert': {
        const { type: _, ...record } = given
        return goesOn(record, began)
      }
      case 'message.block':
        return row && given.block.type === 'tool_use'
          ? toolCallData({ ...row, content: [given.block] }, at)
              .map((call) => event('tool.call', call))
              .join('')
          : ''
      case 'message.block.patch':
      case 'interaction.upsert':
        return ''
    }
  }
  return {
    name: 'v1',
    caught,
    ready: () => '',
    change: (change) => {
      switch (change.kind) {
        case 'frame':
          return frame(change)
        case 'note': {
          const note = toOlderEvent(change.event, change.at, change.row)
          return note ? event(note.type, note.data, note.id) : ''
        }
        case 'row':
          return change.again
            ? frameText('session.resync', { session_id, reason: 'preview_gap' }) +
                whole(change.row, change.at)
            : whole(change.row, change.at)
        case 'piece': {
          const {
            turn_id,
            run_id = null,
            job_id,
            at,
            delta,
            worker_id = null,
            model = null,
            sequence = null,
          } = change.preview
          return frameText('generation.delta', {
            session_id,
            turn_id,
            run_id,
            job_id,
            tool_call_id: null,
            live_sequence: null,
            delta_sequence: sequence,
            emitted_at: timestamp(at),
            worker_id,
            model,
            delta,
          })
        }
      }
    },
    end: (reason) => frameText('stream.end', { session_id, reason }),
    patience: (settled) => (settled ? 0 : idle),
  }
}
