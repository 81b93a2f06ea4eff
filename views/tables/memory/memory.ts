/**
 * Stores the memory of agents, lists its entries, searches them by keyword, and reads the feed of
 * changes. A change that is older than the retention period counts as deleted, whether or not its
 * row still exists. All replicas of a view therefore return the same answers.
 */
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import {
  type AgentMemory,
  MEMORY_RETENTION,
  type MemoryChange,
  type MemoryEntry,
  type MemoryEvent,
} from '../../../protocol/memory/schema.ts'
import { foldText } from '../../../protocol/rules/fold-text.ts'
import { type Condition, equalityConditions } from '../../conditions.ts'
import { itemsThatFit, type Page, type Paging, readPage, sizeOf } from '../../page.ts'
import type { Store } from '../../store.ts'
import { hasAgent } from '../agents/agents.ts'

const missing: Refusal = refuse(
  'not_found',
  { resource: 'agent' },
  'There is no such agent in this project.',
)

/** Applies an entry of an agent's memory, and deletes the agent's expired changes. */
export function applyMemory(store: Store, { cursor, entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  const agent = entry.id
  const { at } = entry.origin
  for (const [index, any] of (entry.events as readonly Event[]).entries()) {
    const event = any as MemoryEvent
    if (event.type === 'memory.cleared') {
      store.run('DELETE FROM memory WHERE project = ? AND agent = ?', project, agent)
      store.run('DELETE FROM memory_changes WHERE project = ? AND agent = ?', project, agent)
      continue
    }
    const { change } = event
    if (event.type === 'memory.saved') put(store, project, agent, event.entry)
    else
      store.run(
        'DELETE FROM memory WHERE project = ? AND agent = ? AND key = ?',
        project,
        agent,
        change.memory_key,
      )
    store.run(
      'INSERT OR REPLACE INTO memory_changes (project, agent, cursor, at, record) VALUES (?, ?, ?, ?, ?)',
      project,
      agent,
      cursor + index,
      at,
      JSON.stringify(change),
    )
  }
  // The newest expired change is kept, because its cursor shows which cursors have expired.
  store.run(
    `DELETE FROM memory_changes
     WHERE project = ? AND agent = ? AND cursor < (
       SELECT max(cursor) FROM memory_changes WHERE project = ? AND agent = ? AND at < ?)`,
    project,
    agent,
    project,
    agent,
    at - MEMORY_RETENTION,
  )
}
function put(store: Store, project: number, agent: string, entry: MemoryEntry): void {
  const words = foldText([entry.key, entry.summary ?? '', entry.content ?? ''].join('\n'))
  store.run(
    `INSERT OR REPLACE INTO memory (
       project, agent, key, kind, pinned, importance, updated_at, words, record
     ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    project,
    agent,
    entry.key,
    entry.kind,
    entry.pinned ? 1 : 0,
    entry.importance,
    parseTimestamp(entry.updated_at) ?? 0,
    words,
    JSON.stringify(entry),
  )
}

/**
 * Returns the number of an agent's entries, in total and by kind, and the time of the last update,
 * or `not_found` if the project has no such agent.
 */
export function memoryGet(
  store: Store,
  project: number,
  { id }: { readonly id: string },
): AgentMemory | Refusal {
  if (!hasAgent(store, project, id)) return missing
  const rows = store.all<{ kind: string; n: number; newest: number }>(
    `SELECT kind, count(*) AS n, max(updated_at) AS newest
     FROM memory
     WHERE project = ? AND agent = ?
     GROUP BY kind
     ORDER BY kind`,
    project,
    id,
  )
  return {
    agent_id: id,
    entry_count: rows.reduce((sum, { n }) => sum + n, 0),
    counts_by_kind: Object.fromEntries(rows.map(({ kind, n }) => [kind, n])),
    ...(rows.length > 0 && {
      updated_at: timestamp(Math.max(...rows.map(({ newest }) => newest))),
    }),
  }
}

/** Maximum number of words in a search. Additional words are ignored. */
const MAX_WORDS = 16
/** Filters of the entries of an agent. All must match. */
export interface MemoryFilters extends Paging {
  readonly id: string
  readonly query?: string
  readonly search_mode?: 'keyword' | 'semantic' | 'hybrid'
  readonly kind?: string
}
/**
 * Returns entries of an agent: pinned entries first, then by decreasing importance, then by latest
 * update. Memory has no index for semantic search, so a search in any mode other than `keyword` is
 * refused.
 */
export function memoryEntries(
  store: Store,
  project: number,
  input: MemoryFilters,
): Page<MemoryEntry> | Refusal {
  if (!hasAgent(store, project, input.id)) return missing
  const words = foldText(input.query ?? '')
    .split(/\s+/)
    .filter(Boolean)
    .slice(0, MAX_WORDS)
  if (words.length > 0 && (input.search_mode ?? 'keyword') !== 'keyword')
    return refuse('memory_semantic_search_unavailable')
  return readPage<{ readonly record: string }, MemoryEntry>(
    store,
    {
      select: 'SELECT key, pinned, importance, updated_at, record FROM memory',
      conditions: [
        ...equalityConditions({ project, agent: input.id, kind: input.kind }),
        ...words.map((word): Condition => ['instr(words, ?) > 0', word]),
      ],
      order: ['pinned', 'importance', 'updated_at', 'key'],
      direction: 'DESC',
    },
    input,
    ({ record }) => JSON.parse(record) as MemoryEntry,
  )
}

/**
 * Returns the changes after a position, oldest first; without a position, all retained changes. The
 * next page begins after `last`. The query is refused if the agent does not exist, or if changes
 * after the position have expired.
 * @param now Unix milliseconds.
 */
export function memoryChanges(
  store: Store,
  project: number,
  { id, after, limit }: { readonly id: string; readonly after?: number; readonly limit: number },
  now: number,
): { items: MemoryChange[]; last: number; more: boolean } | Refusal {
  if (!hasAgent(store, project, id)) return missing
  const gone =
    store.one<{ cursor: number | null }>(
      'SELECT max(cursor) AS cursor FROM memory_changes WHERE project = ? AND agent = ? AND at < ?',
      project,
      id,
      now - MEMORY_RETENTION,
    )?.cursor ?? 0
  if (after !== undefined && after < gone) return refuse('memory_cursor_expired')
  const from = Math.max(after ?? 0, gone)
  const rows = store.upToPage<{ cursor: number; record: string }>(
    'SELECT cursor, record FROM memory_changes WHERE project = ? AND agent = ? AND cursor > ? ORDER BY cursor LIMIT ?',
    project,
    id,
    from,
    limit + 1,
  )
  const shown = itemsThatFit(rows, limit, sizeOf)
  return {
    items: shown.map(({ record }) => JSON.parse(record) as MemoryChange),
    last: shown.at(-1)?.cursor ?? from,
    more: rows.length > shown.length,
  }
}
