/**
 * Applies the events of channels, and reads them in order. A message is stored only once, with its
 * current content. Its events refer to it, so they are shown with this content, too. When a channel
 * is deleted, its messages and the lists of agents in their threads are deleted later, in small
 * batches. Its other rows are deleted immediately.
 */
import type {
  ChannelEvent,
  ChannelEventRecord,
  ChannelMember,
  ChannelSettings,
} from '../../../protocol/channels/schema.ts'
import { channelEventRecord } from '../../../protocol/channels/schema.ts'
import { type JsonObject, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import { lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import { patch } from '../../../protocol/patch.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { itemsThatFit, limitOf } from '../../page.ts'
import type { Store } from '../../store.ts'
import {
  aboutChannel,
  type ChannelRow,
  channelRow,
  missingChannel,
  readableChannel,
  type WithViewer,
} from './channels.ts'
import { addExchange, endExchange } from './exchanges.ts'
import {
  addMessage,
  changeMessage,
  dropMessages,
  type MessageRow,
  messageRecord,
} from './messages.ts'

/**
 * Applies an entry of a channel. If the first entry of a channel was trimmed from the journal, its
 * later entries are ignored.
 */
export function applyChannel(store: Store, place: PlacedEntry): void {
  const { entry, cursor } = place
  const project = store.numberOf(entry.project)
  for (const [i, any] of (entry.events as readonly ChannelEvent[]).entries()) {
    if (any.type === 'channel.created') begin(store, project, any)
    const row = channelRow(store, project, entry.id)
    if (row) applyEvent(store, row, any, cursor + i, entry.origin.at)
  }
  store.run(
    'UPDATE channels SET last = ? WHERE id = ? AND project = ?',
    lastCursor(place),
    entry.id,
    project,
  )
}

function begin(
  store: Store,
  project: number,
  { channel, members }: Extract<ChannelEvent, { type: 'channel.created' }>,
): void {
  store.run(
    `INSERT INTO channels (
       id, project, kind, private, created_at, members, message_seq, last, record
     ) VALUES (?, ?, ?, ?, ?, 0, 0, 0, ?)`,
    channel.id,
    project,
    channel.kind,
    channel.private ? 1 : 0,
    parseTimestamp(channel.created_at) ?? 0,
    JSON.stringify(channel),
  )
  const row = channelRow(store, project, channel.id)
  if (row) for (const member of members) join(store, row, member)
}
function join(
  store: Store,
  { n, id, project, created_at }: ChannelRow,
  member: ChannelMember,
): void {
  store.run(
    `INSERT INTO channel_members (
       channel, member, project, channel_id, born, joined_at, last_read, record
     ) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    n,
    member.member_id,
    project,
    id,
    created_at,
    parseTimestamp(member.joined_at) ?? 0,
    member.last_read_seq,
    JSON.stringify(member),
  )
  store.run('UPDATE channels SET members = members + 1 WHERE n = ?', n)
}
const markRead = (store: Store, { n }: ChannelRow, member: string, seq: number): void =>
  store.run(
    'UPDATE channel_members SET last_read = max(last_read, ?) WHERE channel = ? AND member = ?',
    seq,
    n,
    member,
  )
/** The content of an event: the number of a message, or other data. */
type EventContent = { readonly message: number } | { readonly payload: JsonObject }
const addEvent = (
  store: Store,
  { n }: ChannelRow,
  { type, cursor, at }: { readonly type: string; readonly cursor: number; readonly at: number },
  content: EventContent,
): void =>
  store.run(
    'INSERT INTO channel_events (channel, cursor, at, type, message, payload) VALUES (?, ?, ?, ?, ?, ?)',
    n,
    cursor,
    at,
    type,
    'message' in content ? content.message : null,
    'payload' in content ? JSON.stringify(content.payload) : null,
  )

function applyEvent(
  store: Store,
  row: ChannelRow,
  event: ChannelEvent,
  cursor: number,
  at: number,
): void {
  const { type } = event
  switch (event.type) {
    case 'channel.updated': {
      const settings = patch(JSON.parse(row.record) as ChannelSettings, event.channel)
      store.run(
        'UPDATE channels SET private = ?, mixed = max(mixed, private <> ?), record = ? WHERE n = ?',
        settings.private ? 1 : 0,
        settings.private ? 1 : 0,
        JSON.stringify(settings),
        row.n,
      )
      addEvent(
        store,
        row,
        { type, cursor, at },
        { payload: aboutChannel(store, row.project, row.id) },
      )
      break
    }
    case 'channel.deleted':
      store.run('DELETE FROM channel_members WHERE channel = ?', row.n)
      store.run('DELETE FROM channel_events WHERE channel = ?', row.n)
      store.run('DELETE FROM channel_exchanges WHERE channel = ?', row.n)
      store.run('DELETE FROM channels WHERE n = ?', row.n)
      dropMessages(store, row.n)
      break
    case 'member.added':
      join(store, row, event.member)
      addEvent(store, row, { type, cursor, at }, { payload: { member: event.member } })
      break
    case 'member.removed':
      store.run(
        'DELETE FROM channel_members WHERE channel = ? AND member = ?',
        row.n,
        event.member.member_id,
      )
      store.run('UPDATE channels SET members = members - 1 WHERE n = ?', row.n)
      addEvent(store, row, { type, cursor, at }, { payload: { member: event.member } })
      break
    case 'member.read':
      markRead(store, row, event.member_id, event.seq)
      break
    case 'exchange.begun':
      markRead(store, row, event.exchange.agent_id, event.exchange.through_seq)
      addExchange(store, row, event, cursor, at)
      break
    case 'exchange.ended':
      endExchange(store, row, event, at)
      break
    case 'message.created': {
      const { message } = event
      addMessage(store, row, message, cursor, event.wakes)
      store.run(
        'UPDATE channels SET message_seq = ?, last_message_at = ? WHERE n = ?',
        message.seq,
        message.created_at,
        row.n,
      )
      markRead(store, row, message.sent_by ?? message.sender_id, message.seq)
      break
    }
    case 'message.updated': {
      const changed = changeMessage(store, row, event.id, event.message)
      if (changed !== undefined) addEvent(store, row, { type, cursor, at }, { message: changed })
    }
  }
}

interface EventRow {
  readonly cursor: number
  readonly at: number
  readonly type: ChannelEventRecord['event_type']
  readonly message: number | null
  readonly payload: string | null
}
const messageAt = (store: Store, cursor: number): MessageRow | undefined =>
  store.one<MessageRow>('SELECT cursor, replies, record FROM messages WHERE cursor = ?', cursor)

/**
 * Returns the events of a channel after a cursor, oldest first. `message.created` events are
 * derived from the messages.
 */
function after(
  store: Store,
  { n, id }: ChannelRow,
  cursor: number,
  limit: number,
): ChannelEventRecord[] {
  const messages = store.upToPage<MessageRow>(
    'SELECT cursor, replies, record FROM messages WHERE channel = ? AND cursor > ? ORDER BY cursor LIMIT ?',
    n,
    cursor,
    limit,
  )
  const others = store.all<EventRow>(
    `SELECT cursor, at, type, message, payload
     FROM channel_events
     WHERE channel = ? AND cursor > ?
     ORDER BY cursor LIMIT ?`,
    n,
    cursor,
    limit,
  )
  const records = messages.map((row) => {
    const message = messageRecord(row)
    return channelEventRecord(id, row.cursor, message.created_at, 'message.created', { message })
  })
  for (const row of others) {
    const message = row.message === null ? undefined : messageAt(store, row.message)
    records.push(
      channelEventRecord(
        id,
        row.cursor,
        timestamp(row.at),
        row.type,
        message
          ? { message: messageRecord(message) }
          : (JSON.parse(row.payload ?? '{}') as JsonObject),
      ),
    )
  }
  return records.sort((a, b) => a.sequence - b.sequence).slice(0, limit)
}

/** Returns the events that fit in a page, and whether more were read. */
function shownOf(
  rows: readonly ChannelEventRecord[],
  limit: number,
): { items: readonly ChannelEventRecord[]; more: boolean } {
  const items = itemsThatFit(rows, limit, ({ payload }) => JSON.stringify(payload).length)
  return { items, more: items.length < rows.length }
}
/**
 * Returns events of a channel for a follower. The query `channel_access` decides whether the viewer
 * may see them.
 */
export function channelEvents(
  store: Store,
  project: number,
  input: ViewQueries['channel_events']['input'],
  oldest: number,
): ViewQueries['channel_events']['reply'] {
  const channel = channelRow(store, project, input.channel_id)
  if (!channel) return { items: [], last: 0, oldest, exists: false, more: false }
  const { items, more } = shownOf(after(store, channel, input.after, input.limit + 1), input.limit)
  return { items, last: channel.last, oldest, exists: true, more }
}

/**
 * Returns a page of a channel's events, oldest first, or `not_found` if the viewer may not read the
 * channel.
 */
export function channelEventPage(
  store: Store,
  project: number,
  input: WithViewer & { readonly id: string; readonly since?: number; readonly limit?: number },
): { items: readonly ChannelEventRecord[]; next_sequence?: number; has_more: boolean } | Refusal {
  const channel = readableChannel(store, project, input)
  if (!channel) return missingChannel
  const limit = limitOf(input)
  const { items, more } = shownOf(after(store, channel, input.since ?? 0, limit + 1), limit)
  const last = items.at(-1)
  return { items, ...(last && { next_sequence: last.sequence }), has_more: more }
}
