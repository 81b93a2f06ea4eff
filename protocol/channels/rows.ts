/**
 * The rows for channels: group conversations and direct messages. The published contract leaves
 * these points open, and this service decides them as follows:
 * - Names of the form `dm-<16 hex digits>` are reserved for direct messages.
 * - Writing requires membership and `channel.write`, which the role Operator includes. Leaving, and
 *   moving one's own read marker, require only `project.view`.
 * - The answer of an agent is posted in the thread of the message that it answers. If that message
 *   is not in a thread, the answer starts one, in direct messages too. A failed or cancelled turn
 *   posts nothing. The record of the exchange contains the error.
 * - A project administrator can list, change and delete private channels, but cannot read their
 *   messages and members without being a member.
 * - A disabled principal remains a member of direct messages, because their members are fixed.
 *
 * Additions to the published contract are the stream, the search, the read marker and
 * `unread_count`.
 */

import { type Static, type TSchema, Type } from 'typebox'
import { onlyIncluding } from '../additions.ts'
import { Closed, Id, JsonObject, pageOf, paging, Timestamp } from '../common.ts'
import { command, query, stream } from '../contract.ts'
import type { FieldError } from '../errors.ts'
import { ExchangeRecord } from './exchange.ts'
import {
  Channel,
  ChannelEventRecord,
  ChannelMember,
  ChannelMessage,
  channelAdditions,
  limits,
  messageFaults,
  nameFaults,
} from './schema.ts'

const Name = Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', minLength: 1, maxLength: 80 })
const DisplayName = Type.String({ minLength: 1, maxLength: 120 })
const Topic = Type.String({ maxLength: 1000 })
const Kind = Type.Enum(['channel', 'dm'])
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const CreateChannel = Closed({
  name: Type.Optional(Name),
  display_name: Type.Optional(DisplayName),
  topic: Type.Optional(Topic),
  private: Type.Optional(Type.Boolean()),
  kind: Type.Optional(Kind),
  member_ids: Type.Optional(Type.Array(Id, { maxItems: limits.initial })),
})
function checkCreate({
  kind,
  name,
  display_name,
  private: closed,
}: Static<typeof CreateChannel>): FieldError[] {
  if (kind !== 'dm') return nameFaults(name)
  return [
    ...(name !== undefined
      ? [{ field: 'name', message: 'is not allowed for direct messages; it is generated' }]
      : []),
    ...(display_name !== undefined
      ? [{ field: 'display_name', message: 'is not allowed for direct messages' }]
      : []),
    ...(closed === false
      ? [{ field: 'private', message: 'must be true: direct messages are private' }]
      : []),
  ]
}
const UpdateChannel = Closed({
  display_name: Type.Optional(orNull(DisplayName)),
  topic: Type.Optional(orNull(Topic)),
  private: Type.Optional(Type.Boolean()),
  archived_at: Type.Optional(orNull(Timestamp)),
})
const AddMember = Closed({
  user_id: Type.Optional(Id),
  agent_id: Type.Optional(Id),
  member_id: Type.Optional(Id),
  role: Type.Optional(Type.Enum(['admin', 'member'])),
})
const checkAdd = ({ user_id, agent_id, member_id }: Static<typeof AddMember>): FieldError[] =>
  [user_id, agent_id, member_id].filter((id) => id !== undefined).length === 1
    ? []
    : [{ field: 'user_id', message: 'give exactly one of user_id and agent_id' }]
const Content = Type.String({ minLength: 1, maxLength: limits.content })
const SendMessage = Closed({
  content: Content,
  reply_to: Type.Optional(Id),
  sender_agent_id: Type.Optional(Id),
  sender_session_id: Type.Optional(Id),
  metadata: Type.Optional(JsonObject),
})
const checkSend = (body: Static<typeof SendMessage>): FieldError[] => [
  ...messageFaults(body),
  ...(body.sender_session_id !== undefined && body.sender_agent_id === undefined
    ? [
        {
          field: 'sender_session_id',
          message: 'is only for messages of an agent; give sender_agent_id',
        },
      ]
    : []),
]
const UpdateMessage = Closed({
  content: Type.Optional(Content),
  metadata: Type.Optional(orNull(JsonObject)),
  pinned: Type.Optional(Type.Boolean()),
})
const checkUpdate = (body: Static<typeof UpdateMessage>): FieldError[] =>
  Object.keys(body).length === 0
    ? [{ field: 'body', message: 'give content, metadata or pinned' }]
    : messageFaults(body)
const ReadUpTo = Closed({ seq: Type.Integer({ minimum: 0 }) })
const EventPage = Type.Object({
  items: Type.Array(ChannelEventRecord),
  next_sequence: Type.Optional(Type.Integer()),
  has_more: Type.Boolean(),
})
const MessagePage = pageOf(ChannelMessage)

const P = '/projects/:project/channels'
const tag = 'channels'
const self = { kind: 'channel', slot: 'id', prefix: 'channel' } as const
const read = { tag, permission: 'project.view' } as const
const write = { tag, permission: 'channel.write', to: self } as const

