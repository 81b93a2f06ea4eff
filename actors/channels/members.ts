/**
 * Members of a channel: additions, removals and read markers. The last administrator of a channel
 * cannot leave while there are other members. A channel can still end up without an administrator:
 * if the last administrator is expelled because that principal was disabled or archived, or leaves
 * as the only member before others join.
 */
import type { Api } from '../../protocol/api.ts'
import type {
  ChannelCommands,
  ChannelEvent,
  ChannelMember,
  Person,
} from '../../protocol/channels/schema.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { Cause, Decision } from '../actor.ts'
import { confirm } from './confirmations.ts'
import { endExchangesOf } from './exchanges.ts'
import {
  type ChannelState,
  hasRoom,
  isOpen,
  isReadable,
  memberOf,
  newMember,
  type OpenChannel,
} from './state.ts'

/**
 * Data that the gateway adds to the input of `channel.add_member`. `person`: the principal to add;
 * absent if there is no such principal.
 */
export interface Found {
  readonly person?: Person
}
type Add = Input<Api['channel.add_member']> & Found

/** Returns the channel, or refuses with `not_found` if the caller may not see its members. */
function seen(state: ChannelState, { principal }: Cause): OpenChannel | Refusal {
  return isOpen(state) && isReadable(state, principal.id) ? state : refuse('not_found')
}
const fixed = refuseFields({
  field: 'kind',
  message: 'the members of a direct message cannot be changed; open another direct message',
})
/** Returns the events that remove a member. The exchanges of an agent end before it leaves. */
const removed = (state: ChannelState, member: ChannelMember): ChannelEvent[] => [
  ...endExchangesOf(state, member.member_id),
  { type: 'member.removed', id: `${member.channel_id}:${member.member_id}`, member },
]

/**
 * Adds a member. A caller that is not an administrator can only add itself to a public channel, as
 * a plain member.
 */
export function add(
  state: ChannelState,
  input: Add,
  cause: Cause,
): Decision<ChannelEvent, ChannelMember> {
  const found = seen(state, cause)
  if ('refused' in found) return found
  const { settings } = found
  if (settings.kind === 'dm') return fixed
  const field =
    input.agent_id !== undefined
      ? 'agent_id'
      : input.member_id !== undefined
        ? 'member_id'
        : 'user_id'
  const { person, role = 'member' } = input
  const admin = memberOf(state, cause.principal.id)?.role === 'admin'
  if (!admin && (input[field] !== cause.principal.id || role === 'admin'))
    return refuse(
      'forbidden',
      undefined,
      'Only an administrator of the channel may add others, or administrators.',
    )
  if (settings.archived_at !== undefined) return refuse('channel_archived')
  if (
    !person ||
    (input.user_id !== undefined && person.kind !== 'user') ||
    (input.agent_id !== undefined && person.kind !== 'agent')
  ) {
    return refuseFields({
      field,
      message: 'there is no such principal in the project',
      actual: input[field],
    })
  }
  if (memberOf(state, person.id)) return refuse('already_member', { member_id: person.id })
  if (!hasRoom(state, person.kind))
    return refuse(
      'conflict',
      { member_count: Object.keys(state.members).length },
      'The channel has the maximum number of members.',
    )
  const member = newMember(settings.id, person, role, cause)
  const { event, tell } = confirm(settings.id, [person.id], cause)
  return {
    events: [{ type: 'member.added', id: `${settings.id}:${person.id}`, member }, event],
    tells: [tell],
    reply: member,
  }
}

/**
 * Removes a member. A member may remove itself, and an administrator may remove other members. The
 * last administrator cannot leave while there are other members.
 */
export function leave(
  state: ChannelState,
  { user_id }: Input<Api['channel.remove_member']>,
  cause: Cause,
): Decision<ChannelEvent, undefined> {
  const found = seen(state, cause)
  if ('refused' in found) return found
  const { settings, members } = found
  if (settings.kind === 'dm') return fixed
  if (user_id !== cause.principal.id && memberOf(state, cause.principal.id)?.role !== 'admin')
    return refuse('forbidden', undefined, 'Only an administrator of the channel may remove others.')
  const member = memberOf(state, user_id)
  if (!member) return refuse('not_found')
  if (settings.archived_at !== undefined) return refuse('channel_archived')
  const all = Object.values(members)
  if (
    member.role === 'admin' &&
    all.length > 1 &&
    all.filter(({ role }) => role === 'admin').length === 1
  )
    return refuse('last_admin')
  return { events: removed(found, member), reply: undefined }
}

/**
 * Removes a member that is no longer an active principal, even from an archived channel. In direct
 * messages, archived principals are removed, but disabled principals are not.
 */
export function expel(
  state: ChannelState,
  { member_id, disabled = false }: ChannelCommands['channel.expel']['input'],
): Decision<ChannelEvent, undefined> {
  const member = memberOf(state, member_id)
  const goes = member && isOpen(state) && !(disabled && state.settings.kind === 'dm')
  return { events: goes ? removed(state, member) : [], reply: undefined }
}

/** Moves the caller's read marker forward. An older position changes nothing. */
export function markRead(
  state: ChannelState,
  { user_id, seq }: Input<Api['channel.mark_read']>,
  cause: Cause,
): Decision<ChannelEvent, ChannelMember> {
  const found = seen(state, cause)
  if ('refused' in found) return found
  if (user_id !== cause.principal.id)
    return refuse('forbidden', undefined, 'Only the member itself can move its read marker.')
  const member = memberOf(state, user_id)
  if (!member) return refuse('not_found')
  if (seq > state.message_seq)
    return refuseFields({
      field: 'seq',
      message: 'is after the newest message',
      expected: { maximum: state.message_seq },
      actual: seq,
    })
  if (seq <= member.last_read_seq) return { events: [], reply: member }
  return {
    events: [{ type: 'member.read', member_id: user_id, seq }],
    reply: { ...member, last_read_seq: seq },
  }
}
