/**
 * The list of hybrid search that is ranked by words: rows that have at least one word of the query,
 * or a word that begins with one. A question in ordinary language has words that a good row lacks,
 * so it does not need all of them, unlike keyword search. Rows with more exact words come first,
 * then those with more beginnings, then the latest change, then the id.
 */
import { type Condition, fulfils } from '../../../../protocol/tables/query.ts'
import { rowTokens } from '../../../../protocol/tables/search.ts'
import { anyHits, semanticLimits } from '../../../../protocol/tables/semantic.ts'
import type { InParts } from '../../../define-view.ts'
import type { Store } from '../../../store.ts'
import type { Defined } from '../definitions.ts'
import { COLUMNS, codeOf, type RowRecord, readerOf, rowRecord } from '../rows.ts'

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

/** Maximum number of words that the index looks for; the others only affect the order. */
const WORDS = 24
/** Number of rows that are read in one part. */
const PART = 100

/**
 * The ids of the first rows. Of the rows with a word, the ones that were changed last are read, at
 * most `semanticLimits.examined`.
 */
export function* rankByWords(search: Search): InParts<readonly string[]> {
  const { store, defined, words, conditions } = search
  const { table, n } = defined
  if (words.length === 0) return []
  const expression = words
    .slice(0, WORDS)
    .map((word) => `"${codeOf(n)}${word}" *`)
    .join(' OR ')
  let found: Found[] = []
  let before = '9223372036854775807'
  for (let examined = 0; examined < semanticLimits.examined; ) {
    const rows = store.upToPage<RowRecord & { readonly stamp: string }>(
      `SELECT ${COLUMNS}, CAST(r.stamp AS TEXT) AS stamp
       FROM table_words
       CROSS JOIN table_rows r ON r.stamp = table_words.rowid
       WHERE table_words MATCH ? AND table_words.rowid < CAST(? AS INTEGER)
       ORDER BY table_words.rowid DESC LIMIT ${PART}`,
      expression,
      before,
    )
    const last = rows.at(-1)
    if (!last) break
    before = last.stamp
    examined += rows.length
    for (const row of rows) {
      const reader = readerOf(table.schema, row)
      if (!conditions.every((one) => fulfils(one, reader(one.field)))) continue
      const hits = anyHits(words, rowTokens(rowRecord(table.id, table.schema, row).data))
      if (hits) found.push({ id: row.id, updated_at: row.updated_at, ...hits })
    }
    found = found.sort(compare).slice(0, semanticLimits.window)
    yield
  }
  return found.map(({ id }) => id)
}
