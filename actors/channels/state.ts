/**
 * What a channel knows: its settings, its members, its pinned messages, how many messages there were, and what agents are
 * being asked. Messages themselves are not kept: what never changes about one (its place, its sender, its thread) comes with the command that
 * refers to it.
 */
import {
  REMEMBERED,
  type Exchange,
  type ExchangeEvent,
  type Wake,
} from '../../protocol/channels/exchange.ts'
import {
  limits,
  type Channel,
  type ChannelMember,
  type ChannelMessage,
  type ChannelSettings,
  type Person,
} from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause } from '../actor.ts'

export interface ChannelState {
  /** Absent before the channel is opened and after it was deleted. */
  settings?: ChannelSettings
  /** The actor of its name. */
  holder: string
  /** By id. */
  members: Record<string, ChannelMember>
  /** Ids of pinned messages. */
  pinned: Record<string, true>
  message_seq: number
  last_message_at?: string
  deleted?: true
  /** Exchanges under way, by `talkKey`; `next`: who woke the agent meanwhile, last. */
  talks: Record<string, { readonly exchange: Exchange; readonly next?: Wake }>
  /** Up to which message agents were shown threads, by `talkKey`; of the latest talks. */
  heard: Record<string, number>
  /** New members that are still to be confirmed, by the job of the errand. */
  confirmations: Record<string, readonly string[]>
  /** Messages of agents since the last one of a person, by root of the thread, '' outside of threads; of the latest threads, without zeros. */
  streaks: Record<string, number>
}
/** A channel that is there. */
export type OpenChannel = ChannelState & { readonly settings: ChannelSettings }
export const isOpen = (state: ChannelState): state is OpenChannel => state.settings !== undefined

/** A channel before it is opened. */
export const unopened = (): ChannelState => ({
  holder: '',
  members: {},
  pinned: {},
  message_seq: 0,
  talks: {},
  confirmations: {},
  heard: {},
  streaks: {},
})

/** The record of the channel as clients see it. */
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

/** The record of a new member, who has read nothing. */
export const bornMember = (
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
/** Whether the messages and members of the channel can be seen by a principal. */
export const isReadable = ({ settings, members }: OpenChannel, id: string): boolean =>
  !settings.private || getOwn(members, id) !== undefined
/** Whether one more member of this kind has room. */
export const hasRoom = ({ members }: ChannelState, kind: Person['kind']): boolean =>
  Object.keys(members).length < limits.members &&
  (kind !== 'agent' ||
    Object.values(members).filter((member) => member.kind === 'agent').length < limits.agents)

/** What an agent is asked in one thread, or outside of threads, is one talk. */
export const talkKey = (agent_id: string, root: string | undefined): string =>
  `${agent_id} ${root ?? ''}`
/** Set a number that is remembered of the latest keys only; undefined forgets it. */
function remember(numbers: Record<string, number>, key: string, value: number | undefined): void {
  delete numbers[key]
  if (value === undefined) return
  numbers[key] = value
  const [oldest = ''] = Object.keys(numbers)
  if (Object.keys(numbers).length > REMEMBERED) delete numbers[oldest]
}
/** Count a message of an agent, or begin anew with one of a person. */
export const countStreak = (
  { streaks }: ChannelState,
  { sender_type, reply_to = '' }: ChannelMessage,
): void =>
  remember(
    streaks,
    reply_to,
    sender_type === 'agent' ? (getOwn(streaks, reply_to) ?? 0) + 1 : undefined,
  )
/** The talks of somebody who left are over. */
export function endTalks({ talks, heard }: ChannelState, id: string): void {
  for (const key in talks) if (talks[key]?.exchange.agent_id === id) delete talks[key]
  for (const key in heard) if (key.startsWith(`${id} `)) delete heard[key]
}
/** How what happens to exchanges changes a channel. Whoever is shown messages has read them. */
export function talked(state: ChannelState, event: ExchangeEvent): ChannelState {
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
