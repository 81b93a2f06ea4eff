/**
 * Opening, changing, archiving and deleting a channel. Its name belongs to another actor (name.ts).
 */
import type { Api } from '../../protocol/api.ts'
import {
  type Channel,
  type ChannelCommands,
  type ChannelEvent,
  type ChannelSettings,
  limits,
} from '../../protocol/channels/schema.ts'
import { parseTimestamp, timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type FieldError, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'
import { confirm } from './confirmations.ts'
import { cancelBackgroundJobs, endTurns } from './exchanges.ts'
import {
  type ChannelState,
  isOpen,
  isReadable,
  memberOf,
  type OpenChannel,
  recordOf,
} from './state.ts'

/** Data that the gateway adds: whether the caller may administer the project. */
export interface Caller {
  readonly project_admin: boolean
}
type Update = Input<Api['channel.update']> & Caller

/**
 * Returns the channel, or refuses if the caller may not administer it. Administrators of the
 * channel may administer it, and so may administrators of the project unless it is a direct
 * message.
 */
function administered(
  state: ChannelState,
  { project_admin }: Caller,
  { principal }: Cause,
): OpenChannel | Refusal {
  if (!isOpen(state)) return refuse('not_found')
  const overseen = project_admin && state.settings.kind === 'channel'
  if (!overseen && !isReadable(state, principal.id)) return refuse('not_found')
  return overseen || memberOf(state, principal.id)?.role === 'admin'
    ? state
    : refuse(
        'forbidden',
        undefined,
        'Only an administrator of the channel or of the project may do this.',
      )
}

/** Opens the channel, in the commit that takes its name. */
export function open(
  state: ChannelState,
  { channel, members, holder }: ChannelCommands['channel.open']['input'],
  cause: Cause,
): Decision<ChannelEvent, undefined> {
  if (isOpen(state) || state.deleted === true) return { events: [], reply: undefined }
  const member_ids = members.map(({ member_id }) => member_id)
  const { event, tell } = confirm(channel.id, member_ids, cause)
  return {
    events: [{ type: 'channel.created', id: channel.id, channel, members, holder }, event],
    tells: [tell],
    reply: undefined,
  }
}

/**
 * Reopens a direct message: unarchives it, and adds missing members again, because older releases
 * removed disabled members.
 */
export function reopen(
  state: ChannelState,
  { members }: ChannelCommands['channel.reopen']['input'],
  { at }: Cause,
): Decision<ChannelEvent, undefined> {
  if (!isOpen(state)) return { events: [], reply: undefined }
  const {
    settings: { id },
    settings,
  } = state
  const change = changeOf<ChannelSettings>(settings, { archived_at: '' }, at)
  const missing = members.filter(({ member_id }) => !memberOf(state, member_id))
  return {
    events: [
      ...(change
        ? [{ type: 'channel.updated' as const, id, channel: change.patch, changes: change.changes }]
        : []),
      ...missing.map((member) => ({
        type: 'member.added' as const,
        id: `${id}:${member.member_id}`,
        member,
      })),
    ],
    reply: undefined,
  }
}

/**
 * Returns the new value of `archived_at`, or a field error. If null is requested, the value is
 * empty, which removes the field. An undefined value leaves the field unchanged.
 */
function archivedAt(
  wish: string | null | undefined,
  now: number,
): { at?: string | undefined } | FieldError {
  if (wish === undefined || wish === null) return { at: wish === null ? '' : undefined }
  const at = parseTimestamp(wish)
  if (at === undefined)
    return { field: 'archived_at', message: 'must be an RFC 3339 time', actual: wish }
  return at > now + limits.skew
    ? { field: 'archived_at', message: 'must not be in the future', actual: wish }
    : { at: timestamp(at) }
}

/** Changes the settings. In a direct message, only the topic and `archived_at` can change. */
export function update(
  state: ChannelState,
  input: Update,
  cause: Cause,
): Decision<ChannelEvent, Channel> {
  const found = administered(state, input, cause)
  if ('refused' in found) return found
  const { settings } = found
  const faults: FieldError[] =
    settings.kind === 'dm'
      ? (['display_name', 'private'] as const)
          .filter((field) => input[field] !== undefined)
          .map((field) => ({ field, message: 'cannot be changed in a direct message' }))
      : []
  const archived = archivedAt(input.archived_at, cause.at)
  if ('field' in archived) faults.push(archived)
  if ('field' in archived || faults.length > 0) return refuseFields(...faults)
  const change = changeOf<ChannelSettings>(
    settings,
    {
      display_name: input.display_name === null ? settings.name : input.display_name,
      topic: input.topic === null ? '' : input.topic,
      private: input.private,
      archived_at: archived.at,
    },
    cause.at,
  )
  if (!change) return { events: [], reply: recordOf(found) }
  return {
    events: [
      { type: 'channel.updated', id: settings.id, channel: change.patch, changes: change.changes },
    ],
    reply: recordOf({ ...found, settings: change.next }),
  }
}

/**
 * Deletes the channel permanently, and releases its name in the same commit. The turns of its agents
 * are cancelled.
 */
export function remove(
  state: ChannelState,
  input: Caller,
  cause: Cause,
): Decision<ChannelEvent, undefined> {
  const found = administered(state, input, cause)
  if ('refused' in found) return found
  const { id, name } = found.settings
  const ends = endTurns(found, cause)
  return {
    events: [{ type: 'channel.deleted', id, name, ...(ends && { ending: ends.ending }) }],
    tells: [
      {
        to: { kind: 'channel_name', id: found.holder },
        name: 'name.free',
        input: { channel: id },
      },
      ...cancelBackgroundJobs(found, cause),
      ...(ends ? [ends.tell] : []),
    ],
    reply: undefined,
  }
}
