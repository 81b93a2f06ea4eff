/**
 * Reads rows by creation time, newest first, from an order that ends with the order of creation.
 * Rows with the same time are always sorted by ascending id. The order is therefore read backward
 * from one time to the next, and forward among rows with the same time.
 */
import type { SortField } from '../../../protocol/tables/query.ts'
import type { InParts } from '../../define-view.ts'
import {
  everything,
  intersectRanges,
  invertBytes,
  type KeyRange,
  keyAfter,
  keyBehind,
  timePart,
} from './keys.ts'
import { type KeyedRow, type Order, rowsIn } from './orders.ts'
import { equalities, prefixOf, rangeOf, type Selection } from './ranges.ts'

/** Maximum number of rows that are read in one part. */
const PART = 1000

/** Whether a sort is by creation time, newest first. */
export const isNewestFirst = ([first, second, ...more]: readonly SortField[]): boolean =>
  first?.field.system === 'created_at' &&
  first.descending &&
  second?.field.system === 'id' &&
  !second.descending &&
  more.length === 0

/** Receives a row and its sort key. Returns true to stop reading. */
type Take = (row: KeyedRow, sort: Buffer) => boolean

/**
 * Reads rows, newest first.
 * @param fixed number of leading fields of the order whose values the conditions determine. The
 * fields `created_at` and `id` follow them.
 */
export function* readNewest(
  { store, conditions, sort, count, after: last }: Selection,
  order: Order,
  fixed: number,
  take: Take,
): InParts<void> {
  const prefix = prefixOf(order, fixed, equalities(conditions))
  const [first] = sort
  let range = first ? rangeOf(prefix, { ...first, descending: false }, conditions) : everything
  const sortOf = ({ key, created_at }: KeyedRow): Buffer => {
    const time = timePart(created_at, 'descending')
    return Buffer.concat([time, key.subarray(prefix.length + time.length)])
  }
  /** Returns the prefix that the keys of all rows with the same time share. */
  const timeOf = ({ key, created_at }: KeyedRow): Buffer =>
    key.subarray(0, prefix.length + timePart(created_at, 'ascending').length)

  /**
   * Reads the rows of a range forward.
   * @returns whether `take` stopped the reading.
   */
  function* forward(rest: KeyRange): InParts<boolean> {
    for (let part = count; ; part = Math.min(2 * part, PART)) {
      const rows = rowsIn(store, order, rest, part)
      for (const row of rows) if (take(row, sortOf(row))) return true
      const end = rows.at(-1)
      if (!end) return false
      rest = { ...rest, from: keyAfter(end.key) }
      yield
    }
  }

  if (last) {
    // The rest of the rows that have the same time as the last row of the previous page.
    const length = timePart(0, 'descending').length
    const time = Buffer.concat([prefix, invertBytes(last.subarray(0, length))])
    const rest = intersectRanges(range, {
      from: keyAfter(Buffer.concat([time, last.subarray(length)])),
      to: keyBehind(time),
    })
    if (yield* forward(rest)) return
    range = intersectRanges(range, { ...everything, to: time })
  }
  for (let part = count; ; part = Math.min(2 * part, PART)) {
    const rows = rowsIn(store, order, range, part, 'backward')
    const oldest = rows.at(-1)
    if (!oldest) return
    const time = timeOf(oldest)
    // This part may lack some rows with the oldest time, so all rows with that time are read with
    // the next part.
    const whole = rows.filter((row) => !timeOf(row).equals(time))
    for (const row of sameTimesForward(whole)) if (take(row, sortOf(row))) return
    if (whole.length > 0) range = { ...range, to: keyBehind(time) }
    else {
      if (yield* forward(intersectRanges(range, { from: time, to: keyBehind(time) }))) return
      range = { ...range, to: time }
    }
    yield
  }
}

/**
 * Returns a list of rows, which must be sorted by descending key, with each group of rows with the
 * same time reversed.
 */
function sameTimesForward(rows: readonly KeyedRow[]): readonly KeyedRow[] {
  const sorted: KeyedRow[] = []
  for (let from = 0; from < rows.length; ) {
    let to = from + 1
    while (to < rows.length && rows[to]?.created_at === rows[from]?.created_at) to++
    sorted.push(...rows.slice(from, to).reverse())
    from = to
  }
  return sorted
}
