/**
 * The rules for the schema of a table: which schemas are valid, and which changes to a schema are
 * allowed.
 */
import { sizeOf } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { type Column, type TableSchema, tableLimits } from './schema.ts'
import { isOfType, typeNames } from './values.ts'

/**
 * The columns of each schema by name. They are cached, because every value of a row requires a
 * lookup of its column.
 */
const columnMaps = new WeakMap<TableSchema, ReadonlyMap<string, Column>>()

/** Returns the last column with this name, or undefined if no column has the name. */
export function columnOf(schema: TableSchema, name: string): Column | undefined {
  let columns = columnMaps.get(schema)
  if (!columns) {
    columns = new Map(schema.columns.map((column) => [column.name, column]))
    columnMaps.set(schema, columns)
  }
  return columns.get(name)
}

/** Returns the faults of a schema that its JSON schema cannot express. */
export function schemaFaults(schema: TableSchema): FieldError[] {
  const { columns, identity_column, secondary_key_column } = schema
  const faults: FieldError[] = []
  const names = new Set<string>()
  const size = sizeOf(JSON.stringify(schema), tableLimits.schema)
  if (size > tableLimits.schema)
    faults.push({
      field: 'schema',
      message: `must have at most ${tableLimits.schema} bytes as JSON`,
      actual: size,
    })
  for (const [index, column] of columns.entries()) {
    const field = `schema.columns[${index}]`
    if (names.has(column.name))
      faults.push({
        field: `${field}.name`,
        message: 'is the name of another column',
        actual: column.name,
      })
    // A request that contains a member of this name is refused, so no row could have a value.
    if (column.name === '__proto__')
      faults.push({ field: `${field}.name`, message: 'is not allowed as a name' })
    names.add(column.name)
    if (column.default === undefined || column.default === null) continue
    if (column.name === identity_column)
      faults.push({ field: `${field}.default`, message: 'is not allowed for the identity column' })
    else if (!isOfType(column.type, column.default))
      faults.push({
        field: `${field}.default`,
        message: `must be ${typeNames[column.type]}`,
        expected: column.type,
        actual: column.default,
      })
  }
  const identity = columnOf(schema, identity_column)
  if (identity?.type !== 'string' || identity.required !== true)
    faults.push({
      field: 'schema.identity_column',
      message: 'must name a declared column of type string that is required',
      actual: identity_column,
    })
  if (
    secondary_key_column !== undefined &&
    columnOf(schema, secondary_key_column)?.type !== 'string'
  )
    faults.push({
      field: 'schema.secondary_key_column',
      message: 'must name a declared column of type string',
      actual: secondary_key_column,
    })
  return faults
}

/**
 * Returns the faults of a change to the schema. The key columns and `required` of existing columns
 * never change, and new columns are optional. The type of a column changes only while the table has
 * no rows. A removed column only hides its values; see `visibleData`.
 * @param isEmpty whether the table has no rows.
 */
export function evolutionFaults(
  before: TableSchema,
  after: TableSchema,
  isEmpty: boolean,
): FieldError[] {
  const faults: FieldError[] = []
  for (const key of ['identity_column', 'secondary_key_column'] as const)
    if (before[key] !== after[key])
      faults.push({
        field: `schema.${key}`,
        message: 'cannot be changed',
        ...(before[key] !== undefined && { expected: before[key] }),
        ...(after[key] !== undefined && { actual: after[key] }),
      })
  for (const [index, { name, type, required = false }] of after.columns.entries()) {
    const field = `schema.columns[${index}]`
    const old = columnOf(before, name)
    if (!old) {
      if (required)
        faults.push({ field: `${field}.required`, message: 'an added column must be optional' })
      continue
    }
    if ((old.required ?? false) !== required)
      faults.push({
        field: `${field}.required`,
        message: 'cannot be changed for an existing column',
        expected: old.required ?? false,
        actual: required,
      })
    if (old.type !== type && !isEmpty)
      faults.push({
        field: `${field}.type`,
        message: 'can be changed only while the table has no rows',
        expected: old.type,
        actual: type,
      })
  }
  return faults
}
