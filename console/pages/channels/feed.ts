/**
 * The loaded messages of a channel, and the lines of its timeline. The functions are pure.
 *
 * Invariants:
 * F1. Messages are sorted by `seq`, without duplicates and without gaps.
 * F2. A newer state of a message is never replaced by an older one.
 */
import type { ChannelEventRecord, ChannelMessage } from '../../../protocol/channels/schema.ts'

/** The messages that have been loaded so far. */
export interface Feed {
  readonly items: readonly ChannelMessage[]
  /** Cursor of the next older page; undefined when the first message is loaded. */
  readonly older: string | undefined
}
export const emptyFeed: Feed = { items: [], older: undefined }

const versionOf = ({ edited_at, created_at }: ChannelMessage): string => edited_at ?? created_at
/** Returns the newer of two states of a message. The number of replies never decreases. */
function newerOf(known: ChannelMessage, other: ChannelMessage): ChannelMessage {
  const newer = versionOf(other) >= versionOf(known) ? other : known
  const count = Math.max(known.reply_count ?? 0, other.reply_count ?? 0)
  return count === (newer.reply_count ?? 0) ? newer : { ...newer, reply_count: count }
}

function merged(
  known: readonly ChannelMessage[],
  more: readonly ChannelMessage[],
): readonly ChannelMessage[] {
  const byId = new Map(known.map((one) => [one.id, one]))
  for (const one of more) {
    const before = byId.get(one.id)
    byId.set(one.id, before ? newerOf(before, one) : one)
  }
  return [...byId.values()].sort((a, b) => a.seq - b.seq)
}

/** Adds a page of messages, which the service returns newest first. */
export const addPage = (
  feed: Feed,
  items: readonly ChannelMessage[],
  older: string | undefined,
): Feed => ({ items: merged(feed.items, items), older })

/** Adds or replaces one message. A new reply increases the number of replies of its root. */
export function addMessage(feed: Feed, message: ChannelMessage): Feed {
  const isNew = !feed.items.some(({ id }) => id === message.id)
  const first = feed.items[0]
  // A message that is older than the loaded ones is ignored. It is added when its page is loaded.
  if (isNew && first && feed.older !== undefined && message.seq < first.seq) return feed
  const items = merged(feed.items, [message])
  const root = message.reply_to
  return {
    ...feed,
    items:
      isNew && root !== undefined
        ? items.map((one) =>
            one.id === root ? { ...one, reply_count: (one.reply_count ?? 0) + 1 } : one,
          )
        : items,
  }
}

/** Adds an event of the channel. Events without a message change nothing. */
export function addEvent(feed: Feed, { payload }: Pick<ChannelEventRecord, 'payload'>): Feed {
  const { message } = payload as { readonly message?: ChannelMessage }
  return message ? addMessage(feed, message) : feed
}

/** Returns the messages outside of threads. */
export const rootsOf = ({ items }: Feed): readonly ChannelMessage[] =>
  items.filter(({ reply_to }) => reply_to === undefined)
/** Returns the loaded replies of a thread. */
export const repliesOf = ({ items }: Feed, root: string): readonly ChannelMessage[] =>
  items.filter(({ reply_to }) => reply_to === root)
/** Returns the newest loaded reply of each thread, by the id of its root. */
export const lastReplies = ({ items }: Feed): ReadonlyMap<string, ChannelMessage> =>
  new Map(items.flatMap((one) => (one.reply_to === undefined ? [] : [[one.reply_to, one]])))

/** A line of the timeline: a day, the marker before the first unread message, or a message. */
export type Line =
  | { readonly kind: 'day'; readonly key: string; readonly at: string }
  | { readonly kind: 'unread'; readonly key: string }
  | {
      readonly kind: 'message'
      readonly key: string
      readonly message: ChannelMessage
      /** Whether the line is the first of its group, and so shows the author and the time. */
      readonly head: boolean
    }

/** Maximum time between two consecutive messages of a group, in milliseconds. */
const GROUP_MS = 5 * 60_000
const dayOf = (at: string): string => new Date(at).toDateString()

/**
 * Returns the lines that show messages. A group consists of consecutive messages of one author on
 * one day, at most `GROUP_MS` apart.
 * @param readUpTo `seq` up to which the person had read when the channel was opened. Undefined
 * omits the marker.
 * @param me id of the person, whose own messages are never unread.
 */
export function linesOf(
  messages: readonly ChannelMessage[],
  readUpTo: number | undefined,
  me: string,
): readonly Line[] {
  const lines: Line[] = []
  let before: ChannelMessage | undefined
  let marked = readUpTo === undefined
  for (const message of messages) {
    const newDay = !before || dayOf(before.created_at) !== dayOf(message.created_at)
    if (newDay) lines.push({ kind: 'day', key: `day ${message.id}`, at: message.created_at })
    const unread = !marked && message.seq > (readUpTo ?? 0) && message.sender_id !== me
    if (unread) {
      marked = true
      lines.push({ kind: 'unread', key: 'unread' })
    }
    const head =
      newDay ||
      unread ||
      before?.sender_id !== message.sender_id ||
      Date.parse(message.created_at) - Date.parse(before.created_at) > GROUP_MS
    lines.push({ kind: 'message', key: message.id, message, head })
    before = message
  }
  return lines
}
