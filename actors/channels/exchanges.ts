/**
 * Agents in a channel: which agents a message wakes, the exchanges in progress, and the answers.
 * The invariants are E1–E3 of protocol/channels/exchange.ts. A message, the exchanges that it
 * starts and the jobs that prepare their turns are committed together.
 */

import {
  type Exchange,
  type ExchangeCommands,
  type ExchangeOutcome,
  type ExchangeTurn,
  MAX_STREAK,
  type TurnsAtDeletion,
  type Wake,
} from '../../protocol/channels/exchange.ts'
import type { ChannelEvent, ChannelMember, ChannelMessage } from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { ERRANDS, type Errand, errandJob } from '../../protocol/errand.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import { confirmationSettled } from './confirmations.ts'
import { type ChannelState, isOpen, memberOf, type OpenChannel, talkKey } from './state.ts'

/** Events and commands that follow from a message or from the start of an exchange. */
interface Follows {
  readonly events: readonly ChannelEvent[]
  readonly tells: readonly Tell[]
}
/**
 * The agents that a message concerns. `mentioned`: the agents that the message mentions; `thread`:
 * the agent that started its thread, and the agents that earlier messages in it woke.
 */
export interface Calls {
  readonly mentioned?: readonly string[]
  readonly thread?: readonly string[]
}
const queueOf = ({ shard }: Cause): Tell['to'] => ({ kind: 'queue', id: `${shard}.${ERRANDS}` })

/**
 * Returns the ids of the agents that a message wakes. In a direct message, a message from a person
 * wakes all agents. In any other channel, such a message wakes the agents that it mentions and the
 * agents of its thread. A message from an agent wakes only agents that it mentions. A thread may
 * have at most `MAX_STREAK` consecutive messages from agents, including pending answers. Agents
 * beyond this limit are not woken.
 */
function wokenBy(
  { settings, members, streaks, talks }: OpenChannel,
  message: ChannelMessage,
  { mentioned = [], thread = [] }: Calls,
): string[] {
  const agents = Object.values(members)
    .filter(({ kind, member_id }) => kind === 'agent' && member_id !== message.sender_id)
    .map(({ member_id }) => member_id)
  if (message.sender_type !== 'agent')
    return settings.kind === 'dm'
      ? agents
      : agents.filter((id) => mentioned.includes(id) || thread.includes(id))
  const { reply_to = '' } = message
  const coming = Object.values(talks)
    .flatMap(({ exchange, next }) => [exchange, ...(next ? [next] : [])])
    .filter((wake) => threadOf(wake) === reply_to).length
  return agents
    .filter((id) => mentioned.includes(id))
    .slice(0, Math.max(0, MAX_STREAK - (getOwn(streaks, reply_to) ?? 0) - 1 - coming))
}
/** Returns the id of the root of the thread in which an answer is posted. */
const threadOf = ({ root, message_id }: Wake): string => root ?? message_id

/**
 * Begins an exchange. If the agent already has an exchange in the same thread, defers the new one
 * until that exchange ends.
 * @param through sequence number of the newest message.
 */
function wake(
  { settings, talks, heard }: OpenChannel,
  agent_id: string,
  woken: Wake,
  through: number,
  cause: Cause,
): Follows {
  const key = talkKey(agent_id, woken.root)
  const talk = getOwn(talks, key)
  if (talk)
    return { events: [{ type: 'exchange.deferred', id: talk.exchange.id, wake: woken }], tells: [] }
  return begin(settings.id, agent_id, woken, getOwn(heard, key) ?? 0, through, cause)
}
function begin(
  channel_id: string,
  agent_id: string,
  woken: Wake,
  after_seq: number,
  through_seq: number,
  cause: Cause,
): Follows {
  const exchange: Exchange = {
    ...woken,
    id: cause.mint('exchange'),
    agent_id,
    after_seq,
    through_seq,
    job_id: cause.mint('job'),
    turn_id: cause.mint('turn'),
  }
  return {
    events: [{ type: 'exchange.begun', id: exchange.id, exchange }],
    tells: [
      {
        to: queueOf(cause),
        name: 'queue.enqueue',
        input: errandJob(exchange.job_id, { kind: 'channel', id: channel_id }, agent_id, cause.at),
      },
    ],
  }
}
/** Stores a message and wakes the agents that `wokenBy` returns. */
export function postMessage(
  state: OpenChannel,
  message: ChannelMessage,
  calls: Calls,
  asker: Wake['asker'],
  cause: Cause,
): Follows {
  const wakes = wokenBy(state, message, calls)
  const woken: Wake = {
    message_id: message.id,
    ...(message.reply_to !== undefined && { root: message.reply_to }),
    asker,
  }
  const begun = wakes.map((id) => wake(state, id, woken, message.seq, cause))
  return {
    events: [
      { type: 'message.created', message, ...(wakes.length > 0 && { wakes }) },
      ...begun.flatMap(({ events }) => events),
    ],
    tells: begun.flatMap(({ tells }) => tells),
  }
}

