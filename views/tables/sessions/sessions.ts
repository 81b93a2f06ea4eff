/**
 * The rows of sessions, with their turns and messages, folded from the frames in the journal. A
 * message, turn or interaction has the revision of the last frame that changed it. A query for the
 * changes after a revision therefore only reads index ranges.
 */

import { parseTimestamp } from '../../../protocol/common.ts'
import { lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { patch } from '../../../protocol/patch.ts'
import {
  isFrame,
  patchBlock,
  rowIn,
  type SessionEvent,
  type SessionFrame,
} from '../../../protocol/sessions/events.ts'
import type {
  Session,
  SessionNudge,
  TranscriptMessage,
  TurnUpsert,
} from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { SummaryFields } from '../../../protocol/sessions/transcript/pages.ts'
import { isPrivate, withVisibility } from '../../../protocol/sessions/visibility.ts'
import type { Store } from '../../store.ts'
import { TurnChanges } from './turns.ts'

/** The visible state of compaction: the pass in progress, and the last summary. */
export interface CompactionNote {
  readonly running?: {
    readonly at: number
    readonly deadline: number
    readonly from: number
    readonly through: number
    readonly count: number
  }
  readonly latest?: {
    readonly message_id: string
    readonly sequence: number
    readonly covers_through_sequence: number
  }
}
export interface SessionRow {
  readonly n: number
  readonly id: string
  readonly revision: number
  readonly gone: number
  /** Journal cursor of the session's newest event. */
  readonly last: number
  readonly active_at: number
  readonly record: string
  readonly compaction: string
}

/** Returns the row of a session; undefined if the project has no such session. */
export const sessionRow = (store: Store, project: number, id: string): SessionRow | undefined =>
  store.one<SessionRow>(
    'SELECT n, id, revision, gone, last, active_at, record, compaction FROM sessions WHERE id = ? AND project = ?',
    id,
    project,
  )
export const recordOf = ({ record }: { readonly record: string }): Session =>
  JSON.parse(record) as Session

/**
 * Applies an entry of a session. Later entries of a session whose first entry was trimmed from the
 * journal are ignored.
 */
export function applySession(store: Store, place: PlacedEntry): void {
  const { entry } = place
  const project = store.numberOf(entry.project)
  const events = entry.events as readonly SessionEvent[]
  const [first] = events
  const created =
    first?.type === 'session.created'
      ? create(store, project, withVisibility(first.session, first.visibility_requested))
      : undefined
  const row = created ?? knownRow(store, project, entry.id)
  if (!row) return
  const { n } = row
  const on: Applying = { store, turns: new TurnChanges(store, n, project), ...row }
  for (const person of new Set(speakersIn(events, entry.origin.principal.id)))
    store.run('INSERT OR IGNORE INTO session_people (session, person) VALUES (?, ?)', n, person)
  for (const event of events) {
    if (isFrame(event)) frame(on, event, ++on.revision)
    else keep(on, event)
  }
  on.turns.write()
  const { record } = on
  store.run(
    `UPDATE sessions
     SET status = ?, active_at = ?, revision = ?, gone = ?, last = ?, record = ?, compaction = ?
     WHERE n = ?`,
    record.status,
    parseTimestamp(record.last_message_at ?? record.created_at) ?? 0,
    on.revision,
    on.gone,
    lastCursor(place),
    JSON.stringify(record),
    JSON.stringify(on.compaction),
    on.n,
  )
}
/**
 * Returns the ids of the principals that created the session or contributed to it with these
 * events.
 * @param caller the principal that sent the command.
 */
const speakersIn = (events: readonly SessionEvent[], caller: string): string[] =>
  events.flatMap((event) => {
    switch (event.type) {
      case 'session.created':
        return event.session.created_by === undefined ? [] : [event.session.created_by]
      case 'turn.admitted':
        return [event.work.asker.id]
      case 'nudge.queued':
        return [event.nudge.sender_principal_id]
      // The principal of a turn's messages is known from `turn.admitted`. A message without a turn
      // was appended by the caller.
      case 'message.upsert':
        return event.turn_id === undefined && event.entry_type === 'message' ? [caller] : []
      default:
        return []
    }
  })
/** The part of a session's row that entries change. */
interface Changing {
  readonly n: number
  record: Session
  revision: number
  gone: number
  compaction: CompactionNote
}
interface Applying extends Changing {
  readonly store: Store
  readonly turns: TurnChanges
}

function knownRow(store: Store, project: number, id: string): Changing | undefined {
  const row = sessionRow(store, project, id)
  return (
    row && {
      n: row.n,
      record: recordOf(row),
      revision: row.revision,
      gone: row.gone,
      compaction: JSON.parse(row.compaction) as CompactionNote,
    }
  )
}
/** Creates the row of a session. Returns undefined if the session already has one. */
function create(store: Store, project: number, record: Session): Changing | undefined {
  const { id, agent_id, session_key, scope, status, created_at, metadata } = record
  const closed = isPrivate(record) ? 1 : 0
  const at = parseTimestamp(created_at) ?? 0
  const text = (name: string): string | null =>
    typeof metadata?.[name] === 'string' ? metadata[name] : null
  // The record is written at the end of the entry.
  const row = store.one<{ n: number }>(
    `INSERT OR IGNORE INTO sessions (
       id, project, agent, session_key, scope, status, provider, integration,
       private, active_at, revision, gone, record, compaction
     ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '{}', '{}') RETURNING n`,
    id,
    project,
    agent_id,
    session_key,
    scope,
    status,
    text('provider'),
    text('integration_id'),
    closed,
    at,
  )
  return row && { n: row.n, record, revision: 0, gone: 0, compaction: {} }
}

function frame({ store, n, turns }: Applying, event: SessionFrame, revision: number): void {
  switch (event.type) {
    case 'message.upsert':
      return void putRow(store, n, rowIn(event), revision)
    case 'message.block':
      return void changeRow(store, n, event.message_id, revision, (content) => {
        const next = [...content]
        next[event.content_index] = event.block
        return next
      })
    case 'message.block.patch': {
      const { content_index, type: _, session_id: __, message_id: ___, ...change } = event
      return void changeRow(store, n, event.message_id, revision, (content) =>
        content.map((block, index) =>
          index === content_index ? patchBlock(block, change) : block,
        ),
      )
    }
    case 'turn.upsert':
      turns.put(turnOf(event), revision)
      if (settledTurns.has(event.status))
        store.run(
          'DELETE FROM session_messages WHERE session = ? AND turn = ? AND sequence IS NULL',
          n,
          event.id,
        )
      return
    case 'interaction.upsert':
      return void putInteraction(store, n, interactionOf(event), revision)
  }
}
const turnOf = ({ type: _, ...turn }: Extract<SessionFrame, { type: 'turn.upsert' }>): TurnUpsert =>
  turn
const interactionOf = ({
  type: _,
  ...interaction
}: Extract<SessionFrame, { type: 'interaction.upsert' }>): Interaction => interaction

function putRow(
  store: Store,
  n: number,
  row: TranscriptMessage,
  revision: number,
  hidden = 0,
): void {
  store.run(
    `INSERT INTO session_messages (id, session, turn, sequence, hidden, revision, record)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (session, id) DO UPDATE SET sequence = excluded.sequence,
       revision = excluded.revision, record = excluded.record`,
    row.id,
    n,
    row.turn_id ?? null,
    row.sequence,
    hidden,
    revision,
    JSON.stringify(row),
  )
}
function changeRow(
  store: Store,
  n: number,
  id: string,
  revision: number,
  change: (content: TranscriptMessage['content']) => TranscriptMessage['content'],
): void {
  const known = store.one<{ record: string }>(
    'SELECT record FROM session_messages WHERE session = ? AND id = ?',
    n,
    id,
  )
  if (!known) return
  const row = JSON.parse(known.record) as TranscriptMessage
  store.run(
    'UPDATE session_messages SET revision = ?, record = ? WHERE session = ? AND id = ?',
    revision,
    JSON.stringify({ ...row, content: change(row.content) }),
    n,
    id,
  )
}
const putInteraction = (
  store: Store,
  n: number,
  interaction: Interaction,
  revision: number,
): void =>
  store.run(
    'INSERT OR REPLACE INTO session_interactions (session, id, status, revision, record) VALUES (?, ?, ?, ?, ?)',
    n,
    interaction.id,
    interaction.status,
    revision,
    JSON.stringify(interaction),
  )

function keep(on: Applying, event: Exclude<SessionEvent, SessionFrame>): void {
  const { store, n, turns } = on
  switch (event.type) {
    case 'session.updated':
      on.record = patch(on.record, event.session)
      if (on.record.status === 'deleted') prune(on)
      return
    case 'session.expired':
      on.record = patch(on.record, event.session)
      return void prune(on)
    case 'context.stored':
      return void putRow(store, n, event.message, 0, 1)
    case 'turn.admitted':
      return void turns.begin(event.id, { asked_by: event.work.asker.id })
    case 'turn.spent':
      return void turns.addCost(event.spending)
    case 'turn.extra':
      return void turns.add(event.id, () => event.extra)
    case 'nudge.queued':
      return void putNudge(store, n, event.nudge)
    case 'nudge.changed': {
      const known = store.one<{ record: string }>(
        'SELECT record FROM session_nudges WHERE session = ? AND id = ?',
        n,
        event.id,
      )
      if (known) putNudge(store, n, patch(JSON.parse(known.record) as SessionNudge, event.nudge))
      return
    }
    case 'compaction.started': {
      const { from_sequence: from, through_sequence: through, message_count: count } = event.pass
      on.compaction = {
        ...on.compaction,
        running: { at: event.at, deadline: event.deadline, from, through, count },
      }
      return
    }
    case 'compaction.created': {
      const {
        message_id,
        sequence,
        covers_through_sequence,
        pass: { trigger, message_count, summary_model },
      } = event
      store.run(
        'UPDATE session_messages SET summing = ? WHERE session = ? AND id = ?',
        JSON.stringify({ trigger, message_count, summary_model } satisfies SummaryFields),
        n,
        message_id,
      )
      on.compaction = {
        ...stopped(on.compaction),
        latest: { message_id, sequence, covers_through_sequence },
      }
      return
    }
    case 'compaction.failed':
      on.compaction = stopped(on.compaction)
  }
}
const stopped = ({ running: _, ...rest }: CompactionNote): CompactionNote => rest
const putNudge = (store: Store, n: number, nudge: SessionNudge): void =>
  store.run(
    `INSERT INTO session_nudges (id, session, created_at, status, turn, record)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (session, id) DO UPDATE SET status = excluded.status, turn = excluded.turn,
       record = excluded.record`,
    nudge.id,
    n,
    parseTimestamp(nudge.created_at) ?? 0,
    nudge.status,
    nudge.turn.id,
    JSON.stringify(nudge),
  )

/** Deletes all content, outputs included. The session and its turns remain as a tombstone. */
function prune(on: Applying): void {
  on.gone = 1
  on.turns.write()
  for (const table of ['session_messages', 'session_interactions', 'session_nudges'])
    on.store.run(`DELETE FROM ${table} WHERE session = ?`, on.n)
  on.store.run(
    "UPDATE session_turns SET record = json_remove(record, '$.output', '$.output_source') WHERE session = ?",
    on.n,
  )
}
