/**
 * Turns that runs own. The limit of one direct turn does not apply to them. Commands from one run
 * arrive in order, so a turn is opened before it is stopped. Repeating either command is harmless.
 */
import { isRefusal } from '../../../protocol/errors.ts'
import type {
  SessionCommands,
  TurnOpening,
  TurnReport,
} from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { Cause, Decision } from '../../actor.ts'
import { type Draft, emptyDecision, liveSession, newDraft, withoutReply } from '../draft.ts'
import { findOrCreate } from '../find-or-create.ts'
import { ownKey, recall } from '../history/remembered.ts'
import { isFull, isLive, type SessionState } from '../state.ts'
import { admitTurn } from '../turns/admit.ts'
import { endTurn, startNextTurn } from '../turns/turns.ts'

/**
 * Opens a turn, and creates its session if necessary. If the turn cannot be opened, the run that
 * owns the turn receives a report.
 */
export const openTurn =
  (brand: string) =>
  (state: SessionState, input: TurnOpening, cause: Cause): Decision<SessionEvent, undefined> => {
    const {
      owner,
      loop_id,
      attempt,
      content,
      definition,
      asker,
      output_schema,
      metadata,
      turn_id,
      causation,
    } = input
    if (state.turns[turn_id] || recall(state.keys, ownKey(turn_id))) return emptyDecision
    const draft = sessionOf(brand, state, input, cause)
    if ('error' in draft)
      return 'run_id' in owner
        ? {
            events: [
              {
                type: 'turn.reported',
                report: { run_id: owner.run_id, turn_id, status: 'failed', ...draft },
              },
            ],
            reply: undefined,
          }
        : emptyDecision
    admitTurn(draft, {
      owner: 'run_id' in owner ? 'run' : 'channel',
      of: { ...owner, attempt },
      ...(loop_id !== undefined && { loop_id }),
      turn_id,
      content,
      definition,
      asker,
      output_schema,
      metadata,
      causation,
      key: ownKey(turn_id),
    })
    startNextTurn(draft)
    return withoutReply(draft)
  }

/** Begins a decision on the session, or returns the reason why the session cannot accept a turn. */
function sessionOf(
  brand: string,
  state: SessionState,
  { place: at, seed }: TurnOpening,
  cause: Cause,
): Draft | (Pick<TurnReport, 'error_type' | 'error' | 'again'> & { readonly error: string }) {
  if (isFull(state))
    return {
      error_type: 'session_full',
      error: `The session has ${limits.turns} unfinished turns and waiting nudges.`,
    }
  if (!at) {
    const session = liveSession(state, cause)
    return session
      ? newDraft(session, cause, brand)
      : { error_type: 'session_gone', error: 'The session no longer exists.' }
  }
  if (state.record && !isLive(state, cause.at))
    return {
      error_type: 'session_gone',
      error: 'The session ended before the turn could begin.',
      again: true,
    }
  const draft = findOrCreate(brand, state, { agent_id: at.agent_id, ...seed }, at, cause)
  return isRefusal(draft)
    ? { error_type: draft.refused, error: draft.message ?? 'The session cannot be used.' }
    : draft
}

/** Cancels a turn at the request of its run. */
export const stopTurn =
  (brand: string) =>
  (
    state: SessionState,
    { turn_id }: SessionCommands['turn.stop']['input'],
    cause: Cause,
  ): Decision<SessionEvent, undefined> => {
    if (!state.turns[turn_id] || !isLive(state, cause.at)) return emptyDecision
    const draft = newDraft(state, cause, brand)
    endTurn(draft, turn_id, { status: 'cancelled' })
    return withoutReply(draft)
  }