export const channels = {
  'channel.create': command(`POST ${P}`, {
    summary: 'Create a channel with its members, or open a direct message',
    tag,
    permission: 'channel.write',
    to: { kind: 'channel_name', mint: 'channel_name' },
    body: CreateChannel,
    check: checkCreate,
    ...onlyIncluding(channelAdditions),
    reply: Channel,
    status: 201,
    alsoStatus: [200],
    errors: ['already_exists'],
  }),
  'channel.list': query(`GET ${P}`, {
    ...read,
    summary: 'Channels that the caller can see, newest first',
    viewer: true,
    query: Closed({
      kind: Type.Optional(Kind),
      private: Type.Optional(Type.Boolean()),
      ...paging,
      include: channelAdditions.include,
    }),
    additions: channelAdditions.additions,
    reply: pageOf(Channel),
  }),
  'channel.search': query(`GET ${P}/search`, {
    ...read,
    summary:
      'Messages that contain all words of the query, in channels that the caller can read, ' +
      'newest first',
    viewer: true,
    query: Closed({
      q: Type.String({ minLength: 1, maxLength: 256 }),
      channel_id: Type.Optional(Id),
      ...paging,
    }),
    reply: MessagePage,
  }),
  'channel.get': query(`GET ${P}/:id`, {
    ...read,
    summary: 'One channel',
    viewer: true,
    ...onlyIncluding(channelAdditions),
    reply: Channel,
    errors: ['not_found'],
  }),
  'channel.update': command(`PATCH ${P}/:id`, {
    ...write,
    summary: 'Change, archive or unarchive a channel',
    body: UpdateChannel,
    ...onlyIncluding(channelAdditions),
    reply: Channel,
    errors: ['not_found'],
  }),
  'channel.delete': command(`DELETE ${P}/:id`, {
    ...write,
    summary: 'Delete a channel with its members and messages permanently',
    status: 204,
    errors: ['not_found'],
  }),
  'channel.events': stream(`GET ${P}/:id/events`, {
    ...read,
    summary:
      'Events of a channel: a page of JSON, or a stream that begins after `since` or with the ' +
      'next event',
    answeredBy: 'view',
    viewer: true,
    stream: 'accept',
    query: Closed({
      since: Type.Optional(Type.Integer({ minimum: 0 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
    }),
    reply: EventPage,
    errors: ['not_found'],
  }),
  'channel.members': query(`GET ${P}/:id/members`, {
    ...read,
    summary: 'Members, in the order they joined',
    viewer: true,
    query: Closed(paging),
    reply: pageOf(ChannelMember),
    errors: ['not_found'],
  }),
  'channel.add_member': command(`POST ${P}/:id/members`, {
    ...write,
    summary: 'Add a member, or join a public channel',
    body: AddMember,
    check: checkAdd,
    reply: ChannelMember,
    status: 201,
    errors: ['not_found', 'already_member', 'channel_archived', 'conflict'],
  }),
  'channel.remove_member': command(`DELETE ${P}/:id/members/:user_id`, {
    ...write,
    permission: 'project.view',
    summary: 'Remove a member, or leave the channel',
    status: 204,
    errors: ['not_found', 'last_admin', 'channel_archived'],
  }),
  'channel.mark_read': command(`PUT ${P}/:id/members/:user_id/read`, {
    ...write,
    permission: 'project.view',
    summary: 'Move the read marker of the caller forward',
    body: ReadUpTo,
    reply: ChannelMember,
    errors: ['not_found'],
  }),
  'channel.exchanges': query(`GET ${P}/:id/exchanges`, {
    ...read,
    summary: 'Requests to agents in the channel and their outcomes, newest first',
    viewer: true,
    query: Closed({
      agent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      status: Type.Optional(ExchangeRecord.properties.status),
      ...paging,
    }),
    reply: pageOf(ExchangeRecord),
    errors: ['not_found'],
  }),
  'channel.messages': query(`GET ${P}/:id/messages`, {
    ...read,
    summary: 'Messages, newest first; with reply_to, the replies of that thread',
    viewer: true,
    query: Closed({
      sender_id: Type.Optional(Id),
      reply_to: Type.Optional(Id),
      pinned: Type.Optional(Type.Boolean()),
      ...paging,
    }),
    reply: MessagePage,
    errors: ['not_found'],
  }),
  'channel.send': command(`POST ${P}/:id/messages`, {
    ...write,
    summary: 'Send a message',
    body: SendMessage,
    check: checkSend,
    reply: ChannelMessage,
    status: 201,
    errors: ['not_found', 'not_channel_member', 'channel_archived'],
  }),
  'channel.message': query(`GET ${P}/:id/messages/:message_id`, {
    ...read,
    summary: 'One message',
    viewer: true,
    reply: ChannelMessage,
    errors: ['not_found'],
  }),
  'channel.edit': command(`PATCH ${P}/:id/messages/:message_id`, {
    ...write,
    summary: 'Change a message of the caller, or pin a message',
    body: UpdateMessage,
    check: checkUpdate,
    reply: ChannelMessage,
    errors: ['not_found', 'not_channel_member', 'channel_archived', 'pin_limit_reached'],
  }),
} as const
