/**
 * The filter and the sort order of a table, as the URL and the menus represent them, and their
 * conversion to queries. The functions are pure.
 */

import { getOwn } from '../../../../protocol/lookup.ts'
import { fieldOf, type QueryField } from '../../../../protocol/tables/query.ts'
import type { Column, ColumnType, TableSchema } from '../../../../protocol/tables/schema.ts'
import { tablesText } from '../text.ts'
import { typedValue } from '../values.ts'
import type { RowQuery } from './rows.ts'

const operators = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'set', 'unset'] as const
/** An operator of the menus. `set` means that the row has a value, `unset` that it has none. */
export type Operator = (typeof operators)[number]
/** A condition as entered. `text` is ignored for `set` and `unset`. */
export interface Condition {
  readonly field: string
  readonly operator: Operator
  readonly text: string
}
/** A field by which rows are sorted. */
export interface Sort {
  readonly field: string
  readonly order: 'asc' | 'desc'
}

/** Returns the operators that apply to a type. */
export const operatorsOf = (type: ColumnType): readonly Operator[] =>
  type === 'object' || type === 'array'
    ? ['set', 'unset']
    : type === 'boolean'
      ? ['eq', 'ne', 'set', 'unset']
      : operators
/** Returns the fields of a filter: the columns, then the fields that every row has. */
export const fieldsOf = (schema: TableSchema): QueryField[] =>
  [
    ...schema.columns.map(({ name }) => name),
    ...['created_at', 'updated_at', 'version', 'id'].filter(
      (name) => !schema.columns.some((column) => column.name === name),
    ),
  ].flatMap((name) => fieldOf(schema, name) ?? [])

/** Reads the conditions in a URL. Invalid ones are left out. */
export function readConditions(text: string): Condition[] {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return []
  }
  if (!Array.isArray(list)) return []
  return list.flatMap((one: unknown) => {
    const [field, operator, value = ''] = Array.isArray(one) ? (one as unknown[]) : []
    return typeof field === 'string' && operators.includes(operator as Operator)
      ? [{ field, operator: operator as Operator, text: String(value) }]
      : []
  })
}
/** Returns conditions as text for a URL; '' for none. */
export const writeConditions = (list: readonly Condition[]): string =>
  list.length === 0
    ? ''
    : JSON.stringify(list.map(({ field, operator, text }) => [field, operator, text]))

/** The filter of a query, and the faults of its conditions by index. */
export interface Filter {
  readonly filter: Readonly<Record<string, unknown>>
  readonly faults: ReadonlyMap<number, string>
}
/** Returns the filter for conditions. A condition with a fault is left out. */
export function filterOf(list: readonly Condition[], schema: TableSchema): Filter {
  const filter: Record<string, Record<string, unknown>> = {}
  const faults = new Map<number, string>()
  for (const [index, { field, operator, text }] of list.entries()) {
    const known = fieldOf(schema, field)
    if (!known) {
      faults.set(index, tablesText.notColumn)
      continue
    }
    const isSet = operator === 'set' || operator === 'unset'
    const typed = isSet
      ? { value: operator === 'set' }
      : typedValue(text, { type: known.type, required: true })
    if ('fault' in typed) {
      faults.set(index, typed.fault)
      continue
    }
    const name = isSet ? '$exists' : `$${operator}`
    const conditions = getOwn(filter, field) ?? {}
    filter[field] = conditions
    if (name in conditions) faults.set(index, tablesText.repeats)
    else conditions[name] = typed.value
  }
  return { filter, faults }
}

/** Reads the sort order in a URL, such as `-amount,customer`. */
export const readSort = (text: string): Sort[] =>
  text
    .split(',')
    .filter((part) => part.length > (part.startsWith('-') ? 1 : 0))
    .map((part) =>
      part.startsWith('-')
        ? { field: part.slice(1), order: 'desc' }
        : { field: part, order: 'asc' },
    )
/** Returns a sort order as text for a URL. */
export const writeSort = (sort: readonly Sort[]): string =>
  sort.map(({ field, order }) => `${order === 'desc' ? '-' : ''}${field}`).join(',')
