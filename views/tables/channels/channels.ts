/**
 * Channels and their members, and the rule that decides which channels a viewer may read: everyone
 * may read public channels, and members may read private channels. Administrators of the project
 * may also read the records of private channels, but neither their messages nor direct messages
 * between other principals.
 */
import type {
  Channel,
  ChannelMember,
  ChannelSettings,
  Viewer,
} from '../../../protocol/channels/schema.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { equalityConditions } from '../../conditions.ts'
import {
  type Page,
  type PageStatement,
  type Paging,
  planPage,
  readMergedPage,
  readPage,
} from '../../page.ts'
import type { Store } from '../../store.ts'

/** The principal on whose behalf a query about channels is made. */
export interface WithViewer {
  readonly viewer: Viewer
}
type OfChannel = WithViewer & { readonly id: string }

/**
 * A row of a channel. `n`: its number in the view's file. `last`: cursor of its newest applied
 * event.
 */
export interface ChannelRow {
  readonly n: number
  readonly id: string
  readonly project: number
  readonly kind: string
  readonly private: number
  readonly created_at: number
  readonly members: number
  readonly message_seq: number
  readonly last_message_at: string | null
  readonly last: number
  /** The settings of the channel as JSON. */
  readonly record: string
}
const COLUMNS =
  'c.n, c.id, c.project, c.kind, c.private, c.created_at, c.members, c.message_seq, c.last_message_at, c.last, c.record'

/**
 * Returns the API record of a channel.
 * @param read the viewer's read marker; absent when the viewer is not a member.
 */
function channelRecord(
  { record, members, message_seq, last_message_at }: ChannelRow,
  read?: number,
): Channel {
  return {
    ...(JSON.parse(record) as ChannelSettings),
    member_count: members,
    message_seq,
    ...(last_message_at !== null && { last_message_at }),
    ...(read !== undefined && { unread_count: Math.max(0, message_seq - read) }),
  }
}

/** The refusal for a channel that the project does not have, or that the viewer may not see. */
export const missingChannel: Refusal = refuse(
  'not_found',
  { resource: 'channel' },
  'There is no such channel in this project.',
)
/** Returns the row of a channel; undefined if the project has no such channel. */
export const channelRow = (store: Store, project: number, id: string): ChannelRow | undefined =>
  store.one<ChannelRow>(
    `SELECT ${COLUMNS} FROM channels c WHERE c.id = ? AND c.project = ?`,
    id,
    project,
  )
const markOf = (store: Store, { n }: ChannelRow, member: string): number | undefined =>
  store.one<{ last_read: number }>(
    'SELECT last_read FROM channel_members WHERE channel = ? AND member = ?',
    n,
    member,
  )?.last_read

/** Returns a channel; undefined if the viewer may not read its messages and members. */
export function readableChannel(
  store: Store,
  project: number,
  { id, viewer }: OfChannel,
): ChannelRow | undefined {
  const row = channelRow(store, project, id)
  return row && (row.private === 0 || markOf(store, row, viewer.id) !== undefined) ? row : undefined
}

/**
 * Returns the facts that decide whether the viewer may follow the channel, as of the cursor `at`.
 * Returns `not_found` if the viewer may not read the channel.
 */
export function channelAccess(
  store: Store,
  project: number,
  input: OfChannel,
  at: number,
): { private: boolean; member: boolean; at: number } | Refusal {
  const row = readableChannel(store, project, input)
  return row
    ? { private: row.private !== 0, member: markOf(store, row, input.viewer.id) !== undefined, at }
    : missingChannel
}

/**
 * Returns the record of a channel, or `not_found` if it does not exist or the viewer may not see
 * it.
 */
export function channelGet(
  store: Store,
  project: number,
  { id, viewer }: OfChannel,
): Channel | Refusal {
  const row = channelRow(store, project, id)
  const read = row && markOf(store, row, viewer.id)
  const seen =
    row && (row.private === 0 || read !== undefined || (viewer.admin && row.kind === 'channel'))
  return seen ? channelRecord(row, read) : missingChannel
}

