/**
 * Converts the stored events that are not transcript frames (nudges, compactions, and results of
 * tools) to events of the older stream (`v1.ts`).
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { KnownResult } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { SessionNudge, TranscriptMessage } from '../../../protocol/sessions/schema.ts'

/** An event of the older stream. A client can resume only after an event with an id. */
export interface OlderEvent {
  readonly type: string
  readonly data: JsonObject
  readonly id?: number
}

/**
 * Converts a stored event to an event of the older stream. Returns undefined when the older stream
 * has no corresponding event.
 * @param at time of the event in Unix milliseconds.
 * @param row the message to which the event refers.
 */
export function toOlderEvent(
  event: SessionEvent,
  at: number,
  row: TranscriptMessage | undefined,
): OlderEvent | undefined {
  switch (event.type) {
    case 'nudge.queued':
      return nudge(event.nudge)
    case 'nudge.changed':
      return event.nudge.status && event.nudge.turn && event.nudge.delivery
        ? nudge({
            id: event.id,
            status: event.nudge.status,
            turn: event.nudge.turn,
            delivery: event.nudge.delivery,
          })
        : undefined
    case 'compaction.started': {
      const { threshold_tokens: _, ...data } = event.pass
      return { type: 'compaction.started', data }
    }
    case 'compaction.failed': {
      const { trigger, from_sequence, through_sequence } = event.pass
      return {
        type: 'compaction.failed',
        data: {
          trigger,
          from_sequence,
          through_sequence,
          error_type: event.error_type,
          error_message: event.error_message,
        },
      }
    }
    case 'compaction.created': {
      const { trigger, message_count, summary_model } = event.pass
      const { message_id, sequence, covers_through_sequence } = event
      return {
        type: 'compaction.created',
        id: sequence,
        data: {
          trigger,
          message_id,
          sequence,
          role: 'compaction',
          content: row?.content ?? [],
          covers_through_sequence,
          message_count,
          summary_model,
        },
      }
    }
    case 'call.noted': {
      const {
        turn_id,
        id,
        call: { state, result },
      } = event
      const use = row?.content.find((block) => block.type === 'tool_use' && block.id === id)
      return state === 'done' && result
        ? {
            type: 'tool.result',
            data: toolResultData(
              { turn_id, tool_name: use?.type === 'tool_use' ? use.name : '', result },
              at,
            ),
          }
        : undefined
    }
    default:
      return undefined
  }
}
function nudge({
  id: nudge_id,
  status,
  turn,
  delivery,
}: Pick<SessionNudge, 'id' | 'status' | 'turn' | 'delivery'>): OlderEvent {
  return {
    type: status === 'pending' ? 'nudge.queued' : `nudge.${status}`,
    data: { nudge_id, turn_id: turn.id, delivery, status },
  }
}
/**
 * Returns the result of a tool call as data of the event `tool.result`.
 * @param at time of the result in Unix milliseconds.
 */
export function toolResultData(
  { turn_id, tool_name, result: { tool_use_id, content = '', is_error = false } }: KnownResult,
  at: number,
): JsonObject {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const display = blocks
    .map((block) => (typeof block['text'] === 'string' ? block['text'] : ''))
    .join('')
  return {
    turn_id,
    tool_call_id: tool_use_id,
    tool_name,
    content: blocks,
    display,
    is_error,
    ...(is_error && { error: display }),
    emitted_at: timestamp(at),
  }
}
