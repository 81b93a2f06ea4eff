/**
 * Exchanges: what agents that are members of channels are asked, and what they answer. A message that wakes an agent begins an
 * exchange in the commit that stores the message; the exchange is one turn of the agent's session for the channel, or for the
 * thread; the answer of the turn is posted below the message.
 *
 *     message → exchange begun → errand: look up what the turn needs → turn in the session → exchange ended, answer posted
 *
 * Invariants:
 * E1. An agent has at most one exchange per thread (and one outside of threads); who wakes it meanwhile is answered by the next
 *     one, which is shown everything that was said since.
 * E2. A message wakes an agent once, because the two are one commit; the turn has the id that the exchange was begun with, so
 *     whatever is repeated starts no second one.
 * E3. An agent never wakes itself. Agents wake each other by name only, and only while no more than `STREAK` messages of agents
 *     come to stand in a thread without one of a person, counting the answers that are on their way.
 */
import { Type, type Static } from 'typebox'
import { Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Block } from '../sessions/turns/blocks.ts'
import type { Ending, TurnWork } from '../sessions/bookkeeping.ts'
import type { Place } from '../sessions/commands.ts'
import type { TurnDefinition } from '../sessions/turns/definition.ts'
import type { RunCommands } from '../internal.ts'

/** Messages of agents in a thread without one of a person between them, at most, as far as agents wake agents. */
export const STREAK = 8
/** Threads of a channel of which it is remembered how far agents were shown them, and how many agents spoke in a row. */
export const REMEMBERED = 500

/** Who woke an agent, by which message. */
export interface Wake {
  readonly message_id: string
  /** Root of the thread that the message stands in; absent outside of threads. */
  readonly root?: string
  readonly asker: TurnWork['asker']
}
/** One exchange. `id`: `cex_…`. The agent is shown what lies after `after_seq` and not behind `through_seq`. */
export interface Exchange extends Wake {
  readonly id: string
  readonly agent_id: string
  readonly after_seq: number
  readonly through_seq: number
  /** The errand that looks up what the turn needs, and the turn. */
  readonly job_id: string
  readonly turn_id: string
}
/** Key of the session of a channel or a thread with an agent. */
export const sessionKeyOf = (channel_id: string, root: string | undefined): string =>
  `channel:${channel_id}${root === undefined ? '' : `:${root}`}`
const KEY = /^channel:(chan_\w+)(?::|$)/
/** The channel that the key of a session names; undefined when it names none. */
export const channelOfKey = (session_key: string): string | undefined => KEY.exec(session_key)?.[1]

/** What an agent was asked in a channel, and what came of it, for readers of the channel. */
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

/** What happened to exchanges of a channel. */
export type ExchangeEvent =
  | (Event & { readonly type: 'exchange.begun'; readonly id: string; readonly exchange: Exchange })
  /** Woken again while an exchange is under way: the next one answers it. */
  | (Event & { readonly type: 'exchange.deferred'; readonly id: string; readonly wake: Wake })
  /** `unheard`: the agent was not shown what it was asked, and is with what it is asked next. */
  | (Event & {
      readonly type: 'exchange.ended'
      readonly id: string
      readonly unheard?: true
      /** The session of the turn, when there was a turn. */
      readonly session_id?: string
    } & Pick<Ending, 'status' | 'error_type' | 'error_message'>)

/** How the turn of an exchange ended. `text`: what the agent said last; `mentioned`: agents that it called. */
export interface ExchangeOutcome extends Pick<Ending, 'status' | 'error_type' | 'error_message'> {
  readonly exchange_id: string
  readonly session_id: string
  readonly turn_id: string
  readonly text?: string
  readonly mentioned?: readonly string[]
}
/** Decided by a channel; total: late, repeated or foreign, they change nothing. */
export type ExchangeCommands = {
  /** From the session: the turn is over. */
  'exchange.settled': { input: ExchangeOutcome; reply: undefined }
  /** From the queue: the errand is over. What it did is with the session; a failure ends the exchange. */
  'job.settled': RunCommands['job.settled']
}

/** What a session is told of an exchange, by whoever looked up what the turn needs. A repeat changes nothing. */
export interface ExchangeOpening {
  readonly place: Place
  readonly exchange_id: string
  readonly turn_id: string
  readonly asker: TurnWork['asker']
  readonly definition: TurnDefinition
  readonly content: readonly Block[]
  readonly channel: TurnExchange
  /** Root of the thread. */
  readonly root?: string
  /** Of a new session. */
  readonly title: string
  readonly private: boolean
}
/** What a turn keeps of the channel that it answers. `names`: of the agents that can be called there, by id. */
export interface TurnExchange {
  readonly id: string
  readonly names: Readonly<Record<string, string>>
}
