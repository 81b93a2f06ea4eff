/**
 * The list of rows that a hybrid search ranks by words. It contains rows with at least one word of
 * the query, or with a word that begins with a word of the query. Unlike keyword search, it does
 * not require all words, because a question in natural language contains words that a relevant row
 * lacks. Rows with more exact words come first, then rows with more words that begin with a word of
 * the query, then the latest change, then the id. The number of compared rows is bounded, so that a
 * question with common words remains fast in a large table.
 */
import type { Condition } from '../../../../protocol/tables/query.ts'
import { visibleData } from '../../../../protocol/tables/row-data.ts'
import { rowTokens } from '../../../../protocol/tables/search.ts'
import { anyHits, semanticLimits } from '../../../../protocol/tables/semantic.ts'
import type { InParts } from '../../../define-view.ts'
import type { Store } from '../../../store.ts'
import type { Defined } from '../definitions.ts'
import { satisfiesAll } from '../ranges.ts'
import { COLUMNS, codeOf, dataOf, type RowRecord, readerOf } from '../rows.ts'

interface Search {
  readonly store: Store
  readonly defined: Defined
  readonly words: readonly string[]
  readonly conditions: readonly Condition[]
}
interface Found {
  readonly id: string
  readonly updated_at: number
  readonly exact: number
  readonly begun: number
}
const compare = (a: Found, b: Found): number =>
  b.exact - a.exact ||
  b.begun - a.begun ||
  b.updated_at - a.updated_at ||
  (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/**
 * Maximum number of words that are looked up in the index. The other words only affect the order.
 */
const MAX_WORDS = 24
/** Number of rows that are read in one part. */
const PART = 50

/**
 * Returns the ids of the first rows. At most `semanticLimits.examined` rows are compared: first the
 * rows with all words, then the rows with the rarest word, and so on. Among rows with the same
 * word, the rows that changed last are preferred.
 */
export function* rankByWords(search: Search): InParts<readonly string[]> {
  const { store, words } = search
  const { examined, window } = semanticLimits
  const seen = new Set<number>()
  const found: Found[] = []
  for (const expression of yield* expressionsOf(search)) {
    // All hits are read by one statement: if each part had its own statement, each would read all
    // index entries of a prefix again.
    const hits = store.all<{ n: number }>(
      `SELECT r.n FROM table_words
       CROSS JOIN table_rows r ON r.stamp = table_words.rowid
       WHERE table_words MATCH ? ORDER BY table_words.rowid DESC LIMIT ?`,
      expression,
      examined,
    )
    for (const [i, { n }] of hits.entries()) {
      if (i % PART === 0) yield
      if (seen.size >= examined) return best(found, window)
      if (seen.has(n)) continue
      seen.add(n)
      const row = store.one<RowRecord>(`SELECT ${COLUMNS} FROM table_rows r WHERE r.n = ?`, n)
      const hit = row && judged(search, row)
      if (hit) found.push({ id: row.id, updated_at: row.updated_at, ...hit })
    }
  }
  return words.length === 0 ? [] : best(found, window)
}
const best = (found: readonly Found[], count: number): readonly string[] =>
  found
    .toSorted(compare)
    .slice(0, count)
    .map(({ id }) => id)
/**
 * Returns the full-text expressions: first for rows with all words, then one for each word, with
 * the rarest word first.
 */
function* expressionsOf({ store, defined, words }: Search): InParts<readonly string[]> {
  const each = words.slice(0, MAX_WORDS).map((word) => `"${codeOf(defined.n)}${word}" *`)
  const counted: { readonly expression: string; readonly rows: number }[] = []
  for (const expression of each) {
    counted.push({ expression, rows: rowsWith(store, expression) })
    yield
  }
  counted.sort((a, b) => a.rows - b.rows)
  return [
    ...(each.length > 1 ? [each.join(' AND ')] : []),
    ...counted.map(({ expression }) => expression),
  ]
}
/** Returns the number of full-text index entries for an expression, counted up to a limit. */
const rowsWith = (store: Store, expression: string): number =>
  store.one<{ rows: number }>(
    `SELECT count(*) AS rows
     FROM (SELECT 1 FROM table_words WHERE table_words MATCH ? LIMIT ?)`,
    expression,
    semanticLimits.examined,
  )?.rows ?? 0
/** Returns the hits of a row; undefined if the row does not match the filter or has no hits. */
function judged(
  { defined, words, conditions }: Search,
  row: RowRecord,
): ReturnType<typeof anyHits> {
  const { schema } = defined.table
  if (conditions.length > 0 && !satisfiesAll(conditions, readerOf(schema, row))) return undefined
  return anyHits(words, rowTokens(visibleData(schema, dataOf(row))))
}
