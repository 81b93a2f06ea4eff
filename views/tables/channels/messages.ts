/**
 * Messages of channels. The key of a row is the cursor of the message's event. In the order of this
 * key, all messages of a partition are sorted by commit, and the messages of one channel are sorted
 * by `seq`. The full-text index stores the words and the places (`placesOf`) of each message under
 * the same key, but not the text.
 */
import type { ChannelMessage, MessageFacts } from '../../../protocol/channels/schema.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import { equalityConditions } from '../../conditions.ts'
import { type Listing, type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'
import { type ChannelRow, missingChannel, readableChannel, type WithViewer } from './channels.ts'

/** A row of a message. The number of replies is stored separately from the record. */
export interface MessageRow {
  readonly cursor: number
  readonly replies: number
  readonly record: string
}
/** Returns the API record of a message. */
export function messageRecord({ record, replies }: MessageRow): ChannelMessage {
  const message = JSON.parse(record) as ChannelMessage
  return replies > 0 ? { ...message, reply_count: replies } : message
}
/**
 * Returns the tokens of a message for the index column `place`. One token identifies its channel.
 * If that channel is public when the message is indexed, another token identifies all public
 * channels of its project.
 */
export const placesOf = ({
  n,
  project,
  private: closed,
}: Pick<ChannelRow, 'n' | 'project' | 'private'>): string =>
  closed === 0 ? `o${project} c${n}` : `c${n}`
const index = (store: Store, channel: ChannelRow, cursor: number, content: string): void =>
  store.run(
    'INSERT INTO message_words (rowid, content, place) VALUES (?, ?, ?)',
    cursor,
    content,
    placesOf(channel),
  )

/**
 * Adds a message.
 * @param cursor the cursor of the message's event.
 * @param called the agents that the message wakes. These agents become part of its thread.
 */
export function addMessage(
  store: Store,
  channel: ChannelRow,
  message: ChannelMessage,
  cursor: number,
  called: readonly string[] = [],
): void {
  store.run(
    'INSERT INTO messages (cursor, id, channel, sender, root, pinned, replies, record) VALUES (?, ?, ?, ?, ?, 0, 0, ?)',
    cursor,
    message.id,
    channel.n,
    message.sender_id,
    message.reply_to ?? null,
    JSON.stringify(message),
  )
  index(store, channel, cursor, message.content)
  for (const agent of called)
    store.run(
      'INSERT OR IGNORE INTO thread_agents (channel, root, agent) VALUES (?, ?, ?)',
      channel.n,
      message.reply_to ?? message.id,
      agent,
    )
  if (message.reply_to !== undefined)
    store.run(
      'UPDATE messages SET replies = replies + 1 WHERE id = ? AND channel = ?',
      message.reply_to,
      channel.n,
    )
}
/**
 * Changes a message.
 * @returns the key of its row; undefined when the view does not have the message.
 */
export function changeMessage(
  store: Store,
  channel: ChannelRow,
  id: string,
  change: Patch<ChannelMessage>,
): number | undefined {
  const row = find(store, channel, id)
  if (!row) return undefined
  const message = patch(JSON.parse(row.record) as ChannelMessage, change)
  store.run(
    'UPDATE messages SET pinned = ?, record = ? WHERE cursor = ?',
    message.pinned ? 1 : 0,
    JSON.stringify(message),
    row.cursor,
  )
  if (change.content !== undefined) {
    store.run('DELETE FROM message_words WHERE rowid = ?', row.cursor)
    index(store, channel, row.cursor, message.content)
  }
  return row.cursor
}

/** Maximum number of messages that are deleted in one batch, which takes a few milliseconds. */
const DROPPED_AT_ONCE = 500
/**
 * Schedules the deletion of a deleted channel's messages. Queries no longer find them.
 * @param channel the channel's number.
 */
export const dropMessages = (store: Store, channel: number): void =>
  store.run('INSERT INTO dropped (channel) VALUES (?)', channel)
/** Whether messages of deleted channels are left. */
export const hasDropped = (store: Store): boolean =>
  store.one('SELECT 1 FROM dropped LIMIT 1') !== undefined
/** Deletes some messages of one deleted channel. */
export function deleteDropped(store: Store): void {
  const channel = store.one<{ channel: number }>('SELECT channel FROM dropped LIMIT 1')?.channel
  if (channel === undefined) return
  const rows = store.all<{ cursor: number }>(
    'SELECT cursor FROM messages WHERE channel = ? LIMIT ?',
    channel,
    DROPPED_AT_ONCE,
  )
  for (const { cursor } of rows) {
    store.run('DELETE FROM message_words WHERE rowid = ?', cursor)
    store.run('DELETE FROM messages WHERE cursor = ?', cursor)
  }
  if (rows.length >= DROPPED_AT_ONCE) return
  store.run('DELETE FROM thread_agents WHERE channel = ?', channel)
  store.run('DELETE FROM dropped WHERE channel = ?', channel)
}

const find = (store: Store, { n }: ChannelRow, id: string): MessageRow | undefined =>
  store.one<MessageRow>(
    'SELECT cursor, replies, record FROM messages WHERE id = ? AND channel = ?',
    id,
    n,
  )

/**
 * Returns the immutable facts about a message, and the agents of its thread: the agent that started
 * the thread, and the agents that its messages woke. Returns an empty object if the message does
 * not exist. Clients do not receive the answer, so access is not checked.
 */
export function messageFacts(
  channel: ChannelRow | undefined,
  store: Store,
  id: string,
): { facts?: MessageFacts; thread?: string[] } {
  const row = channel && find(store, channel, id)
  if (!row) return {}
  const { seq, sender_id, reply_to } = messageRecord(row)
  const root = reply_to === undefined ? row : find(store, channel, reply_to)
  const called = store
    .all<{ agent: string }>(
      'SELECT agent FROM thread_agents WHERE channel = ? AND root = ?',
      channel.n,
      reply_to ?? id,
    )
    .map(({ agent }) => agent)
  const beginner = root && messageRecord(root)
  const thread = [...called, ...(beginner?.sender_type === 'agent' ? [beginner.sender_id] : [])]
  return {
    facts: { id, seq, sender_id, ...(reply_to !== undefined && { reply_to }) },
    ...(thread.length > 0 && { thread }),
  }
}

/**
 * Returns a message of a channel, or `not_found` if it does not exist or the viewer may not read
 * the channel.
 */
export function messageGet(
  store: Store,
  project: number,
  input: WithViewer & { readonly id: string; readonly message_id: string },
): ChannelMessage | Refusal {
  const channel = readableChannel(store, project, input)
  if (!channel) return missingChannel
  const row = find(store, channel, input.message_id)
  return row
    ? messageRecord(row)
    : refuse('not_found', { resource: 'message' }, 'There is no such message in this channel.')
}

type Filters = Paging & {
  readonly sender_id?: string
  readonly reply_to?: string
  readonly pinned?: boolean
}
/**
 * Returns the list of the messages that match the filters, newest first. The filters determine the
 * index.
 * @param channel the channel's number.
 */
export function messageListing(channel: number, { sender_id, reply_to, pinned }: Filters): Listing {
  const by =
    pinned === true
      ? 'messages_pinned'
      : reply_to !== undefined
        ? 'messages_thread'
        : sender_id !== undefined
          ? 'messages_sender'
          : 'messages_channel'
  return {
    select: `SELECT cursor, replies, record FROM messages INDEXED BY ${by}`,
    conditions: [
      ...equalityConditions({ channel, root: reply_to, sender: sender_id }),
      ...(pinned === undefined ? [] : [[pinned ? 'pinned = 1' : 'pinned = 0'] as const]),
    ],
    order: ['cursor'],
    direction: 'DESC',
  }
}
/**
 * Returns messages of a channel, newest first, or `not_found` if the viewer may not read the
 * channel.
 */
export function messageList(
  store: Store,
  project: number,
  input: Filters & WithViewer & { readonly id: string },
): Page<ChannelMessage> | Refusal {
  const channel = readableChannel(store, project, input)
  if (!channel) return missingChannel
  return readPage(store, messageListing(channel.n, input), input, messageRecord)
}
