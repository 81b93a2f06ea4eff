/**
 * Keyword search in the rows of a table. Results are ordered by the number of words that a row
 * contains exactly, then by the latest change, then by the id.
 *
 * For one expression, the full-text index yields the rows sorted by their latest change. A search
 * therefore has one expression for each number of exact words, and evaluates the expressions
 * beginning with the largest number. This way, a page reads only its own rows. In two cases, all
 * rows that the words find are read and ranked instead: if the expressions would be too large
 * because of many words, and if the table may hide values, which the index still contains.
 * `exactHits` of the protocol decides whether a row matches.
 */
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { type Condition, planQuery } from '../../../protocol/tables/query.ts'
import type { SearchRows, TableRow } from '../../../protocol/tables/schema.ts'
import { exactHits, rowTokens, tokensOf } from '../../../protocol/tables/search.ts'
import type { InParts } from '../../define-view.ts'
import { limitOf, MAX_PAGE_CHARACTERS, type Page, type Paging, page } from '../../page.ts'
import type { Store } from '../../store.ts'
import { type Defined, missingTable, tableOf } from './definitions.ts'
import { ordersOf, rowsThrough } from './orders.ts'
import { satisfiesAll } from './ranges.ts'
import {
  COLUMNS,
  codeOf,
  FIRST_STAMP,
  PREFIX_LENGTH,
  type RowRecord,
  readerOf,
  rowRecord,
} from './rows.ts'
import { findNarrowest, rowsByKey } from './selection.ts'

/**
 * Maximum number of words that are looked up in the index. The other words are checked against
 * the rows that are found.
 */
const MAX_WORDS = 24
/** Maximum number of alternatives in an expression. */
const MAX_ALTERNATIVES = 32
/** Maximum number of index entries that are read in one part. */
const MAX_HITS = 1000
/** Maximum number of rows that are read in one part. */
const MAX_ROWS = 200
/**
 * If at most this number of rows may match the filter, they are checked against the words directly,
 * without the index.
 */
const MAX_COMPARED = 500

interface Found extends RowRecord {
  readonly hits: number
}
/** The place of a row in the order of the results. */
type ResultPosition = Pick<Found, 'hits' | 'updated_at' | 'id'>
const byRank = (a: ResultPosition, b: ResultPosition): number =>
  b.hits - a.hits || b.updated_at - a.updated_at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

interface Search {
  readonly store: Store
  readonly defined: Defined
  readonly words: readonly string[]
  readonly conditions: readonly Condition[]
  readonly after: ResultPosition | undefined
  readonly count: number
}

/**
 * Returns a page of search results. Its position is the place of the last row. An unknown table and
 * an invalid search are refused.
 */
export function* searchRows(
  store: Store,
  project: number,
  input: Pick<SearchRows, 'query' | 'filter'> & Paging & { readonly id: string },
): InParts<Page<TableRow> | Refusal> {
  const defined = tableOf(store, project, input.id)
  if (!defined) return missingTable
  const { schema } = defined.table
  const plan = planQuery(schema, input.filter ? { filter: input.filter } : {})
  const words = [...new Set(tokensOf(input.query))]
  const faults = [
    ...('faults' in plan ? plan.faults : []),
    ...(words.length === 0 ? [{ field: 'query', message: 'must have a letter or a digit' }] : []),
  ]
  if ('faults' in plan || faults.length > 0) return refuseFields(...faults)
  const rows = yield* find({
    store,
    defined,
    words,
    conditions: plan.conditions,
    after: positionOf(input.after),
    count: limitOf(input) + 1,
  })
  return page(
    rows,
    input,
    (row) => rowRecord(input.id, schema, row),
    ({ hits, updated_at, id }) => [hits, updated_at, id],
  )
}
function positionOf([hits, updated_at, id]: NonNullable<Paging['after']> = []):
  | ResultPosition
  | undefined {
  return typeof hits === 'number' && typeof updated_at === 'number' && typeof id === 'string'
    ? { hits, updated_at, id }
    : undefined
}

