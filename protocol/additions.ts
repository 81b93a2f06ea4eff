/**
 * Record members beyond the published interface. Published clients decode some records strictly and
 * fail on an unknown member, so the reply contains an addition only when `include` names it.
 */
import { Type } from 'typebox'
import { many } from './common.ts'

type RecordOf = Readonly<Record<string, unknown>>
/**
 * One addition. `of`: whether the member is an addition to this record; when absent, it is one to
 * every record. `value`: computes the member from the record; undefined means that the record has
 * no such member. When `value` is absent, the record already contains the member.
 */
interface Addition {
  readonly of?: (record: RecordOf) => boolean
  readonly value?: (record: RecordOf) => unknown
}
/** The additions of a row, by their names in `include`. */
export type Additions<N extends string = string> = Readonly<Record<N, Addition>>

/** The two row properties for additions: their table, and the parameter that selects them. */
export const additions = <const N extends string>(table: Additions<N>) => ({
  additions: table,
  include: Type.Optional(
    many(
      Type.Enum(Object.keys(table) as N[], {
        description: 'Members beyond the published record, answered only when they are named here',
      }),
    ),
  ),
})

/**
 * Returns a copy of the answer without the additions that were not requested. The answer is one
 * record, or a list of records under `items` and `data`.
 */
export function withAdditions(
  table: Additions,
  include: readonly string[] | undefined,
  answer: unknown,
): unknown {
  if (typeof answer !== 'object' || answer === null) return answer
  const { items, data } = answer as { readonly items?: unknown; readonly data?: unknown }
  const list = [items, data].find(Array.isArray) as readonly RecordOf[] | undefined
  if (!list) return shown(table, include, answer as RecordOf)
  const records = list.map((record) => shown(table, include, record))
  return {
    ...answer,
    ...(Array.isArray(items) && { items: records }),
    ...(Array.isArray(data) && { data: records }),
  }
}

function shown(
  table: Additions,
  include: readonly string[] | undefined,
  record: RecordOf,
): RecordOf {
  let copy: Record<string, unknown> | undefined
  for (const [name, { of, value }] of Object.entries(table)) {
    if (of && !of(record)) continue
    if (include?.includes(name)) {
      const worked = value?.(record)
      if (worked !== undefined) (copy ??= { ...record })[name] = worked
    } else if (Object.hasOwn(record, name)) delete (copy ??= { ...record })[name]
  }
  return copy ?? record
}
