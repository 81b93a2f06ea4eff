/**
 * Turns that channels own. An executor resolves the agent and the definition and then opens the
 * turn. The channel receives the outcome (`../turns/report.ts`). Such a turn is queued in the
 * session. The limit of one direct turn does not apply to it, and it does not block direct turns.
 */

import { isRefusal, refuse } from '../../../protocol/errors.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { Cause, Decision } from '../../actor.ts'
import { change, withReply } from '../draft.ts'
import { findOrCreate } from '../find-or-create.ts'
import { ownKey, recall } from '../history/remembered.ts'
import { isFull, type SessionState } from '../state.ts'
import { admitTurn } from '../turns/admit.ts'
import { startNextTurn } from '../turns/turns.ts'

type Opening = SessionCommands['exchange.open']

/** Opens the turn of an exchange. A repeat for a known turn changes nothing. */
export const openExchange =
  (brand: string) =>
  (
    state: SessionState,
    input: Opening['input'],
    cause: Cause,
  ): Decision<SessionEvent, Opening['reply']> => {
    const {
      place: at,
      exchange_id,
      turn_id,
      asker,
      definition,
      content,
      channel,
      root,
      title,
      private: closed,
    } = input
    if (state.turns[turn_id] || recall(state.keys, ownKey(turn_id)))
      return { events: [], reply: { session_id: cause.self.id } }
    const draft = findOrCreate(
      brand,
      state,
      { agent_id: at.agent_id, title, visibility: closed ? 'private' : 'project' },
      at,
      cause,
    )
    if (isRefusal(draft)) return draft
    if (!state.record) change(draft, { origin: 'interaction' })
    if (closed && draft.state.record.visibility !== 'private')
      change(draft, { visibility: 'private' })
    if (isFull(draft.state))
      return refuse(
        'conflict',
        { limit: limits.turns },
        'The session has the maximum number of unfinished turns and waiting nudges.',
      )
    const channel_context = {
      provider: 'internal',
      channel_id: channel.id,
      ...(root !== undefined && { thread_id: root }),
    }
    admitTurn(draft, {
      owner: 'channel',
      of: { channel_exchange_id: exchange_id },
      turn_id,
      key: ownKey(turn_id),
      asker,
      definition,
      content,
      exchange: channel,
      metadata: { channel_context },
    })
    startNextTurn(draft)
    return withReply(draft, ({ record }) => ({ session_id: record.id }))
  }