function* find(search: Search): InParts<readonly Found[]> {
  const { store, defined, words, conditions } = search
  const orders = ordersOf(store, defined.n).filter(({ reached }) => !reached)
  const known = rowsByKey(store, defined, conditions)
  const narrow = known ? undefined : findNarrowest(store, orders, conditions)
  if (known) return ranked(search, [], known)
  if (narrow && narrow.rows <= MAX_COMPARED) {
    let found: readonly Found[] = []
    for (const rows of rowsThrough(store, narrow.order, narrow.range, MAX_COMPARED))
      found = ranked(search, found, rows)
    return found
  }
  if (defined.hides) return yield* rankAll(search)
  const code = codeOf(defined.n)
  const exact = new Set(words.filter((word) => occurs(store, quoted(code + word))))
  const isMissing = (word: string) =>
    word.length <= PREFIX_LENGTH && !exact.has(word) && !occurs(store, `${quoted(code + word)} *`)
  if (words.some(isMissing)) return []
  const levels = levelsOf(words, exact, code)
  return levels ? yield* byLevel(search, levels) : yield* rankAll(search)
}
/** Whether the index has an entry for an expression. */
const occurs = (store: Store, expression: string): boolean =>
  store.one('SELECT 1 FROM table_words WHERE table_words MATCH ? LIMIT 1', expression) !== undefined

const quoted = (token: string): string => `"${token}"`
/**
 * Returns the expressions for rows that contain 0, 1, 2 … of the words exactly; undefined if one of
 * them would be too large. See https://www.sqlite.org/fts5.html#full_text_query_syntax.
 * @param known the words that some row contains exactly. Alternatives with other exact words would
 * find nothing, but the index would still read all entries of the remaining words.
 */
function levelsOf(
  words: readonly string[],
  known: ReadonlySet<string>,
  code: string,
): readonly string[] | undefined {
  let levels: string[][][] = [[[]]]
  for (const word of words) {
    const exact = quoted(code + word)
    const begun = known.has(word) ? `(${exact} * NOT ${exact})` : `${exact} *`
    const next: string[][][] = levels.map((level) => level.map((parts) => [...parts, begun]))
    for (const [hits, level] of known.has(word) ? levels.entries() : [])
      next[hits + 1] = [...(next[hits + 1] ?? []), ...level.map((parts) => [...parts, exact])]
    levels = next
    if (levels.some((level) => level.length > MAX_ALTERNATIVES)) return undefined
  }
  return levels.map((level) => level.map((parts) => `(${parts.join(' AND ')})`).join(' OR '))
}

interface Hit {
  readonly n: number
  readonly id: string
  readonly updated_at: number
  /** The stamp as text, because it may exceed `Number.MAX_SAFE_INTEGER`. */
  readonly stamp: string
}
/** Returns the index entries for an expression, latest change first. */
const hitsOf = (
  store: Store,
  expression: string,
  before: string | undefined,
  limit: number,
): Hit[] =>
  store.all<Hit>(
    `SELECT r.n, r.id, r.updated_at, CAST(r.stamp AS TEXT) AS stamp
     FROM table_words
     CROSS JOIN table_rows r ON r.stamp = table_words.rowid
     WHERE table_words MATCH ? AND table_words.rowid < CAST(? AS INTEGER)
     ORDER BY table_words.rowid DESC LIMIT ?`,
    expression,
    before ?? '9223372036854775807',
    limit,
  )
/** Returns the smallest stamp that is greater than all stamps of the given time. */
const stampAfter = (store: Store, at: number): string | undefined =>
  store.one<{ stamp: string }>(`SELECT CAST(${FIRST_STAMP} AS TEXT) AS stamp`, at + 1)?.stamp

