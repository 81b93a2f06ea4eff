/**
 * The window of a table: which rows and identities changed recently. A view provides facts about
 * rows, which are true as of a certain change. The window and these facts together determine the
 * current rows of the table.
 *
 * Invariants:
 * W1. The window covers all changes with numbers above `floor`. For each row and identity that
 *     these changes affected, it stores the last change.
 * W2. The window is bounded. It consists of two generations. When the recent one is full, it
 *     becomes the older one, and the previous older one is dropped. A generation exceeds its bound
 *     by at most one request.
 * W3. Cached rows are always current, so no facts about them are needed.
 */
import type { JsonObject } from '../../protocol/common.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { RowFact, StaleReply, StoredRow, TableFacts } from '../../protocol/tables/events.ts'

/** Bounds on the sizes of the parts of a window, in characters. */
export interface WindowBounds {
  /**
   * Bound on the keys of a generation, counting `ENTRY_LENGTH` additional characters for each key.
   */
  readonly generation: number
  /** Bound on the data of one cached row, as JSON. A row with more data is not cached. */
  readonly cachedRow: number
  /** Bound on the data of a generation of cached rows, as JSON. */
  readonly cachedRows: number
}
/**
 * The default bounds, with which the window covers at least 1,600 inserted rows with identities of
 * 30 characters.
 */
export const windowBounds: WindowBounds = {
  generation: 262_144,
  cachedRow: 1024,
  cachedRows: 131_072,
}
/** Estimated number of characters of an entry in addition to its key. */
const ENTRY_LENGTH = 48

interface Generation {
  /** Number of the last change of each row, by row id; negative if the change was the deletion. */
  rows: Record<string, number>
  /**
   * Number of the last change of each identity, by `identityKey(identity)`, with the id of the row that
   * then had the identity; null: no row had it.
   */
  identities: Record<string, readonly [change: number, row_id: string | null]>
  /** Estimated length in characters. */
  length: number
  /** Number of the last change of the generation. */
  through: number
}
export interface RowWindow {
  recent: Generation
  older: Generation
  floor: number
  /**
   * Small rows that changed recently, by id. `length`: characters of the data added to `recent`.
   */
  cache: { recent: Record<string, StoredRow>; older: Record<string, StoredRow>; length: number }
}
const generation = (through: number): Generation => ({
  rows: {},
  identities: {},
  length: 0,
  through,
})
/** Returns the window of a table without changes. */
export const emptyWindow = (): RowWindow => ({
  recent: generation(0),
  older: generation(0),
  floor: 0,
  cache: { recent: {}, older: {}, length: 0 },
})
/** Prefixes an identity, because clients choose identities and may choose `__proto__`. */
const identityKey = (identity: string): string => `/${identity}`

function noteRow({ recent }: RowWindow, id: string, change: number): void {
  if (!Object.hasOwn(recent.rows, id)) recent.length += id.length + ENTRY_LENGTH
  recent.rows[id] = change
}
function noteIdentity(
  { recent }: RowWindow,
  identity: string,
  row_id: string | null,
  change: number,
): void {
  const place = identityKey(identity)
  if (!Object.hasOwn(recent.identities, place)) recent.length += place.length + ENTRY_LENGTH
  recent.identities[place] = [change, row_id]
}
function cacheRow({ cache }: RowWindow, row: StoredRow, bounds: WindowBounds): void {
  const { length } = JSON.stringify(row.data)
  delete cache.older[row.id]
  if (length > bounds.cachedRow) {
    delete cache.recent[row.id]
    return
  }
  cache.recent[row.id] = row
  cache.length += length
  if (cache.length <= bounds.cachedRows) return
  cache.older = cache.recent
  cache.recent = {}
  cache.length = 0
}
/** Ends a change: a full generation becomes the older one. */
function endChange(window: RowWindow, change: number, bounds: WindowBounds): void {
  window.recent.through = change
  if (window.recent.length <= bounds.generation) return
  window.floor = window.older.through
  window.older = window.recent
  window.recent = generation(change)
}

/** Records new rows. Only a row that is inserted alone is cached. */
export function noteInserted(
  window: RowWindow,
  rows: readonly StoredRow[],
  change: number,
  bounds: WindowBounds,
): void {
  for (const { id, identity } of rows) {
    noteRow(window, id, change)
    noteIdentity(window, identity, id, change)
  }
  const [first] = rows
  if (first && rows.length === 1) cacheRow(window, first, bounds)
  endChange(window, change, bounds)
}
/** Records an updated row and, if its identity changed, the previous identity. */
export function noteUpdated(
  window: RowWindow,
  row: StoredRow,
  previous_identity: string | undefined,
  change: number,
  bounds: WindowBounds,
): void {
  noteRow(window, row.id, change)
  if (previous_identity !== undefined) {
    noteIdentity(window, previous_identity, null, change)
    noteIdentity(window, row.identity, row.id, change)
  }
  cacheRow(window, row, bounds)
  endChange(window, change, bounds)
}
/** Records a deleted row. */
export function noteDeleted(
  window: RowWindow,
  { id, identity }: StoredRow,
  change: number,
  bounds: WindowBounds,
): void {
  noteRow(window, id, -change)
  noteIdentity(window, identity, null, change)
  delete window.cache.recent[id]
  delete window.cache.older[id]
  endChange(window, change, bounds)
}

/**
 * The current rows of a table, as determined from the window and the facts of a command. The
 * functions return a `StaleReply` if these do not suffice.
 */
export interface CurrentRows {
  /** Returns the id of the row that has this identity, or undefined if no row has it. */
  holderOf(identity: string): string | undefined | StaleReply
  /** Returns the row with this id, or undefined if the table has no such row. */
  rowOf(id: string): StoredRow | undefined | StaleReply
}
/**
 * Whether a fact contains the data of its row. Facts without data are sent only with commands that
 * do not need the data.
 */
const isComplete = (fact: RowFact): fact is RowFact & { readonly data: JsonObject } =>
  fact.data !== undefined
/**
 * Combines a window with the facts of a command.
 * @param change the number of the last change of the table.
 */
export function currentRows(window: RowWindow, facts: TableFacts, change: number): CurrentRows {
  const { recent, older, floor, cache } = window
  const { through } = facts
  const byId = new Map(facts.rows.map((row) => [row.id, row]))
  const byIdentity = new Map(facts.rows.map((row) => [row.identity, row]))
  return {
    holderOf(identity) {
      const place = identityKey(identity)
      const last = getOwn(recent.identities, place) ?? getOwn(older.identities, place)
      if (last && last[0] > through) return last[1] ?? undefined
      return through < floor ? { stale: floor } : byIdentity.get(identity)?.id
    },
    rowOf(id) {
      const cached = getOwn(cache.recent, id) ?? getOwn(cache.older, id)
      if (cached) return cached
      const last = getOwn(recent.rows, id) ?? getOwn(older.rows, id)
      if (last !== undefined && Math.abs(last) > through)
        return last < 0 ? undefined : { stale: last }
      if (through < floor) return { stale: floor }
      const fact = byId.get(id)
      if (!fact) return undefined
      return isComplete(fact) ? fact : { stale: change }
    },
  }
}
