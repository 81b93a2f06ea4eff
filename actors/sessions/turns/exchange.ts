/**
 * Turns that channels own. The executor that has resolved their agent and definition opens them,
 * and the channel receives their outcome. Such a turn has its own admission: it waits in the
 * session's queue and does not block direct turns.
 */

import type { ExchangeOutcome } from '../../../protocol/channels/exchange.ts'
import { mentionsOf } from '../../../protocol/channels/mentions.ts'
import { limits as channels } from '../../../protocol/channels/schema.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { textOf } from '../../../protocol/sessions/turns/blocks.ts'
import type { Cause, Decision, Effect } from '../../actor.ts'
import { answering, change, type Draft, emit } from '../draft.ts'
import { place } from '../find-or-create.ts'
import { ownKey, recall } from '../history/remembered.ts'
import { isFull, type SessionState, type Turn } from '../state.ts'
import { admit } from './admit.ts'
import { pump } from './turns.ts'

type Opening = SessionCommands['exchange.open']

/** Open the turn of an exchange; a repeat for a known turn changes nothing. */
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
    const on = place(
      brand,
      state,
      { agent_id: at.agent_id, title, visibility: closed ? 'private' : 'project' },
      at,
      cause,
    )
    if (isRefusal(on)) return on
    if (!state.record) change(on, { origin: 'interaction' })
    if (closed && on.state.record.visibility !== 'private') change(on, { visibility: 'private' })
    if (isFull(on.state))
      return refuse(
        'conflict',
        { limit: limits.turns },
        'The session has the maximum number of unfinished turns and waiting nudges.',
      )
    if (on.state.record.status === 'archived') change(on, { status: 'active' })
    const channel_context = {
      provider: 'internal',
      channel_id: channel.id,
      ...(root !== undefined && { thread_id: root }),
    }
    admit(on, {
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
    pump(on)
    return answering(on, ({ record }) => ({ session_id: record.id }))
  }

/** The last text of the agent in a turn, truncated to the maximum length of a channel message. */
function lastWords({ state }: Draft, turn_id: string): string | undefined {
  const text = textOf(
    state.window.filter((row) => row.turn_id === turn_id && row.role === 'assistant').at(-1)
      ?.content ?? [],
  ).trim()
  return text === ''
    ? undefined
    : text.length <= channels.content
      ? text
      : `${text.slice(0, channels.content - 1)}…`
}
/** Emit the outcome of a turn that is about to end, if a channel owns the turn. */
export function reportExchange(on: Draft, { record, work: { exchange, ending } }: Turn): void {
  const { id: turn_id, session_id, channel_exchange_id: exchange_id } = record
  if (!exchange || !ending || exchange_id === undefined) return
  const { status, error_type, error_message } = ending
  const text = status === 'completed' ? lastWords(on, turn_id) : undefined
  const mentioned = text === undefined ? [] : mentionsOf(text, exchange.names)
  emit(on, {
    type: 'exchange.answered',
    channel_id: exchange.id,
    exchange_id,
    session_id,
    turn_id,
    status,
    ...(text !== undefined && { text }),
    ...(mentioned.length > 0 && { mentioned }),
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
  })
}
/** Send the outcome to the channel, which may live in another shard. */
export const tellChannel = ({
  type: _,
  channel_id,
  ...outcome
}: Extract<SessionEvent, { type: 'exchange.answered' }>): readonly Effect[] => [
  {
    tell: {
      to: { kind: 'channel', id: channel_id },
      name: 'exchange.settled',
      input: outcome satisfies ExchangeOutcome,
    },
  },
]
