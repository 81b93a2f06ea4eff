/**
 * What a channel knows: its settings, its members, its pinned messages, and how many messages there were. Messages
 * themselves are not kept: what never changes about one (its place, its sender, its thread) comes with the command that
 * refers to it.
 */
import { limits, type Channel, type ChannelMember, type ChannelSettings, type Person } from '../../protocol/channels.ts'
import { timestamp } from '../../protocol/common.ts'
import { own } from '../../protocol/lookup.ts'
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
}
/** A channel that is there. */
export type Open = ChannelState & { readonly settings: ChannelSettings }

/** A channel before it is opened. */
export const unopened = (): ChannelState => ({ holder: '', members: {}, pinned: {}, message_seq: 0 })

/** The record of the channel as clients see it. */
export const recordOf = ({ settings, members, message_seq, last_message_at }: Open): Channel =>
  ({ ...settings, member_count: Object.keys(members).length, message_seq, ...(last_message_at !== undefined && { last_message_at }) })

/** The record of a new member, who has read nothing. */
export const bornMember = (channel_id: string, { id, kind }: Person, role: ChannelMember['role'], cause: Cause): ChannelMember => ({
  channel_id, member_id: id, kind, role, ...(kind === 'user' ? { user_id: id } : { agent_id: id }), added_by: cause.principal.id, joined_at: timestamp(cause.at), last_read_seq: 0,
})

export const memberOf = ({ members }: ChannelState, id: string): ChannelMember | undefined => own(members, id)
/** Whether the messages and members of the channel can be seen by a principal. */
export const isReadable = ({ settings, members }: Open, id: string): boolean => !settings.private || own(members, id) !== undefined
/** Whether one more member of this kind has room. */
export const hasRoom = ({ members }: ChannelState, kind: Person['kind']): boolean =>
  Object.keys(members).length < limits.members && (kind !== 'agent' || Object.values(members).filter((member) => member.kind === 'agent').length < limits.agents)
