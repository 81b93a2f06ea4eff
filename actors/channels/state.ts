/**
 * The state of a channel: its settings, members and pinned messages, the number of its messages,
 * and the exchanges and confirmations in progress. Messages are not stored here. A command that
 * refers to a message contains the facts about it that never change: its position, sender and
 * thread.
 */
import type { InternalBinding } from '../../protocol/blueprints/stored.ts'
import {
  type Exchange,
  type ExchangeEvent,
  MAX_THREAD_ENTRIES,
  type TurnsAtDeletion,
  type Wake,
} from '../../protocol/channels/exchange.ts'
import {
  type Channel,
  type ChannelMember,
  type ChannelMessage,
  type ChannelSettings,
  limits,
  type Person,
} from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause } from '../actor.ts'

export interface ChannelState {
  /** Absent before the channel is opened and after it is deleted. */
  settings?: ChannelSettings
  binding?: InternalBinding
  /** Id of the actor that holds the channel's name. */
  holder: string
  members: Record<string, ChannelMember>
  /** Ids of pinned messages. */
  pinned: Record<string, true>
  message_seq: number
  last_message_at?: string
  deleted?: true
  /** The turns that were in progress when the channel was deleted; absent: none. */
  ending?: TurnsAtDeletion
  /**
   * Exchanges in progress, by `talkKey`; `next`: the last wake-up that arrived during the exchange.
   */
  talks: Record<string, { readonly exchange: Exchange; readonly next?: Wake }>
  /**
   * Sequence number of the newest message that an agent was shown, by `talkKey`. Only the most
   * recently set keys are stored.
   */
  heard: Record<string, number>
  /** New members that are not confirmed yet, by the id of the job that confirms them. */
  confirmations: Record<string, readonly string[]>
  /**
   * Number of messages from agents since the last message from a person, by the id of the thread's
   * root ('' outside of threads). A thread without an entry counts as 0. Only the most recently
   * counted threads have an entry.
   */
  streaks: Record<string, number>
}
/** A channel that exists. */
export type OpenChannel = ChannelState & { readonly settings: ChannelSettings }
export const isOpen = (state: ChannelState): state is OpenChannel => state.settings !== undefined

/** Returns the state of a channel before it is opened. */
export const initialChannel = (): ChannelState => ({
  holder: '',
  members: {},
  pinned: {},
  message_seq: 0,
  talks: {},
  confirmations: {},
  heard: {},
  streaks: {},
})

/** Returns the API record of the channel. */
export const recordOf = ({
  settings,
  members,
  message_seq,
  last_message_at,
}: OpenChannel): Channel => ({
  ...settings,
  member_count: Object.keys(members).length,
  message_seq,
  ...(last_message_at !== undefined && { last_message_at }),
})

/** Returns the record of a new member, which has read no messages yet. */
export const newMember = (
  channel_id: string,
  { id, kind }: Person,
  role: ChannelMember['role'],
  cause: Cause,
): ChannelMember => ({
  channel_id,
  member_id: id,
  kind,
  role,
  ...(kind === 'user' ? { user_id: id } : { agent_id: id }),
  added_by: cause.principal.id,
  joined_at: timestamp(cause.at),
  last_read_seq: 0,
})

export const memberOf = ({ members }: ChannelState, id: string): ChannelMember | undefined =>
  getOwn(members, id)
/** Whether a principal may read the messages and the members of the channel. */
export const isReadable = ({ settings, members }: OpenChannel, id: string): boolean =>
  !settings.private || getOwn(members, id) !== undefined
/** Whether the channel has room for one more member of this kind. */
export const hasRoom = ({ members }: ChannelState, kind: Person['kind']): boolean =>
  Object.keys(members).length < limits.members &&
  (kind !== 'agent' ||
    Object.values(members).filter((member) => member.kind === 'agent').length < limits.agents)

/** Returns the key shared by all exchanges with one agent in one thread, or outside of threads. */
export const talkKey = (agent_id: string, root: string | undefined): string =>
  `${agent_id} ${root ?? ''}`
/** Sets a number in a map that keeps only the most recently set keys. Undefined removes the key. */
function remember(numbers: Record<string, number>, key: string, value: number | undefined): void {
  delete numbers[key]
  if (value === undefined) return
  numbers[key] = value
  const [oldest = ''] = Object.keys(numbers)
  if (Object.keys(numbers).length > MAX_THREAD_ENTRIES) delete numbers[oldest]
}
/** Counts a message from an agent. A message from a person resets the count. */
export const countStreak = (
  { streaks }: ChannelState,
  { sender_type, reply_to = '' }: ChannelMessage,
): void =>
  remember(
    streaks,
    reply_to,
    sender_type === 'agent' ? (getOwn(streaks, reply_to) ?? 0) + 1 : undefined,
  )
/**
 * Removes the exchanges of an agent that has left, and its positions in `heard`. Earlier releases
 * did not end these exchanges.
 */
export function endTalks({ talks, heard }: ChannelState, id: string): void {
  for (const key in talks) if (talks[key]?.exchange.agent_id === id) delete talks[key]
  for (const key in heard) if (key.startsWith(`${id} `)) delete heard[key]
}
/** Applies an event of an exchange. */
export function evolveExchange(state: ChannelState, event: ExchangeEvent): ChannelState {
  if (event.type === 'exchange.begun') {
    const { exchange } = event
    const key = talkKey(exchange.agent_id, exchange.root)
    state.talks[key] = { exchange }
    remember(state.heard, key, exchange.through_seq)
    return state
  }
  const [key, talk] =
    Object.entries(state.talks).find(([, { exchange }]) => exchange.id === event.id) ?? []
  if (key === undefined || !talk) return state
  if (event.type === 'exchange.deferred') state.talks[key] = { ...talk, next: event.wake }
  else {
    delete state.talks[key]
    if (event.unheard)
      remember(state.heard, key, talk.exchange.after_seq > 0 ? talk.exchange.after_seq : undefined)
  }
  return state
}