type Filters = Paging & WithViewer & { readonly kind?: string; readonly private?: boolean }
/**
 * Returns the SQL statements whose merged rows contain a page of a list. One reads the channels
 * that the viewer may see without being a member, the other those of the viewer's channels that
 * only members may see.
 */
export function planChannels(project: number, input: Filters): readonly PageStatement[] {
  const { viewer, kind } = input
  const filters = equalityConditions({
    'c.kind': kind,
    'c.private': input.private === undefined ? undefined : Number(input.private),
  })
  const [index, scope] = viewer.admin
    ? ['channels_kind', "c.kind = 'channel'"]
    : ['channels_open', 'c.private = 0']
  return [
    planPage(
      {
        select: `SELECT ${COLUMNS} FROM channels c INDEXED BY ${index}`,
        conditions: [['c.project = ?', project], [scope], ...filters],
        order: ['c.created_at', 'c.id'],
        direction: 'DESC',
      },
      input,
    ),
    planPage(
      {
        select: `SELECT ${COLUMNS}
                 FROM channel_members m INDEXED BY members_mine
                 CROSS JOIN channels c ON c.n = m.channel`,
        conditions: [
          ['m.project = ?', project],
          ['m.member = ?', viewer.id],
          [viewer.admin ? "c.kind = 'dm'" : 'c.private = 1'],
          ...filters,
        ],
        order: ['m.born', 'm.channel_id'],
        direction: 'DESC',
      },
      input,
    ),
  ]
}

/** Returns the channels that the viewer may see, newest first. */
export function channelList(store: Store, project: number, input: Filters): Page<Channel> {
  return readMergedPage<ChannelRow, Channel>(store, planChannels(project, input), input, (row) =>
    channelRecord(row, markOf(store, row, input.viewer.id)),
  )
}

interface MemberRow {
  readonly member: string
  readonly joined_at: number
  readonly last_read: number
  readonly record: string
}
const memberRecord = ({ record, last_read }: MemberRow): ChannelMember => ({
  ...(JSON.parse(record) as ChannelMember),
  last_read_seq: last_read,
})

/**
 * Returns the members of a channel in the order in which they joined, or `not_found` if the viewer
 * may not read the channel.
 */
export function memberList(
  store: Store,
  project: number,
  input: Paging & OfChannel,
): Page<ChannelMember> | Refusal {
  const channel = readableChannel(store, project, input)
  if (!channel) return missingChannel
  return readPage(
    store,
    {
      select: 'SELECT member, joined_at, last_read, record FROM channel_members',
      conditions: [['channel = ?', channel.n]],
      order: ['joined_at', 'member'],
      direction: 'ASC',
    },
    input,
    memberRecord,
  )
}

/** Returns the ids of the agents that are members of a channel. */
export function agentsOf(store: Store, project: number, id: string): { items: string[] } {
  const members = store.all<MemberRow>(
    'SELECT member, record FROM channel_members WHERE channel = (SELECT n FROM channels WHERE id = ? AND project = ?)',
    id,
    project,
  )
  return {
    items: members.flatMap(({ member, record }) =>
      (JSON.parse(record) as ChannelMember).kind === 'agent' ? [member] : [],
    ),
  }
}

/** Returns the ids of the channels that a principal is a member of. */
export const channelsOf = (store: Store, project: number, member: string): { items: string[] } => ({
  items: store
    .all<{ channel_id: string }>(
      'SELECT channel_id FROM channel_members WHERE project = ? AND member = ?',
      project,
      member,
    )
    .map(({ channel_id }) => channel_id),
})

/** Returns the payload of an event about a channel: the channel's record. */
export const aboutChannel = (store: Store, project: number, id: string): JsonObject => {
  const row = channelRow(store, project, id)
  return { channel: row ? channelRecord(row) : { id } }
}
