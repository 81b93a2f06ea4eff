/** What the source events of the project hear of a session: each message that a person or the agent has posted in it, once. */
import type { Address } from '../../protocol/entry.ts'
import type { SessionEvent } from '../../protocol/session/events.ts'
import type { Publication } from '../../protocol/sources.ts'
import type { Effect } from '../actor.ts'

/** A message was posted. Context, summaries, and what is still being written are none. */
export function tellMessage(
  {
    said,
    id: message_id,
    session_id,
    agent_id,
    role,
    sequence,
    turn_id,
    content,
  }: Extract<SessionEvent, { type: 'message.upsert' }>,
  { project }: Address,
): readonly Effect[] {
  if (!said) return []
  const { session_key, depth, closed } = said
  const meta = { session_id, agent_id, message_id, role }
  const input: Publication = {
    event_type: 'session.message.created',
    source_kind: 'session',
    source_id: session_id,
    event: {
      ...meta,
      sequence,
      ...(turn_id !== undefined && { turn_id }),
      ...(!closed && { content }),
      session_key,
    },
    meta,
    depth,
  }
  return [{ tell: { to: { kind: 'events', id: project }, name: 'source.publish', input } }]
}