const NOTHING: Decision<ChannelEvent, undefined> = { events: [], reply: undefined }
/**
 * Handles the end of an exchange's turn: posts the answer, and begins the deferred exchange if the
 * agent was woken in the meantime.
 */
export function settled(
  state: ChannelState,
  outcome: ExchangeCommands['exchange.settled']['input'],
  cause: Cause,
): Decision<ChannelEvent, undefined> {
  return close(
    state,
    Object.values(state.talks).find(({ exchange }) => exchange.id === outcome.exchange_id),
    outcome,
    cause,
  )
}
/**
 * Handles the end of a background job of the channel. A completed exchange job has opened the turn
 * in the agent's session. Any other outcome ends the exchange without a turn.
 */
export function errandSettled(
  state: ChannelState,
  input: ExchangeCommands['job.settled']['input'],
  cause: Cause,
): Decision<ChannelEvent, undefined> {
  const confirmed = confirmationSettled(state, input, cause)
  if (confirmed) return confirmed
  const { job_id, outcome: status, error_type, error_message } = input
  if (status === 'completed') return NOTHING
  return close(
    state,
    Object.values(state.talks).find(({ exchange }) => exchange.job_id === job_id),
    {
      status,
      ...(error_type !== undefined && { error_type }),
      ...(error_message !== undefined && { error_message }),
    },
    cause,
    true,
  )
}

/** The end of an exchange whose answer came after the channel had been archived. */
const unposted = {
  status: 'cancelled',
  error_type: 'channel_archived',
  error_message: 'The channel was archived before the agent answered, so the answer is not posted.',
} as const

/**
 * Ends an exchange.
 * @param unheard whether the exchange ended without a turn, so that the agent has not been shown
 * its messages. The next exchange then includes them.
 */
function close(
  state: ChannelState,
  talk: ChannelState['talks'][string] | undefined,
  outcome: Omit<ExchangeOutcome, 'exchange_id' | 'session_id' | 'turn_id'> &
    Partial<ExchangeOutcome>,
  cause: Cause,
  unheard = false,
): Decision<ChannelEvent, undefined> {
  if (!talk || !isOpen(state)) return NOTHING
  const { exchange, next } = talk
  const archived = state.settings.archived_at !== undefined
  const { session_id, mentioned = [] } = outcome
  const { status, error_type, error_message } =
    archived && outcome.status === 'completed' ? unposted : outcome
  const ended: ChannelEvent = {
    type: 'exchange.ended',
    id: exchange.id,
    status,
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
    ...(unheard && { unheard }),
    ...(session_id !== undefined && { session_id }),
  }
  // An agent that is no longer a member posts nothing, and no agent posts in an archived channel.
  if (!memberOf(state, exchange.agent_id) || archived) return { events: [ended], reply: undefined }
  // A turn that failed or was cancelled posts nothing. The record of the exchange contains the
  // error.
  const content = status === 'completed' ? outcome.text : undefined
  const said =
    content === undefined
      ? undefined
      : postMessage(
          without(state, talk),
          answerOf(state, exchange, content, session_id, cause),
          { mentioned },
          { id: exchange.agent_id, type: 'agent' },
          cause,
        )
  const again =
    next &&
    begin(
      state.settings.id,
      exchange.agent_id,
      next,
      unheard ? exchange.after_seq : exchange.through_seq,
      state.message_seq + (said ? 1 : 0),
      cause,
    )
  return {
    events: [ended, ...(said?.events ?? []), ...(again?.events ?? [])],
    tells: [...(said?.tells ?? []), ...(again?.tells ?? [])],
    reply: undefined,
  }
}
/**
 * Returns the channel without the exchange that has ended. If another exchange was deferred, it
 * takes the place of the ended one.
 */
