/**
 * Ranks the rows of a table by their cosine distance from a query, then by id. The search is exact:
 * it compares all vectors, in parts, and keeps only the rows of the page in memory. A row that does
 * not match the filter never occupies a place on the page.
 */
import type { Condition } from '../../../../protocol/tables/query.ts'
import type { InParts } from '../../../define-view.ts'
import type { Store } from '../../../store.ts'
import type { Defined } from '../definitions.ts'
import type { KeyRange } from '../keys.ts'
import { type Order, ordersOf, rowsThrough } from '../orders.ts'
import { satisfiesAll } from '../ranges.ts'
import { type RowRecord, readerOf, rowById } from '../rows.ts'
import { findNarrowest, rowsByKey } from '../selection.ts'

/** The place of a row in the order of the results. */
export interface ResultPosition {
  readonly distance: number
  readonly id: string
}
export type RankedRow = ResultPosition & RowRecord
export interface Nearest {
  readonly store: Store
  readonly defined: Defined
  readonly conditions: readonly Condition[]
  /** The vector of the query. */
  readonly vector: Uint8Array
  /** The place of the last row of the previous page. */
  readonly beyond: ResultPosition | undefined
  readonly count: number
}
const compare = (a: ResultPosition, b: ResultPosition): number =>
  a.distance - b.distance || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Number of vectors that are compared in one part, which takes a few milliseconds. */
const PART = 500
/** Maximum number of candidate rows whose vectors are looked up one by one. */
const MAX_LOOKED_UP = 500
/**
 * The distance in SQL. A zero vector, which a model may return for a text without meaning, ranks as
 * unrelated.
 */
const DISTANCE = 'ifnull(vec_distance_cosine(v.vector, ?), 1.0)'

/** Returns the first `count` rows after `beyond`. Rows without a vector are not ranked. */
export function* nearestRows(search: Nearest): InParts<readonly RankedRow[]> {
  const { store, defined, conditions, vector } = search
  const best = new Best(search)
  const orders = ordersOf(store, defined.n).filter(({ reached }) => !reached)
  const known = rowsByKey(store, defined, conditions)
  const narrow = known ? undefined : findNarrowest(store, orders, conditions)
  const few = known ?? (narrow && narrow.rows <= MAX_LOOKED_UP ? allIn(store, narrow) : undefined)
  if (few) {
    for (const { id } of few) {
      const found = store.one<{ distance: number }>(
        `SELECT ${DISTANCE} AS distance FROM row_vectors v WHERE v.tbl = ? AND v.id = ?`,
        vector,
        defined.n,
        id,
      )
      if (found) best.offer({ ...found, id })
    }
    return best.rows
  }
  let from = ''
  for (;;) {
    const places = store.all<ResultPosition>(
      `SELECT v.id, ${DISTANCE} AS distance FROM row_vectors v
       WHERE v.tbl = ? AND v.id > ? ORDER BY v.id LIMIT ${PART}`,
      vector,
      defined.n,
      from,
    )
    for (const place of places) best.offer(place)
    const last = places.at(-1)
    if (!last || places.length < PART) return best.rows
    from = last.id
    yield
  }
}

/** Returns the ids of all rows in a range of an order. */
const allIn = (
  store: Store,
  { order, range }: { readonly order: Order; readonly range: KeyRange },
): readonly Pick<RowRecord, 'id'>[] =>
  Array.from(rowsThrough(store, order, range, MAX_LOOKED_UP), (rows) =>
    rows.map(({ id }) => ({ id })),
  ).flat()

/** Keeps the first rows in the order of the results. */
class Best {
  readonly rows: RankedRow[] = []
  readonly #of: Nearest
  constructor(search: Nearest) {
    this.#of = search
  }
  offer(place: ResultPosition): void {
    const { store, defined, conditions, beyond, count } = this.#of
    if (beyond && compare(place, beyond) <= 0) return
    const last = this.rows.at(-1)
    if (this.rows.length === count && last && compare(last, place) < 0) return
    const row = rowById(store, defined.n, place.id)
    const reader = row && readerOf(defined.table.schema, row)
    if (!reader || !satisfiesAll(conditions, reader)) return
    const at = this.rows.findIndex((other) => compare(place, other) < 0)
    this.rows.splice(at < 0 ? this.rows.length : at, 0, { ...row, ...place })
    if (this.rows.length > count) this.rows.pop()
  }
}
