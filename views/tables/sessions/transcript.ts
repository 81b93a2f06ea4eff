/**
 * Pages of transcripts: the changes after a revision, or the newest part. The size of a page and
 * its number of records are bounded.
 */

import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { type Interaction, settledStatuses } from '../../../protocol/interactions/schema.ts'
import type { TranscriptMessage, TurnUpsert } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type {
  Changed,
  LiveRowsOfTurn,
  SummaryFields,
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { Store } from '../../store.ts'
import { type SessionRow, sessionRow } from './sessions.ts'

/**
 * Maximum number of characters on a page of changes or of the newest messages. If the first record
 * is larger, it is returned alone.
 */
const MAX_PAGE_LENGTH = 512_000

interface Row {
  readonly revision: number
  readonly record: string
  readonly summing?: string | null
}
type Kind = 'messages' | 'turns' | 'interactions'
interface Found extends Row {
  readonly kind: Kind
}
const parsed = <T>({ revision, record }: Row): Changed<T> => ({
  revision,
  record: JSON.parse(record) as T,
})
const messagesOf = (found: readonly Found[]): TranscriptPage['messages'] =>
  found
    .filter(({ kind }) => kind === 'messages')
    .map((row) => {
      const message = parsed<TranscriptMessage>(row)
      return typeof row.summing === 'string'
        ? { ...message, summing: JSON.parse(row.summing) as SummaryFields }
        : message
    })
const of = <T>(found: readonly Found[], kind: Kind): Changed<T>[] =>
  found.filter((one) => one.kind === kind).map(parsed<T>)

const SETTLED = [...settledTurns].map((status) => `'${status}'`).join(', ')
const OVER = [...settledStatuses].map((status) => `'${status}'`).join(', ')
/** The queries for the records of each kind that changed after a revision. */
const CHANGED: readonly string[] = [
  `SELECT 'messages' AS kind, revision, record, summing
   FROM session_messages
   WHERE session = ? AND revision > ? AND revision <= ? AND sequence IS NOT NULL AND hidden = 0
   ORDER BY revision LIMIT ?`,
  `SELECT 'turns' AS kind, revision, record
   FROM session_turns
   WHERE session = ? AND revision > ? AND revision <= ?
   ORDER BY revision LIMIT ?`,
  `SELECT 'interactions' AS kind, revision, record
   FROM session_interactions
   WHERE session = ? AND revision > ? AND revision <= ?
   ORDER BY revision LIMIT ?`,
]
const streaming = (store: Store, { n }: SessionRow): Changed<TranscriptMessage>[] =>
  store
    .all<Row>(
      'SELECT revision, record FROM session_messages WHERE session = ? AND sequence IS NULL ORDER BY revision',
      n,
    )
    .map(parsed<TranscriptMessage>)
const activeTurns = (store: Store, { n }: SessionRow): Changed<TurnUpsert>[] =>
  store
    .all<Row>(
      `SELECT revision, record FROM session_turns WHERE session = ? AND status NOT IN (${SETTLED}) ORDER BY seq`,
      n,
    )
    .map(parsed<TurnUpsert>)
const pendingQuestions = (store: Store, { n }: SessionRow): Interaction[] =>
  store
    .all<{ record: string }>(
      `SELECT record FROM session_interactions WHERE session = ? AND status NOT IN (${OVER}) ORDER BY revision`,
      n,
    )
    .map(({ record }) => JSON.parse(record) as Interaction)

/**
 * Returns the revision of the last message up to a sequence number, after which a reader who has
 * these messages continues. Returns 0 if there is no such message.
 */
function revisionAt(store: Store, { n }: SessionRow, sequence: number): number {
  const row = store.one<{ revision: number }>(
    `SELECT revision
     FROM session_messages
     WHERE session = ? AND sequence <= ? AND hidden = 0
     ORDER BY sequence DESC LIMIT 1`,
    n,
    sequence,
  )
  return row?.revision ?? 0
}

/**
 * Returns a page of a transcript: the changes after a revision or a message, or otherwise the
 * newest part. Returns `not_found` if the project has no such session.
 */
export function transcriptPage(
  store: Store,
  project: number,
  { session_id, after, after_sequence, until, limit }: TranscriptQuestion,
): TranscriptPage | Refusal {
  const row = sessionRow(store, project, session_id)
  if (!row)
    return refuse('not_found', { resource: 'session' }, 'There is no such session in this project.')
  const from =
    after ?? (after_sequence === undefined ? undefined : revisionAt(store, row, after_sequence))
  const { revision, last } = row
  const active = activeTurns(store, row)
  if (from === undefined)
    return {
      revision,
      last,
      active,
      ...newest(store, row, limit, active),
      live: streaming(store, row),
      pending: pendingQuestions(store, row),
    }
  const cut = Math.min(until ?? revision, revision)
  const all: Found[] =
    from >= cut
      ? []
      : CHANGED.flatMap((sql) => store.all<Found>(sql, row.n, from, cut, limit + 1)).sort(
          (a, b) => a.revision - b.revision,
        )
  const shown: Found[] = []
  for (
    let size = 0;
    shown.length < Math.min(limit, all.length) && (size < MAX_PAGE_LENGTH || shown.length === 0);
  ) {
    const next = all[shown.length] as Found
    size += next.record.length
    if (size > MAX_PAGE_LENGTH && shown.length > 0) break
    shown.push(next)
  }
  const more = shown.length < all.length
  return {
    revision,
    last,
    active,
    after: from,
    through: more ? (shown.at(-1)?.revision ?? from) : Math.max(from, cut),
    cut,
    more,
    messages: messagesOf(shown),
    turns: of(shown, 'turns'),
    interactions: of(shown, 'interactions'),
    live: more ? [] : streaming(store, row),
    pending: more ? [] : pendingQuestions(store, row),
  }
}

/** Returns the newest messages that fit in a page, and their turns except for active turns. */
function newest(
  store: Store,
  { n, revision }: SessionRow,
  limit: number,
  active: readonly Changed<TurnUpsert>[],
): Pick<
  TranscriptPage,
  'after' | 'through' | 'cut' | 'more' | 'messages' | 'turns' | 'interactions'
> {
  const rows: Row[] = []
  let size = 0
  for (const row of store.each<Row>(
    `SELECT revision, record
     FROM session_messages
     WHERE session = ? AND sequence IS NOT NULL AND hidden = 0
     ORDER BY sequence DESC LIMIT ?`,
    n,
    limit,
  )) {
    size += row.record.length
    if (size > MAX_PAGE_LENGTH && rows.length > 0) break
    rows.push(row)
  }
  const messages = rows.reverse().map(parsed<TranscriptMessage>)
  const known = new Set(active.map(({ record }) => record.id))
  const ids = [
    ...new Set(
      messages.flatMap(({ record: { turn_id } }) =>
        turn_id === undefined || known.has(turn_id) ? [] : [turn_id],
      ),
    ),
  ]
  const turns = ids.flatMap((id) =>
    store
      .all<Row>('SELECT revision, record FROM session_turns WHERE session = ? AND id = ?', n, id)
      .map(parsed<TurnUpsert>),
  )
  return {
    after: -1,
    through: revision,
    cut: revision,
    more: false,
    messages,
    turns,
    interactions: [],
  }
}

/** Returns the streaming rows of a turn, or `not_found` if the session has no such turn. */
export function liveRows(
  store: Store,
  project: number,
  { session_id, turn_id }: { readonly session_id: string; readonly turn_id: string },
): LiveRowsOfTurn | Refusal {
  const row = sessionRow(store, project, session_id)
  const turn =
    row &&
    store.one<{ id: string }>(
      'SELECT id FROM session_turns WHERE session = ? AND id = ?',
      row.n,
      turn_id,
    )
  return row && turn
    ? { rows: streaming(store, row).filter(({ record }) => record.turn_id === turn_id) }
    : refuse('not_found', { resource: 'turn' }, 'There is no such turn in this project.')
}
