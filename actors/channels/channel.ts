/**
 * The channel actor: the single writer of a channel's settings, members and messages. This file
 * contains the actor's tables. The decisions are in the other files of this folder.
 *
 * Invariants:
 * C1. Messages are numbered 1, 2, 3… without gaps, and a number is never used again.
 * C2. The state does not grow with the number of messages. It contains members, pinned messages,
 *     bounded data about the latest threads, and the exchanges and confirmations in progress.
 * C3. A principal that may not see the channel gets the same replies as if the channel did not
 *     exist.
 * C4. A deleted channel is never reopened. A new channel with the same name has another id.
 */
import type { Api } from '../../protocol/api.ts'
import type { BindingCommands, BoundEvent } from '../../protocol/blueprints/stored.ts'
import type {
  ChannelCommands,
  ChannelEvent,
  ChannelMember,
} from '../../protocol/channels/schema.ts'
import { patch } from '../../protocol/patch.ts'
import type { Actor } from '../actor.ts'
import { toPostedArtifacts } from '../artifacts/posts.ts'
import { managed, singleResource } from '../blueprints/managed.ts'
import { evolveConfirmations } from './confirmations.ts'
import { errandOf, errandSettled, settled } from './exchanges.ts'
import { add, expel, type Found, leave, markRead } from './members.ts'
import { type EditFacts, edit, type SendFacts, send } from './messages.ts'
import { type Caller, open, remove, reopen, update } from './settings.ts'
import {
  type ChannelState,
  countStreak,
  endTalks,
  evolveExchange,
  initialChannel,
  memberOf,
} from './state.ts'

const resource = singleResource<ChannelState>('channel', ({ settings }) => settings)

/** Data that the gateway adds to the input of rows, by row name. */
type Extra = {
  'channel.update': Caller
  'channel.delete': Caller
  'channel.add_member': Found
  'channel.send': SendFacts
  'channel.edit': EditFacts
}

function readUpTo(state: ChannelState, id: string, seq: number): void {
  const member = memberOf(state, id)
  if (member && member.last_read_seq < seq) state.members[id] = { ...member, last_read_seq: seq }
}
const byId = (members: readonly ChannelMember[]): Record<string, ChannelMember> =>
  Object.fromEntries(members.map((member) => [member.member_id, member]))

/**
 * Creates the channel actor.
 * @param brand the configured brand, which is part of the names of permissions.
 */
export const channelActor = ({
  brand,
}: {
  readonly brand: string
}): Actor<
  ChannelState,
  ChannelEvent | BoundEvent,
  Api,
  'channel',
  ChannelCommands & BindingCommands,
  Extra
> => ({
  kind: 'channel',
  initial: initialChannel,
  decide: {
    'channel.open': managed(resource.managed, 'create', open),
    'channel.reopen': reopen,
    'channel.update': managed(resource.managed, 'change', update),
    'channel.delete': managed(resource.managed, 'delete', remove),
    ...resource.arms,
    'channel.add_member': add,
    'channel.remove_member': leave,
    'channel.expel': expel,
    'channel.mark_read': markRead,
    'channel.send': send(brand),
    'channel.edit': edit,
    'exchange.settled': settled,
    'job.settled': errandSettled,
  },
  records: { 'channel.update': ({ settings }) => settings },
  evolve: {
    'channel.created': (state, { channel: settings, members, holder }) => ({
      ...state,
      settings,
      holder,
      members: byId(members),
    }),
    'channel.updated': (state, { channel: change }) =>
      state.settings ? { ...state, settings: patch(state.settings, change) } : state,
    'channel.deleted': (_, { ending }) => ({
      ...initialChannel(),
      deleted: true,
      ...(ending && { ending }),
    }),
    ...resource.evolve,
    'member.added': (state, { member }) => {
      state.members[member.member_id] = member
      return state
    },
    'member.removed': (state, { member }) => {
      delete state.members[member.member_id]
      endTalks(state, member.member_id)
      return state
    },
    'member.read': (state, { member_id, seq }) => {
      readUpTo(state, member_id, seq)
      return state
    },
    'message.created': (state, { message }) => {
      state.message_seq = message.seq
      state.last_message_at = message.created_at
      // Sending a message marks all messages up to it as read by the principal that sent it.
      readUpTo(state, message.sent_by ?? message.sender_id, message.seq)
      countStreak(state, message)
      return state
    },
    'exchange.begun': (state, event) => {
      readUpTo(state, event.exchange.agent_id, event.exchange.through_seq)
      return evolveExchange(state, event)
    },
    'exchange.deferred': evolveExchange,
    'exchange.ended': evolveExchange,
    ...evolveConfirmations,
    'message.updated': (state, { id, message }) => {
      if (message.pinned === true) state.pinned[id] = true
      else if (message.pinned === false) delete state.pinned[id]
      return state
    },
  },
  // The owner of an artifact shares it by posting it.
  react: {
    'message.created': ({ message: { id, metadata, sent_by, sender_id } }, { id: channel_id }) =>
      toPostedArtifacts(metadata, sent_by ?? sender_id, channel_id, id),
    'message.updated': ({ id, message: { metadata }, metadata_by }, { id: channel_id }) =>
      metadata_by === undefined ? [] : toPostedArtifacts(metadata, metadata_by, channel_id, id),
  },
  ask: {
    /** The input of a background job, for its executor. */
    job_spec: errandOf,
    resource: (state) => resource.asked(state),
  },
  // Snapshots of older releases lack newer fields, which get their initial values.
  recover: (state) => ({ ...initialChannel(), ...state }),
  ended: ({ deleted }) => deleted === true,
})
