/**
 * Semantic and hybrid searches in the rows of a table. A search is answered only when all rows that
 * existed at its beginning are embedded. Until then, the answer contains the progress of the index.
 *
 * The position of a page of a semantic search is the place of its last row. In the combined list of
 * a hybrid search, the place of a row depends on other rows, so it cannot be a position. Instead,
 * the position of a page contains hashes of the ids on all pages so far, and the next page contains
 * the first rows of the list that are not among them.
 */
import { createHash } from 'node:crypto'
import { type Refusal, refuse, refuseFields } from '../../../../protocol/errors.ts'
import { planQuery } from '../../../../protocol/tables/query.ts'
import type { TableRow } from '../../../../protocol/tables/schema.ts'
import { tokensOf } from '../../../../protocol/tables/search.ts'
import {
  fuse,
  type SemanticProgress,
  type SemanticQueries,
  semanticLimits,
} from '../../../../protocol/tables/semantic.ts'
import type { InParts } from '../../../define-view.ts'
import { limitOf, type Page, type Paging, page } from '../../../page.ts'
import type { Store } from '../../../store.ts'
import { countsOf, type Defined, missingTable, tableOf } from '../definitions.ts'
import { type RowRecord, rowById, rowRecord } from '../rows.ts'
import { countIndexed, isReady, useIndex } from './indexes.ts'
import { type Nearest, nearestRows, type ResultPosition } from './rank.ts'
import { rankByWords } from './words.ts'

type Input = SemanticQueries['table_semantic']['input']

/**
 * Returns a page of search results, or the progress of the index. An unknown table and an invalid
 * search are refused, as is a vector whose number of dimensions differs from that of the index.
 * @param now Unix milliseconds.
 */
export function* searchSemantically(
  store: Store,
  project: number,
  now: number,
  input: Input,
): InParts<Page<TableRow> | SemanticProgress | Refusal> {
  const defined = tableOf(store, project, input.id)
  if (!defined) return missingTable
  const plan = planQuery(defined.table.schema, input.filter ? { filter: input.filter } : {})
  const faults = [
    ...('faults' in plan ? plan.faults : []),
    ...(input.query.trim() === '' ? [{ field: 'query', message: 'must not be blank' }] : []),
  ]
  if ('faults' in plan || faults.length > 0) return refuseFields(...faults)
  const index = useIndex(store, defined.n, input.model, now)
  const { rows, change } = countsOf(store, defined)
  const through = input.through ?? change
  const ready = isReady(store, index, through)
  if (!ready || input.vector === undefined)
    return {
      ready,
      through,
      ...(index.fault !== null && { fault: index.fault }),
      ...(input.count && { rows, indexed_rows: countIndexed(store, defined.n) }),
    }
  const vector = Buffer.from(input.vector, 'base64')
  if (index.dimensions !== null && index.dimensions !== vector.length / 4)
    return refuse('table_semantic_search_unavailable', { reason: 'invalid_response' })
  const { conditions } = plan
  const search = { store, defined, conditions, vector }
  return input.mode === 'semantic'
    ? yield* semanticPage(search, input)
    : yield* hybridPage(search, input)
}

type Search = Omit<Nearest, 'beyond' | 'count'>
const recordOf =
  ({ table }: Defined) =>
  (row: RowRecord): TableRow =>
    rowRecord(table.id, table.schema, row)

function* semanticPage(search: Search, input: Input & Paging): InParts<Page<TableRow>> {
  const beyond = positionOf(input.after)
  const rows = yield* nearestRows({ ...search, beyond, count: limitOf(input) + 1 })
  return page(rows, input, recordOf(search.defined), ({ distance, id }) => [distance, id])
}
function positionOf([distance, id]: NonNullable<Paging['after']> = []): ResultPosition | undefined {
  return typeof distance === 'number' && typeof id === 'string' ? { distance, id } : undefined
}

function* hybridPage(search: Search, input: Input & Paging): InParts<Page<TableRow>> {
  const { store, defined, conditions } = search
  const { window } = semanticLimits
  const near = yield* nearestRows({ ...search, beyond: undefined, count: window })
  const words = [...new Set(tokensOf(input.query))]
  const found = yield* rankByWords({ store, defined, words, conditions })
  const shown = shownIn(input.after)
  const rows = fuse(
    near.map(({ id }) => id),
    found,
  )
    .slice(0, window)
    .filter((id) => !shown.has(shortHash(id)))
    .slice(0, limitOf(input) + 1)
    .flatMap((id) => rowById(store, defined.n, id) ?? [])
  return page(rows, input, recordOf(defined), (last) => {
    const more = rows.slice(0, rows.indexOf(last) + 1).map(({ id }) => shortHash(id))
    return [Buffer.from([...shown, ...more].join(''), 'hex').toString('base64')]
  })
}
/**
 * Number of bytes of a hash in a position. Hashes are short, because a position contains those of
 * all rows of the pages before it, up to `window` - 1.
 */
const HASH_BYTES = 4
const shortHash = (id: string): string =>
  createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, 2 * HASH_BYTES)
function shownIn([hashes]: NonNullable<Paging['after']> = []): ReadonlySet<string> {
  const hex = typeof hashes === 'string' ? Buffer.from(hashes, 'base64').toString('hex') : ''
  return new Set(hex.match(new RegExp(`.{${2 * HASH_BYTES}}`, 'g')) ?? [])
}
