/**
 * Members that a record has beyond the published interface. Published clients decode some records strictly: one member more
 * makes them fail. So an addition is answered only when `include` names it.
 */
import { Type } from 'typebox'
import { many } from './common.ts'

type RecordOf = Readonly<Record<string, unknown>>
/**
 * One addition. `of`: whether the member is an addition to this record; to every record when absent. `value`: works the member
 * out from the record; undefined: the record has no such member. Absent: the member is in the record already.
 */
interface Addition {
  readonly of?: (record: RecordOf) => boolean
  readonly value?: (record: RecordOf) => unknown
}
/** The additions of a row, by the name that `include` asks for. */
export type Additions<N extends string = string> = Readonly<Record<N, Addition>>

/** Two facts of a row: its additions, and the parameter that asks for them. */
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
 * An answer without the additions that were not asked for: a record, or a list of records under `items` and `data`. The answer
 * itself is not changed.
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
