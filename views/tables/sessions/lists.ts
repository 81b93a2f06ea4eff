/**
 * Reads sessions, with their messages, turns and nudges. A deleted or expired session has only its
 * tombstone and its turns, without content.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import {
  type AgentTurn,
  agentTurn,
  type CompactionProgress,
  publicSession,
  type Session,
  type SessionDetail,
  type SessionMessage,
  type SessionNudge,
  sessionMessage,
  shownSession,
  type TranscriptMessage,
  type TurnExtra,
  type TurnUpsert,
} from '../../../protocol/sessions/schema.ts'
import {
  allOf,
  type Condition,
  equalityConditions,
  isOneOf,
  type Many,
  valuesOf,
} from '../../conditions.ts'
import {
  type IncludeQuery,
  itemsThatFit,
  limitOf,
  type Page,
  type Paging,
  readPage,
  sizeOf,
  wantsAddition,
} from '../../page.ts'
import type { Store, Value } from '../../store.ts'
import { type CompactionNote, recordOf, type SessionRow, sessionRow } from './sessions.ts'
import { costOf } from './turns.ts'
import { viewerValues, visibleTo } from './visibility.ts'

const missing = (resource: string): Refusal =>
  refuse('not_found', { resource }, `There is no such ${resource} in this project.`)
const missingSession = missing('session')
interface Of {
  readonly session_id: string
}
type Found<T> = T | Refusal
const found = (store: Store, project: number, { session_id }: Of): SessionRow | undefined =>
  sessionRow(store, project, session_id)

/**
 * Returns a session, or `not_found` if the project has no such session. The gateway adds the number
 * of tokens at which the session is compacted.
 * @param now Unix milliseconds.
 */
export function sessionGet(
  store: Store,
  project: number,
  input: Of & IncludeQuery,
  now: number,
): Found<SessionDetail> {
  const row = found(store, project, input)
  if (!row) return missingSession
  const { latest, running } = JSON.parse(row.compaction) as CompactionNote
  const compaction: CompactionProgress = {
    in_progress: running !== undefined && running.deadline > now,
    ...(running &&
      running.deadline > now && {
        started_at: timestamp(running.at),
        deadline: timestamp(running.deadline),
        from_sequence: running.from,
        through_sequence: running.through,
        message_count: running.count,
      }),
  }
  const cost = wantsAddition(input, 'credit_cost_milli') ? costOf(store, row.n) : null
  return {
    ...shownSession(recordOf(row)),
    latest_compaction: latest ?? null,
    compaction,
    ...(cost !== null && { credit_cost_milli: cost }),
  }
}

/**
 * Filters of the list. All must match. `agent_id`: an id (the gateway resolves a name to an id);
 * `since`: the session was active after this time, in Unix milliseconds; `query`: a part of the
 * title or the key.
 */
export interface SessionFilters extends Paging {
  readonly agent_id?: string
  readonly session_key?: string
  readonly status?: Many
  readonly scope?: string
  readonly provider?: string
  readonly integration_id?: string
  readonly since?: number
  readonly query?: string
  /** The principal on whose behalf the query is made; absent: the service itself. */
  readonly viewer?: Viewer
}
const listed = (row: SessionRow): Session => publicSession(recordOf(row))
/**
 * Returns sessions, latest activity first. In the scope `agent`, an agent and a key identify one
 * session: the session that is not deleted, or else the newest session.
 */
