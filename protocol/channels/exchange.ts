/**
 * Exchanges: requests to agents that are members of channels, and the answers to these requests. A
 * message that wakes an agent starts an exchange, immediately or after the current one. An exchange
 * is one turn of the session that the agent has for the channel or thread. The answer of the turn
 * is posted below the message.
 *
 *     message → exchange → errand that looks up the turn's data → turn in the session → answer
 *
 * Invariants:
 * E1. An agent has at most one exchange at a time in each thread, and one outside of threads.
 *     Messages that wake the agent during an exchange are answered by the next exchange. Its turn
 *     receives the messages that the agent has not been shown yet, up to a limit.
 * E2. A message wakes an agent only once, because the message and the wake are stored in one
 *     commit. The id of the turn is fixed when the exchange starts, so a repeat starts no second
 *     turn.
 * E3. An agent never wakes itself. An agent wakes another agent only by mentioning it, and only
 *     while the thread has fewer than `MAX_STREAK` consecutive messages from agents. Pending
 *     answers are included in this count, and a message from a person resets it.
 */
import { type Static, Type } from 'typebox'
import { Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { Ending, TurnWork } from '../sessions/bookkeeping.ts'
import type { SessionLocation } from '../sessions/commands.ts'
import type { Block } from '../sessions/turns/blocks.ts'
import type { TurnDefinition } from '../sessions/turns/definition.ts'

/**
 * Agents in a thread stop waking each other after this number of consecutive messages from agents
 * (E3).
 */
export const MAX_STREAK = 8
/**
 * The maximum number of entries of each kind that a channel stores about threads: read positions of
 * agents, and counts of consecutive messages from agents. Beyond this number, the least recently
 * changed entry is dropped.
 */
export const MAX_THREAD_ENTRIES = 500

/** The reason for waking an agent: the message and the principal that wrote it. */
export interface Wake {
  readonly message_id: string
  /** Id of the root of the thread that contains the message; absent outside of threads. */
  readonly root?: string
  readonly asker: TurnWork['asker']
}
/**
 * One exchange. `id` has the form `cex_…`. The agent is shown messages after `after_seq`, up to and
 * including `through_seq`.
 */
export interface Exchange extends Wake {
  readonly id: string
  readonly agent_id: string
  readonly after_seq: number
  readonly through_seq: number
  /** Id of the errand that looks up the data for the turn. */
  readonly job_id: string
  readonly turn_id: string
}
/** Returns the key of an agent's session for a channel, or for the thread with this root. */
export const sessionKeyOf = (channel_id: string, root: string | undefined): string =>
  `channel:${channel_id}${root === undefined ? '' : `:${root}`}`
const KEY = /^channel:(chan_\w+)(?::|$)/
/**
 * Returns the id of the channel to which a session key belongs; undefined for keys of other
 * sessions.
 */
export const channelOfKey = (session_key: string): string | undefined => KEY.exec(session_key)?.[1]

/** An exchange as shown to readers of the channel. */
export const ExchangeRecord = Type.Object({
  id: Type.String(),
  channel_id: Type.String(),
  agent_id: Type.String(),
  message_id: Type.String({ description: 'Id of the message that the agent answers' }),
  reply_to: Type.Optional(Type.String({ description: 'Id of the root message of the thread' })),
  status: Type.Enum(['running', 'completed', 'failed', 'cancelled']),
  turn_id: Type.String({
    description:
      'Id of the turn that answers; the turn may not exist if the exchange ended before it began',
  }),
  session_id: Type.Optional(
    Type.String({ description: 'Id of the session of the turn; present after the turn has ended' }),
  ),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  created_at: Timestamp,
  ended_at: Type.Optional(Timestamp),
})
export type ExchangeRecord = Static<typeof ExchangeRecord>

/** Events of a channel about its exchanges. */
/** What identifies the turn of an exchange. */
export type ExchangeTurn = Pick<Exchange, 'agent_id' | 'root' | 'turn_id'>
/**
 * The turns that were in progress when their channel was deleted. A background job of the channel
 * cancels them.
 */
export interface TurnsAtDeletion {
  readonly job_id: string
  readonly channel_id: string
  readonly turns: readonly ExchangeTurn[]
}
export type ExchangeEvent =
  | (Event & { readonly type: 'exchange.begun'; readonly id: string; readonly exchange: Exchange })
  /** The agent was woken again during the exchange `id`. The next exchange answers `wake`. */
  | (Event & { readonly type: 'exchange.deferred'; readonly id: string; readonly wake: Wake })
  /**
   * `unheard`: the agent was not shown the messages of this exchange, so the next exchange includes
   * them.
   */
  | (Event & {
      readonly type: 'exchange.ended'
      readonly id: string
      readonly unheard?: true
      /** The session of the turn; absent when no turn started. */
      readonly session_id?: string
    } & Pick<Ending, 'status' | 'error_type' | 'error_message'>)

/**
 * The outcome of the turn of an exchange. `text`: the last text of the agent. `mentioned`: ids of
 * the agents that the text mentions.
 */
export interface ExchangeOutcome extends Pick<Ending, 'status' | 'error_type' | 'error_message'> {
  readonly exchange_id: string
  readonly session_id: string
  readonly turn_id: string
  readonly text?: string
  readonly mentioned?: readonly string[]
}
/**
 * Internal commands of a channel about exchanges. They are never refused: late, repeated and
 * unrelated commands change nothing.
 */
export type ExchangeCommands = {
  /** Reports the outcome of a turn. Sent by the session when the turn has ended. */
  'exchange.settled': { input: ExchangeOutcome; reply: undefined }
  /**
   * Sent by the queue when an errand has ended. A failed errand ends its exchange. A successful one
   * changes nothing, because the session reports the outcome of the turn.
   */
  'job.settled': RunCommands['job.settled']
}

/**
 * The command that the executor of the errand sends to start the turn of an exchange in a session.
 * A repeat changes nothing.
 */
export interface ExchangeOpening {
  readonly place: SessionLocation
  readonly exchange_id: string
  readonly turn_id: string
  readonly asker: TurnWork['asker']
  readonly definition: TurnDefinition
  readonly content: readonly Block[]
  readonly channel: TurnExchange
  /** Id of the root message of the thread; absent outside of threads. */
  readonly root?: string
  /** The title of the session if this command creates it. */
  readonly title: string
  readonly private: boolean
}
/**
 * The data about its channel that a turn of an exchange stores, so that mentions in the answer can
 * be found. `id`: id of the channel. `names`: names of the agents that can be mentioned, by id.
 */
export interface TurnExchange {
  readonly id: string
  readonly names: Readonly<Record<string, string>>
}
