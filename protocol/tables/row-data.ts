/**
 * The data of rows: validation, defaults, merging, and the visibility of stored values. Stored data
 * never contains null: in requests, null means that the value is missing.
 */
import { type JsonObject, sizeOf } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import { canonicalJson } from '../rules/canonical-json.ts'
import { columnOf } from './definition.ts'
import { type Column, type TableSchema, tableLimits } from './schema.ts'
import { isOfType, typeNames } from './values.ts'

// `Object.fromEntries` keeps a member named `__proto__` as an ordinary member.
const withoutNulls = (data: JsonObject): JsonObject =>
  Object.values(data).includes(null)
    ? Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null))
    : data

/** Returns the default values of the columns of a table, by column name. */
export const defaultsOf = ({ columns }: TableSchema): JsonObject =>
  Object.fromEntries(
    columns.flatMap(({ name, default: value }) =>
      value === undefined || value === null ? [] : [[name, value] as const],
    ),
  )
/**
 * Returns the data of a new row. A column that the request omits gets its default. A column that
 * the request sets to null has no value.
 * @param defaults the result of `defaultsOf`.
 */
export const insertedData = (defaults: JsonObject, data: JsonObject): JsonObject =>
  withoutNulls({ ...defaults, ...data })
/** Returns the data of a row after an update. Null removes a value. Other values replace it. */
export const mergedData = (stored: JsonObject, change: JsonObject): JsonObject =>
  withoutNulls({ ...stored, ...change })

/** Returns the identity of a row: the value of its identity column. */
export const identityOf = ({ identity_column }: TableSchema, data: JsonObject): unknown =>
  getOwn(data, identity_column)

/** Returns the faults of a non-null value of a column. */
function valueFaults(
  { identity_column }: TableSchema,
  { name, type }: Column,
  value: unknown,
  field: string,
): FieldError[] {
  if (!isOfType(type, value))
    return [{ field, message: `must be ${typeNames[type]}`, expected: type, actual: value }]
  if (name !== identity_column) return []
  const size = sizeOf(value as string, tableLimits.identity)
  return size >= 1 && size <= tableLimits.identity
    ? []
    : [
        {
          field,
          message: `an identity has 1 to ${tableLimits.identity} bytes`,
          expected: { maxBytes: tableLimits.identity },
          actual: size,
        },
      ]
}
function sizeFaults(json: string, path: string): FieldError[] {
  const size = sizeOf(json, tableLimits.row)
  return size <= tableLimits.row
    ? []
    : [
        {
          field: path,
          message: `must have at most ${tableLimits.row} bytes as JSON`,
          expected: { maxBytes: tableLimits.row },
          actual: size,
        },
      ]
}
/** Returns the faults of the members of a request. Null is accepted for optional columns. */
function memberFaults(schema: TableSchema, data: JsonObject, path: string): FieldError[] {
  return Object.entries(data).flatMap(([name, value]) => {
    const field = `${path}.${name}`
    const column = columnOf(schema, name)
    if (!column)
      return schema.open
        ? []
        : [{ field, message: 'is not a column of the table', actual: name.slice(0, 100) }]
    if (value !== null) return valueFaults(schema, column, value, field)
    return column.required ? [{ field, message: 'is required', expected: column.type }] : []
  })
}

/**
 * Returns the faults of a new row.
 * @param data the data with defaults, from `insertedData`.
 * @param json the same data as JSON.
 * @param sent the data as sent by the client.
 * @param path the path of the data in the request, such as `data` or `rows[3]`.
 */
export function insertFaults(
  schema: TableSchema,
  data: JsonObject,
  json: string,
  sent: JsonObject,
  path: string,
): FieldError[] {
  const missing = schema.columns.filter(
    ({ name, required }) =>
      required && getOwn(sent, name) === undefined && !Object.hasOwn(data, name),
  )
  return [
    ...memberFaults(schema, sent, path),
    ...missing.map(({ name, type }) => ({
      field: `${path}.${name}`,
      message: 'is required',
      expected: type,
    })),
    ...sizeFaults(json, path),
  ]
}
/**
 * Returns the faults of an update of a row.
 * @param data the data after the update, from `mergedData`.
 * @param sent the changes as sent by the client.
 */
export const updateFaults = (
  schema: TableSchema,
  data: JsonObject,
  sent: JsonObject,
  path: string,
): FieldError[] => [...memberFaults(schema, sent, path), ...sizeFaults(JSON.stringify(data), path)]

/** Returns the names of the members in which two states of a row differ, sorted. */
export const changedMembers = (before: JsonObject, after: JsonObject): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => {
      const [old, next] = [getOwn(before, name), getOwn(after, name)]
      return old !== next && canonicalJson(old) !== canonicalJson(next)
    })
    .sort()

/**
 * Whether readers see a stored value: its key is declared and the value is of the column's type, or
 * the key is not declared and the table is open. Other values are hidden, not deleted. They were
 * stored under an earlier schema, and become visible again when their column is declared again.
 */
export function isVisible(schema: TableSchema, name: string, value: unknown): boolean {
  const column = columnOf(schema, name)
  return column ? isOfType(column.type, value) : schema.open === true
}
/** Returns the data of a row as readers see it under the current schema; see `isVisible`. */
export function visibleData(schema: TableSchema, data: JsonObject): JsonObject {
  const members = Object.entries(data)
  const shown = members.filter(([name, value]) => isVisible(schema, name, value))
  return shown.length === members.length ? data : Object.fromEntries(shown)
}