export function sessionList(store: Store, project: number, input: SessionFilters): Page<Session> {
  const { agent_id, session_key, scope, provider, integration_id, since, query, viewer } = input
  const statuses = valuesOf(input.status)
  const conditions: Condition[] = [
    ['project = ?', project],
    isOneOf('status', statuses.length > 0 ? statuses : ['active']),
    ...equalityConditions({
      agent: agent_id,
      session_key,
      scope,
      provider,
      integration: integration_id,
    }),
  ]
  if (since !== undefined) conditions.push(['active_at > ?', since])
  if (query !== undefined) {
    // LIKE ignores the case of ASCII letters.
    const part = `%${query.replace(/[\\%_]/g, '\\$&')}%`
    conditions.push([
      `(json_extract(record, '$.title') LIKE ? ESCAPE '\\' OR session_key LIKE ? ESCAPE '\\')`,
      part,
      part,
    ])
  }
  if (viewer) conditions.push([visibleTo('sessions'), ...viewerValues(viewer)])
  const select = 'SELECT n, id, revision, gone, last, active_at, record, compaction FROM sessions'
  if (agent_id !== undefined && session_key !== undefined && scope === 'agent') {
    const { sql, values } = allOf(conditions)
    const named = store.one<SessionRow>(
      `${select} WHERE ${sql} ORDER BY status = 'deleted', n DESC LIMIT 1`,
      ...values,
    )
    return { items: named ? [listed(named)] : [] }
  }
  return readPage(
    store,
    { select, conditions, order: ['active_at', 'id'], direction: 'DESC' },
    input,
    listed,
  )
}

interface Window {
  readonly after_sequence?: number
  readonly before_sequence?: number
  readonly order?: 'asc' | 'desc'
  readonly limit?: number
  readonly include?: Many
}
interface MessageRow {
  readonly sequence: number
  readonly record: string
}
interface Messages {
  readonly items: SessionMessage[]
  readonly has_more: boolean
  readonly next_sequence?: number
  readonly prev_sequence?: number
}
function messages(
  store: Store,
  where: string,
  values: readonly Value[],
  { after_sequence, before_sequence, order = 'asc', include, ...paging }: Window,
): Messages {
  const direction = order === 'desc' ? 'DESC' : 'ASC'
  const limit = limitOf(paging)
  const hidden = valuesOf(include).includes('context') ? '' : ' AND hidden = 0'
  const bounds = [
    ...(after_sequence === undefined ? [] : [['sequence > ?', after_sequence] as const]),
    ...(before_sequence === undefined ? [] : [['sequence < ?', before_sequence] as const]),
  ]
  const rows = store.upToPage<MessageRow>(
    `SELECT sequence, record
     FROM session_messages
     WHERE ${where} AND sequence IS NOT NULL${hidden}${bounds.map(([sql]) => ` AND ${sql}`).join('')}
     ORDER BY sequence ${direction} LIMIT ?`,
    ...values,
    ...bounds.map(([, value]) => value),
    limit + 1,
  )
  const shown = [...itemsThatFit(rows, limit, sizeOf)]
  const items = (order === 'desc' ? shown.reverse() : shown).map((row) =>
    sessionMessage(JSON.parse(row.record) as TranscriptMessage),
  )
  const [first, last] = [items[0], items.at(-1)]
  return {
    items,
    has_more: rows.length > shown.length,
    ...(first && last && { next_sequence: last.sequence, prev_sequence: first.sequence }),
  }
}
/**
 * Returns the messages of a session, ordered by sequence number, or `not_found` if the project has
 * no such session.
 */
export function messagesOfSession(
  store: Store,
  project: number,
  input: Window & Of,
): Found<Messages> {
  const row = found(store, project, input)
  return row ? messages(store, 'session = ?', [row.n], input) : missingSession
}
/** Returns the messages of a turn in sequence order, or `not_found` if there is no such turn. */
export function messagesOfTurn(
  store: Store,
  project: number,
  { turn_id, ...input }: Window & { readonly turn_id: string },
): Found<Messages> {
  const turn = store.one<{ session: number }>(
    'SELECT session FROM session_turns WHERE id = ? AND project = ?',
    turn_id,
    project,
  )
  return turn
    ? messages(store, 'session = ? AND turn = ?', [turn.session, turn_id], input)
    : missing('turn')
}

