/**
 * Records, limits and events of channels, and the facts that the gateway looks up for commands to
 * channels. A channel is one actor, which numbers its messages. The name of a channel is a separate
 * actor in the same shard, so that the commit that creates or deletes the channel also claims or
 * releases the name.
 */

import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import type { BlueprintClaim } from '../blueprints/stored.ts'
import { JsonObject, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { ConfirmationEvent } from './confirmation.ts'
import type { ExchangeCommands, ExchangeEvent, TurnsAtDeletion } from './exchange.ts'

/**
 * Limits of channels. `content`: length of a message in characters. `metadata`: size in bytes as
 * JSON. `members` and `agents`: number of members and number of agents in one channel. `initial`:
 * number of members with which a channel can be created. `dm`: number of members of a direct
 * message. `pinned`: number of pinned messages. `skew`: milliseconds by which the time of archiving
 * may lie in the future.
 */
export const limits = {
  content: 40_000,
  metadata: 16_384,
  members: 1000,
  agents: 10,
  initial: 500,
  dm: { least: 2, most: 9 },
  pinned: 100,
  skew: 300_000,
} as const

export const Channel = Type.Object({
  id: Type.String(),
  name: Type.String(),
  display_name: Type.Optional(Type.String()),
  topic: Type.Optional(Type.String()),
  kind: Type.Enum(['channel', 'dm']),
  private: Type.Boolean(),
  archived_at: Type.Optional(Timestamp),
  member_count: Type.Integer(),
  message_seq: Type.Integer({ description: 'seq of the newest message; 0 before the first one' }),
  last_message_at: Type.Optional(Timestamp),
  unread_count: Type.Optional(
    Type.Integer({
      description:
        'Number of messages after the read marker of the caller; absent if the caller is not a ' +
        'member, and in replies to changes',
    }),
  ),
  created_by: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Channel = Static<typeof Channel>
export const channelAdditions = additions({ unread_count: {} })
/** The fields of a channel's record that change only when its settings are changed. */
export type ChannelSettings = Omit<
  Channel,
  'member_count' | 'message_seq' | 'last_message_at' | 'unread_count'
>

export const ChannelMember = Type.Object({
  channel_id: Type.String(),
  member_id: Type.String(),
  kind: Type.Enum(['user', 'agent']),
  role: Type.Enum(['admin', 'member']),
  user_id: Type.Optional(Type.String()),
  agent_id: Type.Optional(Type.String()),
  added_by: Type.String(),
  joined_at: Timestamp,
  last_read_seq: Type.Integer({ description: 'The read marker: messages up to this seq are read' }),
})
export type ChannelMember = Static<typeof ChannelMember>

export const ChannelMessage = Type.Object({
  id: Type.String(),
  channel_id: Type.String(),
  seq: Type.Integer({
    minimum: 1,
    description:
      'Number of the message in the channel: 1, 2, 3… in the order of commit, without gaps',
  }),
  content: Type.String({ description: 'Markdown' }),
  metadata: Type.Optional(JsonObject),
  pinned: Type.Boolean(),
  reply_to: Type.Optional(Type.String({ description: 'Id of the root message of the thread' })),
  reply_count: Type.Optional(
    Type.Integer({ description: 'Number of replies; present on root messages of threads' }),
  ),
  sender_id: Type.String(),
  sender_type: Type.Enum(['user', 'agent']),
  sender_agent_id: Type.Optional(Type.String()),
  sender_session_id: Type.Optional(Type.String()),
  sent_by: Type.Optional(Type.String()),
  edited_at: Type.Optional(Timestamp),
  created_at: Timestamp,
})
export type ChannelMessage = Static<typeof ChannelMessage>

/**
 * One event of the stream of a channel. `payload` contains the record that was added, changed or
 * removed, as `message`, `member` or `channel`.
 */
export const ChannelEventRecord = Type.Object({
  id: Type.String({ description: '<channel_id>:evt:<sequence>' }),
  channel_id: Type.String(),
  sequence: Type.Integer({ description: 'Cursor of the event; it increases and may have gaps' }),
  event_type: Type.Enum([
    'message.created',
    'message.updated',
    'member.added',
    'member.removed',
    'channel.updated',
    'channel.deleted',
  ]),
  payload: JsonObject,
  created_at: Timestamp,
})
export type ChannelEventRecord = Static<typeof ChannelEventRecord>
/**
 * Creates the stream record of a channel event.
 * @param cursor cursor of the event.
 * @param created_at time of the entry of the event, as RFC 3339.
 */
export const channelEventRecord = (
  channel_id: string,
  cursor: number,
  created_at: string,
  event_type: ChannelEventRecord['event_type'],
  payload: JsonObject,
): ChannelEventRecord => ({
  id: `${channel_id}:evt:${cursor}`,
  channel_id,
  sequence: cursor,
  event_type,
  payload,
  created_at,
})

/** A principal that can be a member of a channel: a person or an agent. */
export interface Person {
  readonly id: string
  readonly kind: 'user' | 'agent'
}
/**
 * The immutable facts about a message. They remain true while the channel exists, so a command can
 * use facts from a lagging view.
 */
export interface MessageFacts {
  readonly id: string
  readonly seq: number
  readonly sender_id: string
  /** Id of the first message of the thread; absent when the message is not a reply. */
  readonly reply_to?: string
}
/**
 * The principal for whom a view answers a query. `admin`: the principal may administer the
 * project.
 */
export interface Viewer {
  readonly id: string
  readonly admin: boolean
}

/**
 * Internal commands of a channel. They are never refused: repeated and late commands change
 * nothing.
 */
export type ChannelCommands = ExchangeCommands & {
  /** Creates the channel. Sent by the actor of the name, in the commit that claims the name. */
  'channel.open': {
    input: {
      channel: ChannelSettings
      members: readonly ChannelMember[]
      holder: string
    } & BlueprintClaim
    reply: undefined
  }
  /** Reopens a direct message with all of its members. Sent by the actor of the name. */
  'channel.reopen': { input: { members: readonly ChannelMember[] }; reply: undefined }
  /**
   * Removes a member that is no longer an active principal. Sent by the gateway and by executors of
   * errands. `disabled`: the principal can become active again.
   */
  'channel.expel': { input: { member_id: string; disabled?: boolean }; reply: undefined }
}
export type ChannelNameCommands = {
  /**
   * Binds an idempotency key to a request. Sent by the gateway before it creates a channel under
   * the key, to the actor that represents the key. That actor then refuses a different request
   * under the key.
   */
  'name.key': { input: unknown; reply: undefined }
  /** Releases the name. Sent by the channel, in the commit that deletes it. */
  'name.free': { input: { channel: string }; reply: undefined }
}
export type ChannelNameEvent =
  | (Event & { readonly type: 'name.taken'; readonly channel: string })
  | (Event & { readonly type: 'name.freed' })
  | (Event & { readonly type: 'name.keyed' })

/**
 * Events of a channel that the audit log records. `id` identifies the resource: it is the id of the
 * channel, or `<channel_id>:<member_id>`.
 */
export type ChannelAuditEvent =
  | (Event & {
      readonly type: 'channel.created'
      readonly id: string
      readonly channel: ChannelSettings
      readonly members: readonly ChannelMember[]
      readonly holder: string
    })
  | (Event & {
      readonly type: 'channel.updated'
      readonly id: string
      readonly channel: Patch<ChannelSettings>
      readonly changes: Changes
    })
  | (Event & {
      readonly type: 'channel.deleted'
      readonly id: string
      readonly name: string
      /** Absent when no turn was in progress. */
      readonly ending?: TurnsAtDeletion
    })
  | (Event & { readonly type: 'member.added'; readonly id: string; readonly member: ChannelMember })
  | (Event & {
      readonly type: 'member.removed'
      readonly id: string
      readonly member: ChannelMember
    })
export type ChannelEvent =
  | ChannelAuditEvent
  | ExchangeEvent
  | ConfirmationEvent
  | (Event & { readonly type: 'member.read'; readonly member_id: string; readonly seq: number })
  /** `wakes`: ids of the agents that the message wakes. */
  | (Event & {
      readonly type: 'message.created'
      readonly message: ChannelMessage
      readonly wakes?: readonly string[]
    })
  | (Event & {
      readonly type: 'message.updated'
      readonly id: string
      readonly message: Patch<ChannelMessage>
      /** Id of the principal that changed the metadata; present if it names artifacts. */
      readonly metadata_by?: string
    })

/**
 * Returns the name of a direct message.
 * @param hash hash of its sorted member ids, in hex; at least 16 digits.
 */
export const dmName = (hash: string): string => `dm-${hash.slice(0, 16)}`
const reserved = /^dm-[0-9a-f]{16}$/
/** Returns the faults of a channel name that a client chose. */
export const nameFaults = (name: string | undefined): FieldError[] =>
  name === undefined
    ? [{ field: 'name', message: 'is required for a channel' }]
    : reserved.test(name)
      ? [
          {
            field: 'name',
            message: 'has the reserved form of names of direct messages',
            actual: name,
          },
        ]
      : []

/** Returns the faults that schemas cannot detect in the content and metadata of a message. */
export function messageFaults({
  content,
  metadata,
}: {
  readonly content?: string
  readonly metadata?: JsonObject | null
}): FieldError[] {
  const size = metadata ? new TextEncoder().encode(JSON.stringify(metadata)).length : 0
  return [
    ...(content !== undefined && content.trim() === ''
      ? [{ field: 'content', message: 'must not be only white space' }]
      : []),
    ...(size > limits.metadata
      ? [
          {
            field: 'metadata',
            message: `must have at most ${limits.metadata} bytes as JSON`,
            expected: { maxBytes: limits.metadata },
            actual: size,
          },
        ]
      : []),
  ]
}
