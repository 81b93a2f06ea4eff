/**
 * Row queries: the validation of filters and sort orders against the schema of the table, and their
 * semantics as pure functions. Views translate valid queries to SQL. A test checks that the SQL and
 * these functions agree.
 */
import type { FieldError } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import { columnOf } from './definition.ts'
import { isVisible } from './row-data.ts'
import {
  type ColumnType,
  type QueryRows,
  type TableRow,
  type TableSchema,
  tableLimits,
} from './schema.ts'
import { comparable, compareTexts, compareValues, isOfType, typeNames } from './values.ts'

/**
 * Fields of rows that are not part of the data. A declared column of the same name takes
 * precedence.
 */
const systemFields = {
  id: 'string',
  version: 'number',
  created_at: 'date',
  updated_at: 'date',
} as const satisfies Readonly<Record<string, ColumnType>>
type SystemField = keyof typeof systemFields

/** A field of a query: a member of the data, or a system field. */
export interface QueryField {
  readonly name: string
  readonly type: ColumnType
  /** Present if the field is a system field, and not a member of the data. */
  readonly system?: SystemField
}
type Operator = '$eq' | '$ne' | '$gt' | '$gte' | '$lt' | '$lte' | '$in' | '$exists'
/**
 * One condition. A row must satisfy all conditions. `value`: a list for `$in`, a boolean for
 * `$exists`, otherwise a value of the field's type. Null, allowed only in `$eq`, `$ne` and `$in`,
 * represents a missing value.
 */
export interface Condition {
  readonly field: QueryField
  readonly operator: Operator
  readonly value: unknown
  /** Present if the operator is `$eq`, `$ne` or `$in`. */
  readonly wanted?: Wanted
}
/**
 * The values to which a condition compares the values of rows, in comparable forms. They are part
 * of the condition because a list may contain large documents, which would otherwise be serialized
 * for each row.
 */
interface Wanted {
  /** Whether a missing value is among them. */
  readonly missing: boolean
  /** Scalars, and the instants of dates. */
  readonly scalars: ReadonlySet<unknown>
  /** Objects and arrays as canonical JSON. */
  readonly documents: ReadonlySet<string>
}
export interface SortField {
  readonly field: QueryField
  readonly descending: boolean
}
/** A valid query. `sort` ends with the field `id`, so no two rows are tied. */
export interface RowQueryPlan {
  readonly conditions: readonly Condition[]
  readonly sort: readonly SortField[]
}

/**
 * Returns the field with this name. Returns undefined if the table is not open and has no such
 * field.
 */
export function fieldOf(schema: TableSchema, name: string): QueryField | undefined {
  const column = columnOf(schema, name)
  if (column) return { name, type: column.type }
  if (Object.hasOwn(systemFields, name)) {
    const system = name as SystemField
    return { name, type: systemFields[system], system }
  }
  return schema.open ? { name, type: 'any' } : undefined
}
const operators: ReadonlySet<string> = new Set<Operator>([
  '$eq',
  '$ne',
  '$gt',
  '$gte',
  '$lt',
  '$lte',
  '$in',
  '$exists',
])
const isSortable = (type: ColumnType): boolean => type !== 'object' && type !== 'array'

function conditionFault(
  { type }: QueryField,
  operator: Operator,
  value: unknown,
): Omit<FieldError, 'field'> | undefined {
  const mismatch = { message: `must be ${typeNames[type]}`, expected: type, actual: value }
  if (operator === '$exists')
    return typeof value === 'boolean'
      ? undefined
      : { message: 'must be true or false', expected: 'boolean', actual: value }
  if (operator === '$eq' || operator === '$ne')
    return value === null || isOfType(type, value) ? undefined : mismatch
  if (operator === '$in') {
    if (!Array.isArray(value) || value.length > tableLimits.alternatives)
      return { message: `must be a list of at most ${tableLimits.alternatives} values` }
    return value.every((one) => one === null || isOfType(type, one))
      ? undefined
      : { ...mismatch, message: `must be a list; each value ${mismatch.message}` }
  }
  if (!isSortable(type)) return { message: `values of type ${type} cannot be ordered` }
  if (!isOfType(type, value)) return mismatch
  return typeof value === 'object' ? { message: 'objects and arrays cannot be ordered' } : undefined
}

/** Creates a condition from a valid operator and value. */
function createCondition(field: QueryField, operator: Operator, value: unknown): Condition {
  if (operator === '$in')
    return { field, operator, value, wanted: wantedOf(field, value as unknown[]) }
  const compares = operator === '$eq' || operator === '$ne'
  return { field, operator, value, ...(compares && { wanted: wantedOf(field, [value]) }) }
}
function wantedOf({ type }: QueryField, values: readonly unknown[]): Wanted {
  const present = values.filter((one) => one !== null).map((one) => comparable(type, one))
  return {
    missing: present.length < values.length,
    scalars: new Set(present.flatMap((one) => ('scalar' in one ? [one.scalar] : []))),
    documents: new Set(present.flatMap((one) => ('document' in one ? [one.document] : []))),
  }
}

