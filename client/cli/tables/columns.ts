/**
 * Infers the columns of a table from the records of a file, and converts values between files and
 * the types of columns. Pure functions.
 */
import { COLUMN_NAME, type Column, type ColumnType } from '../../../protocol/tables/schema.ts'
import { isOfType } from '../../../protocol/tables/values.ts'
import { Mistake } from '../mistake.ts'
import { inexactFault, inexactInteger } from './exact.ts'
import type { FileFormat, FileRecord } from './records.ts'

/** The part of a column definition that file conversion uses. */
export type FileColumn = Pick<Column, 'name' | 'type' | 'required' | 'default'>
/**
 * Decimal numbers without leading zeros and with at most 15 digits, which do not change when they
 * are converted to a double and back. Other numerals, such as `007` and long account numbers, are
 * treated as strings.
 */
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?(?:[eE][+-]?\d{1,2})?$/
const isNumber = (text: string): boolean =>
  NUMBER.test(text) && text.replaceAll(/\D/g, '').length <= 15
const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const NAME = new RegExp(COLUMN_NAME)
/** Returns why a table cannot have columns with these names; undefined if it can. */
export function nameFault(names: readonly string[]): string | undefined {
  const invalid = names.find((name) => !NAME.test(name))
  return invalid === undefined
    ? undefined
    : `A table cannot have a column named ${JSON.stringify(invalid)}: a name has 1 to 64 letters ` +
        'from A to Z, digits and underscores, and does not begin with a digit. ' +
        'Rename the column in the file.'
}

/** Returns the narrowest type that fits a value of a file. */
function typeOf(value: unknown, format: FileFormat): ColumnType {
  if (typeof value === 'string') {
    if (isOfType('date', value)) return 'date'
    if (format === 'jsonl') return 'string'
    if (isNumber(value)) return 'number'
    if (value === 'true' || value === 'false') return 'boolean'
    return /^[[{]/.test(value) ? typeOf(jsonIn(value), 'jsonl') : 'string'
  }
  if (typeof value === 'number' || typeof value === 'boolean')
    return typeof value as 'number' | 'boolean'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'object' ? 'object' : 'string'
}

/**
 * Returns the columns of records in order of first appearance. A column has the type that fits all
 * of its values. A column with mixed types is `string` in CSV and `any` in JSON Lines. Dates mixed
 * with other strings are always `string`. The identity column is always `string`.
 */
export function inferColumns(
  records: readonly FileRecord[],
  format: FileFormat,
  identity: string,
): FileColumn[] {
  const types = new Map<string, ColumnType | undefined>()
  for (const { values } of records)
    for (const [name, value] of Object.entries(values))
      types.set(
        name,
        value === null || value === undefined
          ? types.get(name)
          : common(types.get(name), typeOf(value, format), format),
      )
  return [...types].map(([name, type]) => ({
    name,
    type: name === identity ? 'string' : (type ?? (format === 'csv' ? 'string' : 'any')),
  }))
}
function common(known: ColumnType | undefined, next: ColumnType, format: FileFormat): ColumnType {
  if (known === undefined || known === next) return next
  const texts: readonly ColumnType[] = ['string', 'date']
  return format === 'csv' || (texts.includes(known) && texts.includes(next)) ? 'string' : 'any'
}

/**
 * Returns the columns for which a new row must contain null if it has no value. Otherwise, the
 * service would set the default of the column.
 */
export const clearedByEmpty = (columns: readonly FileColumn[]): ReadonlySet<string> =>
  new Set(
    columns
      .filter(({ required, default: standard }) => !required && standard !== undefined)
      .map(({ name }) => name),
  )

/**
 * Converts a record to the data of a row. A CSV field without a value is omitted, or null if its
 * column is one of `cleared`.
 * @throws Mistake if a CSV field does not have the type of its column, or is a number that would be
 * changed.
 */
export function dataOf(
  { line, values }: FileRecord,
  columns: ReadonlyMap<string, ColumnType>,
  format: FileFormat,
  cleared: ReadonlySet<string> = new Set(),
): Record<string, unknown> {
  if (format === 'jsonl') return values as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, text]) => {
      if (text === undefined) return cleared.has(name) ? [[name, null]] : []
      const type = columns.get(name) ?? 'string'
      const inexact = isText(type) ? undefined : inexactInteger(String(text))
      if (inexact !== undefined) throw new Mistake(inexactFault(line, inexact))
      const value = valueIn(String(text), type)
      if (value === undefined)
        throw new Mistake(
          `Line ${line}: the value of ${name} is not of type ${type}: ${JSON.stringify(String(text).slice(0, 80))}.`,
        )
      return [[name, value]]
    }),
  )
}
const isText = (type: ColumnType): boolean => type === 'string' || type === 'date'
/** Parses a CSV field. Returns undefined if the text is not a value of the given type. */
export function valueIn(text: string, type: ColumnType): unknown {
  if (type === 'string') return text
  if (type === 'any') return jsonIn(text) ?? text
  const value =
    type === 'date' ? text : type === 'number' ? Number(text.trim() || Number.NaN) : jsonIn(text)
  return isOfType(type, value) ? value : undefined
}

/** Formats a value for CSV so that `dataOf` restores it. Returns undefined if there is no value. */
export function textOf(value: unknown, type: ColumnType): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') return JSON.stringify(value)
  return type === 'any' && jsonIn(value) !== undefined ? JSON.stringify(value) : value
}