/** Reads rows level by level until the page is full. */
function* byLevel(search: Search, levels: readonly string[]): InParts<readonly Found[]> {
  const { store, after } = search
  const found: Found[] = []
  const best = after ? Math.min(after.hits, levels.length - 1) : levels.length - 1
  for (let level = best; level >= 0; level--) {
    const continues = after?.hits === level
    let before = continues ? stampAfter(store, after.updated_at) : undefined
    // The entries with the same time as the last entry. The index does not sort them by id.
    let same: Hit[] = []
    for (let limit = 2 * search.count; ; limit = Math.min(4 * limit, MAX_HITS)) {
      const hits = hitsOf(store, levels[level] ?? '', before, limit)
      for (const hit of hits) {
        if (hit.updated_at !== same[0]?.updated_at) {
          if (yield* take(search, level, same, found)) return found
          same = []
        }
        same.push(hit)
      }
      const last = hits.at(-1)
      if (!last || hits.length < limit) break
      before = last.stamp
      yield
    }
    if (yield* take(search, level, same, found)) return found
  }
  return found
}
/**
 * Adds the rows of some entries with the same time.
 * @returns whether the page is full.
 */
function* take(search: Search, level: number, hits: Hit[], found: Found[]): InParts<boolean> {
  const { store, count } = search
  hits.sort((a, b) => (a.id < b.id ? -1 : 1))
  for (const [i, { n }] of hits.entries()) {
    if (i % MAX_ROWS === MAX_ROWS - 1) yield
    const row = store.one<RowRecord>(`SELECT ${COLUMNS} FROM table_rows r WHERE r.n = ?`, n)
    const one = row && judged(search, row)
    // Skips rows that do not match. Also skips a row with more hits than the level: it was changed
    // after the query began, and the level to which it now belongs has already been read.
    if (one?.hits !== level) continue
    found.push(one)
    if (isFull(found, count)) return true
  }
  return false
}
const isFull = (found: readonly Found[], count: number): boolean =>
  found.length >= count ||
  (found.length > 1 &&
    found.reduce((sum, { record }) => sum + record.length, 0) > MAX_PAGE_CHARACTERS)

/**
 * Returns a row with its hits; undefined if the search does not find the row, or an earlier page
 * contains it.
 */
function judged({ defined, words, conditions, after }: Search, row: RowRecord): Found | undefined {
  const { table } = defined
  const reader = readerOf(table.schema, row)
  if (!satisfiesAll(conditions, reader)) return undefined
  const hits = exactHits(words, rowTokens(rowRecord(table.id, table.schema, row).data))
  if (hits === undefined) return undefined
  const found = { ...row, hits }
  return after && byRank(found, after) <= 0 ? undefined : found
}
/** Ranks further rows among those found so far, and keeps the first rows. */
const ranked = (
  search: Search,
  found: readonly Found[],
  rows: readonly RowRecord[],
): readonly Found[] =>
  [...found, ...rows.flatMap((row) => judged(search, row) ?? [])]
    .sort(byRank)
    .slice(0, search.count)

/** Reads and ranks all rows that match the words, and keeps the first rows. */
function* rankAll(search: Search): InParts<readonly Found[]> {
  const { store, defined, words } = search
  const code = codeOf(defined.n)
  const expression = words
    .slice(0, MAX_WORDS)
    .map((word) => `${quoted(code + word)} *`)
    .join(' AND ')
  let found: readonly Found[] = []
  let before: string | undefined
  for (;;) {
    const rows = store.upToPage<RowRecord & { readonly stamp: string }>(
      `SELECT ${COLUMNS}, CAST(r.stamp AS TEXT) AS stamp
       FROM table_words
       CROSS JOIN table_rows r ON r.stamp = table_words.rowid
       WHERE table_words MATCH ? AND table_words.rowid < CAST(? AS INTEGER)
       ORDER BY table_words.rowid DESC LIMIT ${MAX_ROWS}`,
      expression,
      before ?? '9223372036854775807',
    )
    const last = rows.at(-1)
    if (!last) return found
    before = last.stamp
    found = ranked(search, found, rows)
    yield
  }
}
