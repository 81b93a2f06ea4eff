/**
 * Nudges: messages for a turn in progress. A nudge reaches the turn at the next boundary between
 * two iterations, or just before an answer without tool calls would end the turn. A nudge that is
 * undelivered when its turn ends becomes the input of a new turn, unless the turn was cancelled.
 *
 * Invariant: a nudge is delivered exactly once, whatever the order of concurrent commands, unless
 * the nudge or its turn is cancelled first. It is delivered as a reminder in its turn or as the
 * input of a new turn.
 */
import type { SessionNudge } from '../../../protocol/sessions/schema.ts'
import { type Draft, emit, noteTurn, now, turnOf, write } from '../draft.ts'
import { pendingNudges, type Turn } from '../state.ts'
import { admitTurn, type TurnRequest } from './admit.ts'

/** Admits a turn whose input is a nudge. The turn is queued after the existing turns. */
export const admitNudge = (draft: Draft, id: string, content: string, asking: TurnRequest) =>
  admitTurn(draft, {
    ...asking,
    owner: 'nudge',
    content: [{ type: 'text', text: content }],
    metadata: { ...asking.metadata, session_nudge_id: id },
  })

/**
 * Returns the fields that every change to a nudge repeats, for readers that receive only the
 * change.
 */
export const repeatedFields = ({
  delivery,
  turn,
}: SessionNudge): Pick<SessionNudge, 'delivery' | 'turn'> => ({
  delivery,
  turn,
})

/**
 * Delivers the pending nudges of a turn.
 * @returns whether the turn had pending nudges.
 */
export function deliverNudges(draft: Draft, turn_id: string): boolean {
  const waiting = pendingNudges(draft.state, turn_id)
  for (const { nudge, kept } of waiting) {
    const { next_index } = (turnOf(draft, turn_id) as Turn).work
    write(draft, {
      turn: { id: turn_id, index: next_index },
      role: 'user',
      content: [
        { type: 'reminder', name: 'user-direction', tier: 'contextual', content: nudge.content },
      ],
      metadata: { ...kept.metadata, session_nudge_id: nudge.id },
    })
    noteTurn(draft, turn_id, { next_index: next_index + 1 })
    emit(draft, {
      type: 'nudge.changed',
      id: nudge.id,
      nudge: { ...repeatedFields(nudge), status: 'delivered', delivered_at: now(draft) },
    })
  }
  return waiting.length > 0
}
/** Cancels the pending nudges of a cancelled turn. */
export function dropNudges(draft: Draft, turn_id: string): void {
  for (const { nudge } of pendingNudges(draft.state, turn_id))
    emit(draft, {
      type: 'nudge.changed',
      id: nudge.id,
      nudge: { ...repeatedFields(nudge), status: 'cancelled', cancelled_at: now(draft) },
    })
}
/** Converts the undelivered nudges of an ended turn to new turns. */
export function promoteNudges(draft: Draft, turn_id: string): void {
  for (const { nudge, kept } of pendingNudges(draft.state, turn_id)) {
    const { asker, definition, metadata } = kept
    const made = admitNudge(draft, nudge.id, nudge.content, { asker, definition, metadata })
    emit(draft, {
      type: 'nudge.changed',
      id: nudge.id,
      nudge: {
        status: 'delivered',
        delivery: 'new_turn',
        turn: { id: made.turn_id, status: 'queued' },
        delivered_at: now(draft),
      },
    })
  }
}
