/**
 * Reading rows by the time of their creation, newest first, from an order that ends with the order
 * of creation. Rows of one time are in the order of their ids in both directions, so the order is
 * read backward from one time to the next, and forward within a time.
 */
import type { SortField } from '../../../protocol/tables/query.ts'
import type { InParts } from '../../define-view.ts'
import { after, behind, everything, inverted, type KeyRange, timePart, within } from './keys.ts'
import { type KeyedRow, type Order, rowsIn } from './orders.ts'
import { equalities, prefixOf, rangeOf, type Selection } from './ranges.ts'

/** Largest number of rows that are read in one part. */
const PART = 1000

/** Whether a sort is that of the creation, newest first. */
export const isNewestFirst = ([first, second, ...more]: readonly SortField[]): boolean =>
  first?.field.system === 'created_at' &&
  first.descending &&
  second?.field.system === 'id' &&
  !second.descending &&
  more.length === 0

/** Ends the reading of rows when it returns true. Gets a row with its key in the sort. */
type Take = (row: KeyedRow, sort: Buffer) => boolean

/**
 * Reads rows, newest first.
 * @param fixed the number of the first fields of the order whose values the conditions determine;
 *   the fields `created_at` and `id` follow them.
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
    const time = timePart(created_at, true)
    return Buffer.concat([time, key.subarray(prefix.length + time.length)])
  }
  /** The beginning of the keys of one time. */
  const timeOf = ({ key, created_at }: KeyedRow): Buffer =>
    key.subarray(0, prefix.length + timePart(created_at, false).length)

  /** Reads the rows of a range forward. @returns whether the reading has ended. */
  function* forward(rest: KeyRange): InParts<boolean> {
    for (let part = count; ; part = Math.min(2 * part, PART)) {
      const rows = rowsIn(store, order, rest, part)
      for (const row of rows) if (take(row, sortOf(row))) return true
      const end = rows.at(-1)
      if (!end) return false
      rest = { ...rest, from: after(end.key) }
      yield
    }
  }

  if (last) {
    // The rest of the time at which the last page ended.
    const length = timePart(0, true).length
    const time = Buffer.concat([prefix, inverted(last.subarray(0, length))])
    const rest = within(range, {
      from: after(Buffer.concat([time, last.subarray(length)])),
      to: behind(time),
    })
    if (yield* forward(rest)) return
    range = within(range, { ...everything, to: time })
  }
  for (let part = count; ; part = Math.min(2 * part, PART)) {
    const rows = rowsIn(store, order, range, part, true)
    const oldest = rows.at(-1)
    if (!oldest) return
    const time = timeOf(oldest)
    // Rows of the oldest time may be missing in this part, so they are read with the next one.
    const whole = rows.filter((row) => !timeOf(row).equals(time))
    for (const row of sameTimesForward(whole)) if (take(row, sortOf(row))) return
    if (whole.length > 0) range = { ...range, to: behind(time) }
    else {
      if (yield* forward(within(range, { from: time, to: behind(time) }))) return
      range = { ...range, to: time }
    }
    yield
  }
}

/** Rows in the descending order of their keys, with those of each time in ascending order. */
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