function conditionsOf(
  schema: TableSchema,
  filter: NonNullable<QueryRows['filter']>,
): { readonly conditions: Condition[]; readonly faults: FieldError[] } {
  const conditions: Condition[] = []
  const faults: FieldError[] = []
  for (const [name, wish] of Object.entries(filter)) {
    const path = `filter.${name}`
    const field = fieldOf(schema, name)
    if (!field) {
      faults.push({ field: path, message: 'is not a column of the table' })
      continue
    }
    if (Array.isArray(wish)) {
      faults.push({ field: path, message: 'must be a scalar or an object of operators' })
      continue
    }
    const wishes: Readonly<Record<string, unknown>> =
      typeof wish === 'object' && wish !== null ? { ...wish } : { $eq: wish }
    if (Object.keys(wishes).length === 0)
      faults.push({ field: path, message: 'must have at least one operator' })
    for (const [operator, value] of Object.entries(wishes)) {
      // A value without an operator means equality. Its faults are reported at the path of the
      // field.
      const at = typeof wish === 'object' && wish !== null ? `${path}.${operator}` : path
      if (!operators.has(operator)) {
        faults.push({ field: at, message: 'is not an operator', expected: [...operators] })
        continue
      }
      const fault = conditionFault(field, operator as Operator, value)
      if (fault) faults.push({ field: at, ...fault })
      else conditions.push(createCondition(field, operator as Operator, value))
    }
  }
  return { conditions, faults }
}

/** Returns the ascending order of a system field. */
export const ascending = (name: SystemField): SortField => ({
  field: { name, type: systemFields[name], system: name },
  descending: false,
})
/**
 * Checks a query against the schema of the table. Returns the plan of the query, or its faults.
 * Rows are sorted by the fields of `sort`, or by `created_at` if `sort` is empty. Rows with equal
 * values in these fields are sorted by `id`.
 */
export function planQuery(
  schema: TableSchema,
  { filter = {}, sort = [] }: Pick<QueryRows, 'filter' | 'sort'>,
): RowQueryPlan | { readonly faults: readonly FieldError[] } {
  const { conditions, faults } = conditionsOf(schema, filter)
  const fields: SortField[] = sort.length === 0 ? [ascending('created_at')] : []
  for (const [index, { field: name, order }] of sort.entries()) {
    const path = `sort[${index}].field`
    const field = fieldOf(schema, name)
    if (!field) faults.push({ field: path, message: 'is not a column of the table', actual: name })
    else if (!isSortable(field.type))
      faults.push({ field: path, message: `values of type ${field.type} cannot be ordered` })
    else if (fields.some((other) => other.field.name === name))
      faults.push({ field: path, message: 'is named twice', actual: name })
    else fields.push({ field, descending: order === 'desc' })
  }
  if (faults.length > 0) return { faults }
  return { conditions, sort: [...fields, ascending('id')] }
}

/** Returns the value of a field of a row as readers see it, or undefined if it is missing. */
export function fieldValue(
  schema: TableSchema,
  row: Omit<TableRow, 'table_id'>,
  { name, system }: QueryField,
): unknown {
  if (system) return row[system]
  const value = getOwn(row.data, name)
  return value !== undefined && isVisible(schema, name, value) ? value : undefined
}
const compared: Readonly<Record<string, (order: number) => boolean>> = {
  $gt: (order) => order > 0,
  $gte: (order) => order >= 0,
  $lt: (order) => order < 0,
  $lte: (order) => order <= 0,
}

/** Whether a value is among the wanted values. */
function isWanted(
  { missing, scalars, documents }: Wanted,
  type: ColumnType,
  actual: unknown,
): boolean {
  if (actual === undefined) return missing
  if (typeof actual === 'object' && documents.size === 0) return false
  const one = comparable(type, actual)
  return 'scalar' in one ? scalars.has(one.scalar) : documents.has(one.document)
}

/** Whether a value satisfies a condition. Undefined is a missing value. */
export function satisfiesCondition(condition: Condition, actual: unknown): boolean {
  const {
    field: { type },
    operator,
    value,
    wanted,
  } = condition
  if (operator === '$exists') return (actual !== undefined) === value
  if (wanted) return isWanted(wanted, type, actual) === (operator !== '$ne')
  return actual !== undefined && compared[operator]?.(compareValues(type, actual, value)) === true
}
/** Compares two rows by the sort of a plan. Missing values come last in both directions. */
export function compareRows(
  schema: TableSchema,
  sort: readonly SortField[],
  a: Omit<TableRow, 'table_id'>,
  b: Omit<TableRow, 'table_id'>,
): number {
  for (const { field, descending } of sort) {
    const [x, y] = [fieldValue(schema, a, field), fieldValue(schema, b, field)]
    const order =
      x === undefined || y === undefined
        ? Number(x === undefined) - Number(y === undefined)
        : compareValues(field.type, x, y) * (descending ? -1 : 1)
    if (order !== 0) return order
  }
  return compareTexts(a.id, b.id)
}