function without(
  state: OpenChannel,
  { exchange, next }: ChannelState['talks'][string],
): OpenChannel {
  const { [talkKey(exchange.agent_id, exchange.root)]: _, ...talks } = state.talks
  return {
    ...state,
    talks: next
      ? {
          ...talks,
          [talkKey(exchange.agent_id, exchange.root)]: { exchange: { ...exchange, ...next } },
        }
      : talks,
  }
}
/**
 * Returns the answer as a message: in the thread of the message that woke the agent or, outside of
 * threads, as a reply to that message.
 */
function answerOf(
  { settings, message_seq }: OpenChannel,
  exchange: Exchange,
  content: string,
  session_id: string | undefined,
  cause: Cause,
): ChannelMessage {
  const { agent_id, id, turn_id } = exchange
  return {
    id: cause.mint('message'),
    channel_id: settings.id,
    seq: message_seq + 1,
    content,
    metadata: {
      channel_exchange_id: id,
      ...(session_id !== undefined && { turn_id }),
    },
    pinned: false,
    reply_to: threadOf(exchange),
    sender_id: agent_id,
    sender_type: 'agent',
    sender_agent_id: agent_id,
    ...(session_id !== undefined && { sender_session_id: session_id }),
    created_at: timestamp(cause.at),
  }
}

/**
 * Maximum number of exchanges that end in one commit when their agent leaves. It is below the number
 * of events that one command may cause.
 */
const MAX_ENDED = 400
/**
 * Returns the events that end the exchanges of a member that leaves. The outcomes of their turns
 * then change nothing.
 */
export const endExchangesOf = ({ talks }: ChannelState, member_id: string): ChannelEvent[] =>
  Object.values(talks)
    .filter(({ exchange }) => exchange.agent_id === member_id)
    .slice(0, MAX_ENDED)
    .map(({ exchange: { id } }) => ({
      type: 'exchange.ended',
      id,
      status: 'cancelled',
      error_type: 'member_removed',
      error_message: 'The agent is no longer a member of the channel.',
    }))

/** Returns the input of a background job of the channel, for its executor. */
export function errandOf(state: ChannelState, { job_id }: { readonly job_id: string }): Errand {
  const { ending } = state
  if (ending?.job_id === job_id)
    return { errand: 'end_turns', channel_id: ending.channel_id, turns: ending.turns }
  const member_ids = getOwn(state.confirmations, job_id)
  if (member_ids && isOpen(state))
    return { errand: 'confirm', channel_id: state.settings.id, member_ids }
  const talk = Object.values(state.talks).find(({ exchange }) => exchange.job_id === job_id)
  if (!talk || !isOpen(state) || !memberOf(state, talk.exchange.agent_id)) return { errand: 'none' }
  const { id, name, topic, kind, private: closed } = state.settings
  const members = Object.values(state.members)
  const agents = members
    .filter((member: ChannelMember) => member.kind === 'agent')
    .map(({ member_id }) => member_id)
  return {
    errand: 'exchange',
    exchange: talk.exchange,
    channel: { id, name, ...(topic !== undefined && { topic }), kind, private: closed },
    agents,
    alone: kind === 'dm' && members.length === 2,
  }
}
/**
 * Returns the turns that are in progress when the channel is deleted, and the command that enqueues
 * the background job that cancels them. Otherwise they would continue in sessions that no caller may
 * read any more.
 */
export function endTurns(
  { settings: { id }, talks }: OpenChannel,
  cause: Cause,
): { readonly ending: TurnsAtDeletion; readonly tell: Tell } | undefined {
  const turns = Object.values(talks).map(
    ({ exchange: { agent_id, root, turn_id } }): ExchangeTurn => ({
      agent_id,
      turn_id,
      ...(root !== undefined && { root }),
    }),
  )
  if (turns.length === 0) return undefined
  const job_id = cause.mint('job')
  const input = errandJob(job_id, { kind: 'channel', id }, id, cause.at)
  return {
    ending: { job_id, channel_id: id, turns },
    tell: { to: queueOf(cause), name: 'queue.enqueue', input },
  }
}
/** Returns the commands that cancel the background jobs of a deleted channel. */
export const cancelBackgroundJobs = (
  { talks, confirmations }: ChannelState,
  cause: Cause,
): Tell[] => {
  const job_ids = [
    ...Object.values(talks).map(({ exchange }) => exchange.job_id),
    ...Object.keys(confirmations),
  ]
  return job_ids.length === 0
    ? []
    : [
        {
          to: queueOf(cause),
          name: 'queue.cancel',
          input: { job_ids, reason: 'the channel was deleted' },
        },
      ]
}