interface TurnRow {
  readonly id: string
  readonly seq: number
  readonly extra: string
  readonly record: string
}
const turnRecord = ({ record, extra }: TurnRow): AgentTurn =>
  agentTurn(JSON.parse(record) as TurnUpsert, JSON.parse(extra) as TurnExtra)
/**
 * Returns turns of a session, or `not_found`; with `ids`, only these turns. `order` decides whether
 * the first page has the oldest or the newest turns. Within a page, turns are always ordered by
 * creation.
 */
export function turnList(
  store: Store,
  project: number,
  input: Paging & Of & { readonly ids?: Many; readonly order?: 'asc' | 'desc' },
): Found<Page<AgentTurn>> {
  const row = found(store, project, input)
  if (!row) return missingSession
  const ids = valuesOf(input.ids)
  const select = 'SELECT id, seq, extra, record FROM session_turns'
  if (ids.length > 0) {
    const { sql, values } = allOf([['session = ?', row.n], isOneOf('id', ids)])
    return {
      items: store.all<TurnRow>(`${select} WHERE ${sql} ORDER BY seq`, ...values).map(turnRecord),
    }
  }
  const isDescending = input.order === 'desc'
  const { items, ...rest } = readPage(
    store,
    {
      select,
      conditions: [['session = ?', row.n]],
      order: ['seq'],
      direction: isDescending ? 'DESC' : 'ASC',
    },
    input,
    turnRecord,
  )
  return { items: isDescending ? items.toReversed() : items, ...rest }
}
/** Returns a turn of a session, or `not_found` if the session or the turn does not exist. */
export function turnGet(
  store: Store,
  project: number,
  { turn_id, ...input }: Of & { readonly turn_id: string },
): Found<AgentTurn> {
  const row = found(store, project, input)
  const turn =
    row &&
    store.one<TurnRow>(
      'SELECT id, seq, extra, record FROM session_turns WHERE session = ? AND id = ?',
      row.n,
      turn_id,
    )
  return turn ? turnRecord(turn) : missing('turn')
}

interface NudgeRow {
  readonly id: string
  readonly created_at: number
  readonly record: string
  readonly status: string | null
}
/** Returns a nudge with the current status of its turn. */
function nudgeRecord({ record, status }: NudgeRow): SessionNudge {
  const nudge = JSON.parse(record) as SessionNudge
  return status === null
    ? nudge
    : { ...nudge, turn: { ...nudge.turn, status: status as SessionNudge['turn']['status'] } }
}
const nudges = `SELECT g.id, g.created_at, g.record, t.status
                FROM session_nudges g
                LEFT JOIN session_turns t ON t.session = g.session AND t.id = g.turn`
/** Returns nudges of a session, or `not_found`. The oldest come first unless `order` is `desc`. */
export function nudgeList(
  store: Store,
  project: number,
  input: Paging & Of & { readonly status?: Many; readonly order?: 'asc' | 'desc' },
): Found<Page<SessionNudge>> {
  const row = found(store, project, input)
  if (!row) return missingSession
  const statuses = valuesOf(input.status)
  return readPage(
    store,
    {
      select: nudges,
      conditions: [
        ['g.session = ?', row.n],
        ...(statuses.length > 0 ? [isOneOf('g.status', statuses)] : []),
      ],
      order: ['g.created_at', 'g.id'],
      direction: input.order === 'desc' ? 'DESC' : 'ASC',
    },
    input,
    nudgeRecord,
  )
}
/** Returns a nudge of a session, or `not_found` if the session or the nudge does not exist. */
export function nudgeGet(
  store: Store,
  project: number,
  { nudge_id, ...input }: Of & { readonly nudge_id: string },
): Found<SessionNudge> {
  const row = found(store, project, input)
  const nudge =
    row && store.one<NudgeRow>(`${nudges} WHERE g.session = ? AND g.id = ?`, row.n, nudge_id)
  return nudge ? nudgeRecord(nudge) : missing('nudge')
}
