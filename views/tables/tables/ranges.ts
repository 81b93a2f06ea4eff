/** Defines the types of a row selection, and computes the key ranges that its conditions allow. */
import {
  type Condition,
  type QueryField,
  type SortField,
  satisfiesCondition,
} from '../../../protocol/tables/query.ts'
import type { Store } from '../../store.ts'
import type { Defined } from './definitions.ts'
import {
  everything,
  intersectRanges,
  isCut,
  type KeyRange,
  keyBefore,
  keyBehind,
  partOf,
} from './keys.ts'
import type { Order } from './orders.ts'
import type { Reader, RowRecord } from './rows.ts'

/** A row with its sort key, after which the next page continues. */
export interface Selected extends RowRecord {
  readonly sort: Buffer
}
export interface Selection {
  readonly store: Store
  readonly defined: Defined
  readonly conditions: readonly Condition[]
  /** The sort without the fields whose values the conditions determine. */
  readonly sort: readonly SortField[]
  readonly after: Buffer | undefined
  readonly count: number
}
/** Returns a key that distinguishes a system field from a member of the data with the same name. */
export const keyFor = ({ name, system }: QueryField): string =>
  system ? `system ${name}` : `data ${name}`
/** Returns the conditions that determine the value of a field, by field. */
export const equalities = (conditions: readonly Condition[]): ReadonlyMap<string, Condition> =>
  new Map(
    conditions.flatMap((one) =>
      one.operator === '$eq' ? [[keyFor(one.field), one] as const] : [],
    ),
  )
export const satisfiesAll = (conditions: readonly Condition[], reader: Reader): boolean =>
  conditions.every((condition) => satisfiesCondition(condition, reader(condition.field)))

/**
 * Returns the range of the keys that begin with `prefix` and whose next field, `sorted`, can
 * satisfy the conditions on that field.
 */
export function rangeOf(
  prefix: Buffer,
  sorted: SortField,
  conditions: readonly Condition[],
): KeyRange {
  let range: KeyRange =
    prefix.length === 0 ? everything : { from: keyBefore(prefix), to: keyBehind(prefix) }
  const missing = Buffer.concat([prefix, partOf(sorted, undefined)])
  for (const { field, operator, value } of conditions) {
    if (keyFor(field) !== keyFor(sorted.field)) continue
    if (operator === '$exists')
      range = intersectRanges(
        range,
        value
          ? { ...everything, to: keyBefore(missing) }
          : { ...everything, from: keyBefore(missing) },
      )
    if (!(operator in mirrored)) continue
    const key = Buffer.concat([prefix, partOf(sorted, value === null ? undefined : value)])
    const direction = sorted.descending ? mirrored[operator as keyof typeof mirrored] : operator
    // A truncated text may have the same key as other texts, so its key is included in the range.
    const cut = isCut(value)
    if (direction === '$eq')
      range = intersectRanges(range, { from: keyBefore(key), to: keyBehind(key) })
    if (direction === '$gt' || direction === '$gte')
      range = intersectRanges(range, {
        ...everything,
        from: direction === '$gt' && !cut ? keyBehind(key) : keyBefore(key),
      })
    if (direction === '$lt' || direction === '$lte')
      range = intersectRanges(range, {
        ...everything,
        to: direction === '$lt' && !cut ? keyBefore(key) : keyBehind(key),
      })
  }
  return range
}
/** The operators that bound a range, with their counterparts for descending fields. */
const mirrored = { $eq: '$eq', $gt: '$lt', $gte: '$lte', $lt: '$gt', $lte: '$gte' } as const

/**
 * Returns the key of the first `length` fields of an order. The conditions determine the values of
 * these fields.
 */
export const prefixOf = (
  { fields }: Order,
  length: number,
  equal: ReadonlyMap<string, Condition>,
): Buffer =>
  Buffer.concat(
    fields.slice(0, length).map((field) => {
      const value = equal.get(keyFor(field.field))?.value
      return partOf(field, value === null ? undefined : value)
    }),
  )
