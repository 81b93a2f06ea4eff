/**
 * Exchanges: requests to agents that are members of channels, and their answers. A message that
 * wakes an agent starts an exchange in the commit that stores the message. The exchange is one turn
 * of the agent's session for the channel or thread; the turn's answer is posted below the message.
 *
 *     message → exchange → errand that looks up the turn's data → turn in the session → answer
 *
 * Invariants:
 * E1. An agent has at most one exchange per thread (and one outside of threads). Messages that wake
 *     it meanwhile are answered by the next exchange, whose turn sees everything written since.
 * E2. A message wakes an agent once, because both are in one commit. The turn has the id that the
 *     exchange started with, so a repeat starts no second turn.
 * E3. An agent never wakes itself. Agents wake each other only by name, and only while a thread has
 *     at most `STREAK` consecutive agent messages without one of a person; pending answers count.
 */
import { type Static, Type } from 'typebox'
import { Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { Ending, TurnWork } from '../sessions/bookkeeping.ts'
import type { Place } from '../sessions/commands.ts'
import type { Block } from '../sessions/turns/blocks.ts'
import type { TurnDefinition } from '../sessions/turns/definition.ts'

/**
 * The maximum number of consecutive agent messages in a thread up to which agents wake each other.
 */
export const STREAK = 8
/**
 * The number of threads per channel for which the channel stores how far agents have read and how
 * many consecutive messages agents have written.
 */
export const REMEMBERED = 500

/** The cause of waking an agent: the message, and the principal that wrote it. */
export interface Wake {
  readonly message_id: string
  /** Root of the thread that contains the message; absent outside of threads. */
  readonly root?: string
  readonly asker: TurnWork['asker']
}
/**
 * One exchange. `id`: `cex_…`. The agent sees the messages after `after_seq`, up to `through_seq`.
 */
export interface Exchange extends Wake {
  readonly id: string
  readonly agent_id: string
  readonly after_seq: number
  readonly through_seq: number
  /** Ids of the errand that looks up what the turn needs, and of the turn. */
  readonly job_id: string
  readonly turn_id: string
}
/** The key of an agent's session for a channel or a thread. */
export const sessionKeyOf = (channel_id: string, root: string | undefined): string =>
  `channel:${channel_id}${root === undefined ? '' : `:${root}`}`
const KEY = /^channel:(chan_\w+)(?::|$)/
/** The channel that a session key refers to; undefined when it refers to none. */
export const channelOfKey = (session_key: string): string | undefined => KEY.exec(session_key)?.[1]

/** A request to an agent in a channel and its outcome, as readers of the channel see it. */
export const ExchangeRecord = Type.Object({
  id: Type.String(),
  channel_id: Type.String(),
  agent_id: Type.String(),
  message_id: Type.String({ description: 'The message that called the agent' }),
  reply_to: Type.Optional(Type.String({ description: 'Root of the thread of that message' })),
  status: Type.Enum(['running', 'completed', 'failed', 'cancelled']),
  turn_id: Type.String({ description: 'The turn that answers; it may never have begun' }),
  session_id: Type.Optional(Type.String({ description: 'Its session, once the turn is over' })),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  created_at: Timestamp,
  ended_at: Type.Optional(Timestamp),
})
export type ExchangeRecord = Static<typeof ExchangeRecord>

/** Changes of a channel's exchanges. */
export type ExchangeEvent =
  | (Event & { readonly type: 'exchange.begun'; readonly id: string; readonly exchange: Exchange })
  /** The agent was woken again during an exchange; the next exchange answers. */
  | (Event & { readonly type: 'exchange.deferred'; readonly id: string; readonly wake: Wake })
  /**
   * `unheard`: the agent has not seen the messages of this exchange; the next exchange includes
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
 * The outcome of an exchange's turn. `text`: the agent's last text; `mentioned`: agents that the
 * text mentions.
 */
export interface ExchangeOutcome extends Pick<Ending, 'status' | 'error_type' | 'error_message'> {
  readonly exchange_id: string
  readonly session_id: string
  readonly turn_id: string
  readonly text?: string
  readonly mentioned?: readonly string[]
}
/**
 * Commands handled by a channel. They are total: late, repeated or foreign commands change nothing.
 */
export type ExchangeCommands = {
  /** From the session: the turn has ended. */
  'exchange.settled': { input: ExchangeOutcome; reply: undefined }
  /**
   * From the queue: the errand has ended. A success changes nothing, because the session reports
   * the outcome; a failure ends the exchange.
   */
  'job.settled': RunCommands['job.settled']
}

/**
 * The request that starts an exchange's turn in a session; the executor of the errand sends it. A
 * repeat changes nothing.
 */
export interface ExchangeOpening {
  readonly place: Place
  readonly exchange_id: string
  readonly turn_id: string
  readonly asker: TurnWork['asker']
  readonly definition: TurnDefinition
  readonly content: readonly Block[]
  readonly channel: TurnExchange
  /** The root message of the thread. */
  readonly root?: string
  /** The title of a new session. */
  readonly title: string
  readonly private: boolean
}
/**
 * The channel data that a turn stores for its answer. `names`: names of the agents that can be
 * mentioned there, by id.
 */
export interface TurnExchange {
  readonly id: string
  readonly names: Readonly<Record<string, string>>
}
