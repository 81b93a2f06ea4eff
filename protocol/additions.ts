/**
 * Additions: fields of a record that the published contract does not contain. Some records are
 * decoded strictly by published clients, which fail on an unknown field. The answer therefore
 * contains an addition only if the parameter `include` lists it.
 */
import { type TSchema, Type } from 'typebox'
import { Closed, valuesOf } from './common.ts'

type RecordOf = Readonly<Record<string, unknown>>
/**
 * One addition. `of`: whether the field is an addition to this record; when `of` is absent, it is
 * an addition to every record. `value`: computes the field from the record; undefined means that
 * the record does not have the field. When `value` is absent, the record already contains the
 * field.
 */
interface Addition {
  readonly of?: (record: RecordOf) => boolean
  readonly value?: (record: RecordOf) => unknown
}
/** The additions of a row, by their names in `include`. */
export type Additions<N extends string = string> = Readonly<Record<N, Addition>>

/**
 * Returns the two parts that a row with additions needs: its field `additions`, and the schema of
 * the query parameter `include`.
 */
export const additions = <const N extends string>(table: Additions<N>) => ({
  additions: table,
  include: Type.Optional(
    valuesOf(
      Type.Enum(Object.keys(table) as N[], {
        description: 'Additional members of the record to return',
      }),
    ),
  ),
})

/** Returns the fields `query` and `additions` of a row whose only query parameter is `include`. */
export const onlyIncluding = <T extends Additions, I extends TSchema>({
  additions: table,
  include,
}: {
  readonly additions: T
  readonly include: I
}) => ({ query: Closed({ include }), additions: table })

/**
 * Returns the answer with only those additions that `include` lists. The answer is one record, or
 * an object with a list of records under `items`, `data` or both. The given answer is not modified.
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