/**
 * Returns the sort order after a click on a column: ascending, then descending, then none.
 * @param add keeps the other fields, as for a click with the Shift key.
 */
export function toggledSort(sort: readonly Sort[], field: string, add: boolean): Sort[] {
  const at = sort.findIndex((one) => one.field === field)
  const known = sort[at]
  const next: Sort[] = !known
    ? [{ field, order: 'asc' }]
    : known.order === 'asc'
      ? [{ field, order: 'desc' }]
      : []
  if (!add) return next
  return at < 0 ? [...sort, ...next] : [...sort.slice(0, at), ...next, ...sort.slice(at + 1)]
}

/** The query in a URL, its conditions, and their faults by index. */
export interface AskedRows {
  readonly query: RowQuery
  readonly conditions: readonly Condition[]
  readonly sort: readonly Sort[]
  readonly faults: Filter['faults']
}
const modes = ['keyword', 'semantic', 'hybrid'] as const
/** Returns the query for the parameters `filter`, `sort`, `q` and `mode` of a URL. */
export function rowQueryOf(parameters: URLSearchParams, schema: TableSchema): AskedRows {
  const conditions = readConditions(parameters.get('filter') ?? '')
  const { filter, faults } = filterOf(conditions, schema)
  const sort = readSort(parameters.get('sort') ?? '').filter(({ field }) => fieldOf(schema, field))
  const asked = (parameters.get('q') ?? '').trim()
  const mode = modes.find((one) => one === parameters.get('mode')) ?? 'keyword'
  return {
    query: {
      ...(Object.keys(filter).length > 0 && { filter }),
      ...(asked !== '' ? { search: { query: asked, mode } } : sort.length > 0 && { sort }),
    },
    conditions,
    sort,
    faults,
  }
}

/** Returns the columns in the parameter `columns` of a URL; all columns by default. */
export function columnsOf(
  parameters: URLSearchParams,
  { columns }: TableSchema,
): readonly Column[] {
  const names = (parameters.get('columns') ?? '').split(',')
  const chosen = columns.filter(({ name }) => names.includes(name))
  return chosen.length > 0 ? chosen : columns
}

/** Returns the conditions in a saved view's filter. Operators that the menus lack are left out. */
export const conditionsOf = (filter: unknown): readonly Condition[] =>
  Object.entries(filter ?? {}).flatMap(([field, wish]: [string, unknown]) =>
    Object.entries(typeof wish === 'object' && wish !== null ? wish : { $eq: wish }).flatMap(
      ([name, value]: [string, unknown]): Condition[] => {
        const operator = operators.find((one) => name === `$${one}`)
        if (name === '$exists') return [{ field, operator: value ? 'set' : 'unset', text: '' }]
        return operator === undefined ? [] : [{ field, operator, text: String(value) }]
      },
    ),
  )

/** Returns the content of a saved view of a table's rows. */
export const viewOf = (
  table_id: string,
  { query: { filter, search }, sort }: AskedRows,
  columns: string,
) => ({
  filter: {
    table_id,
    ...(filter && { filter }),
    ...(sort.length > 0 && { sort: sort.map((one) => ({ ...one })) }),
    ...(search && { query: search.query, ...(search.mode !== 'keyword' && { mode: search.mode }) }),
  },
  columns: columns.split(',').filter((name) => name !== ''),
})
/** Returns the URL parameters for a saved view; without one, for all rows. */
export function parametersOf(view?: {
  readonly id: string
  readonly filter?: Readonly<Record<string, unknown>>
  readonly columns?: readonly string[]
}): Record<string, string> {
  const { filter, sort, query = '', mode = '' } = view?.filter ?? {}
  return {
    filter: writeConditions(conditionsOf(filter)),
    sort: writeSort(
      (Array.isArray(sort) ? sort : []).map(({ field, order }: Partial<Sort>) => ({
        field: String(field),
        order: order === 'desc' ? 'desc' : 'asc',
      })),
    ),
    q: String(query),
    mode: String(mode),
    columns: view?.columns?.join(',') ?? '',
    view: view?.id ?? '',
    row: '',
  }
}
