/**
 * Full-text search for messages. Words are defined by SQLite's `unicode61` tokenizer: sequences of
 * letters and digits, regardless of case and accents. A caller's text is never parsed as a query.
 * It is split at white space, and each part that has a letter or digit becomes a quoted phrase.
 */
import type { ChannelMessage } from '../../../protocol/channels/schema.ts'
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { limitOf, MAX_PAGE_CHARACTERS, type Page, type Paging } from '../../page.ts'
import type { Store, Value } from '../../store.ts'
import { readableChannel, type WithViewer } from './channels.ts'
import { type MessageRow, messageRecord } from './messages.ts'

/** Maximum number of hits that one statement reads. */
const MAX_HITS_PER_READ = 250
/** Maximum number of hits that are examined for one page. */
const MAX_HITS = 2000
/** Maximum number of phrases in a search. */
const MAX_PHRASES = 16

const wordsOf = (q: string): string[] => q.split(/\s+/).filter((part) => /[\p{L}\p{N}]/u.test(part))
/**
 * The scope of a search, as tokens of the index column `place`: messages with at least one token of
 * `within` and none of `without`.
 */
export interface Places {
  readonly within: readonly string[]
  readonly without: readonly string[]
}
/**
 * Returns the scope of the messages that a principal may read. The index records whether a
 * message's channel was public when the message was indexed. Channels that have been both public
 * and private (`mixed`) are therefore listed individually.
 */
function placesFor(store: Store, project: number, viewer: string): Places {
  const rows = store.all<{ n: number; seen: number }>(
    `SELECT c.n, 1 AS seen
     FROM channel_members m INDEXED BY members_mine
     CROSS JOIN channels c ON c.n = m.channel
     WHERE m.project = ? AND m.member = ? AND (c.private = 1 OR c.mixed = 1)
     UNION
     SELECT c.n, c.private = 0 OR EXISTS (
       SELECT 1 FROM channel_members WHERE channel = c.n AND member = ?) AS seen
     FROM channels c INDEXED BY channels_mixed
     WHERE c.project = ? AND c.mixed = 1`,
    project,
    viewer,
    viewer,
    project,
  )
  const named = (seen: number) => rows.filter((row) => row.seen === seen).map(({ n }) => `c${n}`)
  return { within: [`o${project}`, ...named(1)], without: named(0) }
}
/**
 * Returns an FTS5 query (https://www.sqlite.org/fts5.html#full_text_query_syntax) for the messages
 * in the scope that contain all phrases of a text. Returns undefined if the text has no word.
 */
export function matchOf(q: string, { within, without }: Places): string | undefined {
  const phrases = wordsOf(q).map((part) => `"${part.replaceAll('"', '""').replaceAll('\0', ' ')}"`)
  return phrases.length === 0
    ? undefined
    : `place : (${within.join(' OR ')}) AND content : (${phrases.join(' AND ')})` +
        (without.length === 0 ? '' : ` NOT place : (${without.join(' OR ')})`)
}

interface Hit extends MessageRow {
  readonly seen: number | null
}

/**
 * Returns the messages that contain all phrases of `q`, in the channels that the viewer may read,
 * newest first. Messages of other channels do not match, so neither the length of a page nor its
 * cursor reveals them. A text with more than `MAX_PHRASES` words is refused.
 */
export function searchMessages(
  store: Store,
  project: number,
  input: Paging & WithViewer & { readonly q: string; readonly channel_id?: string },
): Page<ChannelMessage> | Refusal {
  const words = wordsOf(input.q).length
  if (words > MAX_PHRASES)
    return refuseFields({
      field: 'q',
      message: `must have at most ${MAX_PHRASES} words`,
      expected: { maxWords: MAX_PHRASES },
      actual: words,
    })
  const { viewer, channel_id } = input
  const channel =
    channel_id === undefined
      ? undefined
      : readableChannel(store, project, { id: channel_id, viewer })
  const match =
    channel_id !== undefined && !channel
      ? undefined
      : matchOf(
          input.q,
          channel
            ? { within: [`c${channel.n}`], without: [] }
            : placesFor(store, project, viewer.id),
        )
  if (match === undefined) return { items: [] }
  const limit = limitOf(input)
  const items: ChannelMessage[] = []
  let [from = Number.MAX_SAFE_INTEGER] = (input.after ?? []) as readonly Value[]
  let shown = from
  let size = 0
  for (let looked = 0; looked < MAX_HITS; looked += MAX_HITS_PER_READ) {
    const hits = store.all<Hit>(
      `SELECT m.cursor, m.replies, m.record,
         (SELECT c.private = 0 OR EXISTS (
            SELECT 1 FROM channel_members WHERE channel = c.n AND member = ?)
          FROM channels c
          WHERE c.n = m.channel) AS seen
       FROM (
         SELECT rowid AS hit
         FROM message_words
         WHERE message_words MATCH ? AND rowid < ?
         ORDER BY rowid DESC LIMIT ?)
       CROSS JOIN messages m ON m.cursor = hit
       ORDER BY hit DESC`,
      viewer.id,
      match,
      from,
      MAX_HITS_PER_READ,
    )
    for (const hit of hits) {
      if (hit.seen !== 1) continue
      size += hit.record.length
      if (items.length === limit || (size > MAX_PAGE_CHARACTERS && items.length > 0))
        return { items, position: [shown] }
      items.push(messageRecord(hit))
      shown = hit.cursor
    }
    const last = hits.at(-1)
    if (hits.length < MAX_HITS_PER_READ || last === undefined) return { items }
    from = last.cursor
  }
  return { items, position: [items.length < limit ? from : shown] }
}
