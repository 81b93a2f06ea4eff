/** Source events of a session: one for each final row with the role `user` or `assistant`. */
import type { JsonObject } from '../../protocol/common.ts'
import type { Address } from '../../protocol/entry.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'
import { extended } from '../../protocol/rules/extended.ts'
import { rowIn, type SessionEvent } from '../../protocol/sessions/events.ts'
import { sessionMessage } from '../../protocol/sessions/schema.ts'
import type { Effect } from '../actor.ts'
import { reducePayload } from '../events/reduce-payload.ts'

type MessageUpsert = Extract<SessionEvent, { type: 'message.upsert' }>

/**
 * Returns the record of a message, without its content if the session belongs to a private channel.
 */
function recordOf(event: MessageUpsert, closed?: true): JsonObject {
  const { content, ...rest } = sessionMessage(rowIn(event))
  return reducePayload(extended(rest, !closed && { content }))
}
/**
 * Publishes a final row with the role `user` or `assistant` as a source event. Context, summaries
 * and streaming rows are not published.
 */
export function tellMessage(event: MessageUpsert, { project }: Address): readonly Effect[] {
  const { said, id: message_id, session_id, agent_id, role, sequence, turn_id, content } = event
  if (!said) return []
  const { session_key, depth, closed, private_session } = said
  const meta = { session_id, agent_id, message_id, role }
  const input: ServicePublication = {
    event_type: 'session.message.created',
    source_kind: 'session',
    source_id: session_id,
    event: extended(meta, {
      sequence,
      ...(turn_id !== undefined && { turn_id }),
      ...(!closed && { content }),
      session_key,
    }),
    meta,
    record: recordOf(event, closed),
    depth,
    ...(private_session && { private_session: session_id }),
  }
  return [{ tell: { to: { kind: 'events', id: project }, name: 'source.publish', input } }]
}
