/**
 * The actor that holds the name of a channel in its project or, for a direct message, the exact set
 * of members. Its id is derived from the name or the set. The channel is created in the same shard,
 * so name, channel and members are committed together. The commit that deletes a channel also
 * releases its name.
 *
 * Invariant: at most one existing channel has the name.
 */

import type { Api } from '../../protocol/api.ts'
import type { BlueprintClaim } from '../../protocol/blueprints/stored.ts'
import {
  type Channel,
  type ChannelMember,
  type ChannelNameCommands,
  type ChannelNameEvent,
  type ChannelSettings,
  limits,
  nameFaults,
  type Person,
} from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import type { Actor, Cause, Decision } from '../actor.ts'
import { newMember } from './state.ts'

interface ChannelNameState {
  /** Id of the channel that has the name. */
  channel?: string
}
/**
 * Data that the gateway adds to a creation: the name, and the members other than the creator,
 * without duplicates.
 */
interface Creation {
  readonly creation: { readonly name: string; readonly people: readonly Person[] }
}
type Create = Input<Api['channel.create']> & Creation & BlueprintClaim

function born(
  id: string,
  input: Create,
  cause: Cause,
): { channel: ChannelSettings; members: ChannelMember[] } {
  const {
    kind = 'channel',
    display_name,
    topic,
    creation: { name, people },
  } = input
  const now = timestamp(cause.at)
  const creator: Person = {
    id: cause.principal.id,
    kind: cause.principal.type === 'agent' ? 'agent' : 'user',
  }
  const dm = kind === 'dm'
  return {
    channel: {
      id,
      name,
      ...(!dm && { display_name: display_name ?? name }),
      ...(topic && { topic }),
      kind,
      private: dm || (input.private ?? false),
      created_by: creator.id,
      created_at: now,
      updated_at: now,
    },
    members: [
      newMember(id, creator, 'admin', cause),
      ...people.map((person) => newMember(id, person, dm ? 'admin' : 'member', cause)),
    ],
  }
}

function create(
  state: ChannelNameState,
  input: Create,
  cause: Cause,
): Decision<ChannelNameEvent, Channel> {
  const { name, people } = input.creation
  const dm = input.kind === 'dm'
  const faults = dm ? [] : nameFaults(name)
  if (dm && (people.length + 1 < limits.dm.least || people.length + 1 > limits.dm.most)) {
    faults.push({
      field: 'member_ids',
      message: `a direct message has ${limits.dm.least} to ${limits.dm.most} members, including its creator`,
      actual: people.length + 1,
    })
  }
  if (
    people.filter(({ kind }) => kind === 'agent').length +
      (cause.principal.type === 'agent' ? 1 : 0) >
    limits.agents
  )
    faults.push({
      field: 'member_ids',
      message: `a channel has at most ${limits.agents} agents, including its creator`,
    })
  if (faults.length > 0) return refuseFields(...faults)
  if (state.channel !== undefined) {
    if (!dm) return refuse('already_exists', { field: 'name', name })
    // The gateway completes the record, because only the channel itself stores the rest of it.
    const { members } = born(state.channel, input, cause)
    return {
      events: [],
      tells: [
        { to: { kind: 'channel', id: state.channel }, name: 'channel.reopen', input: { members } },
      ],
      reply: { id: state.channel, status_code: 200 } as never,
    }
  }
  const id = cause.mint('channel')
  const { channel, members } = born(id, input, cause)
  return {
    events: [{ type: 'name.taken', channel: id }],
    tells: [
      {
        to: { kind: 'channel', id },
        name: 'channel.open',
        input: {
          channel,
          members,
          holder: cause.self.id,
          ...(input.blueprint && { blueprint: input.blueprint }),
        },
      },
    ],
    reply: { ...channel, member_count: members.length, message_seq: 0 },
  }
}

/** The actor of a channel name. */
export const channelName: Actor<
  ChannelNameState,
  ChannelNameEvent,
  Api,
  'channel_name',
  ChannelNameCommands,
  { 'channel.create': Creation & BlueprintClaim }
> = {
  kind: 'channel_name',
  initial: () => ({}),
  decide: {
    'channel.create': create,
    // Detects requests with the same idempotency key but different names. The id of the actor that
    // receives this command is derived from the key, so all these requests reach the same actor.
    // The fingerprint that is stored with the first command reveals that the bodies differ.
    'name.key': () => ({ events: [{ type: 'name.keyed' }], reply: undefined }),
    'name.free': (state, { channel }) => ({
      events: state.channel === channel ? [{ type: 'name.freed' }] : [],
      reply: undefined,
    }),
  },
  evolve: {
    'name.taken': (_, { channel }) => ({ channel }),
    'name.freed': () => ({}),
    'name.keyed': (state) => state,
  },
}
