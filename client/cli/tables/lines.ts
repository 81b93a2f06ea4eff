/**
 * Writes rows as lines of a file, in the format that `records.ts` reads. A CSV file contains a
 * header and the columns of the schema. A JSON Lines file contains all stored values, and null for a
 * column with a default that has no value, so that an import does not set the default.
 */
import { stringify } from 'csv-stringify/sync'
import { clearedByEmpty, type FileColumn, textOf } from './columns.ts'
import type { FileFormat } from './records.ts'
import { forSpreadsheet } from './spreadsheet.ts'

/** Returns the header line without a line break; undefined if the format has no header. */
export const headerOf = (format: FileFormat, columns: readonly FileColumn[]): string | undefined =>
  format === 'csv' ? csvLine(columns.map(({ name }) => name)) : undefined

/**
 * Formats a row as one record of a file, without a line break.
 * @param spreadsheet whether the CSV file is for a spreadsheet program, so that its fields must not
 * be formulas.
 */
export const recordOf = (
  data: Readonly<Record<string, unknown>>,
  format: FileFormat,
  columns: readonly FileColumn[],
  spreadsheet = false,
): string =>
  format === 'csv'
    ? csvLine(
        columns.map(({ name, type }) => {
          const field = Object.hasOwn(data, name) ? textOf(data[name], type) : undefined
          return spreadsheet && field !== undefined ? forSpreadsheet(field) : field
        }),
      )
    : JSON.stringify(withNulls(data, columns))

const withNulls = (
  data: Readonly<Record<string, unknown>>,
  columns: readonly FileColumn[],
): Readonly<Record<string, unknown>> => {
  const empty = [...clearedByEmpty(columns)].filter((name) => !Object.hasOwn(data, name))
  return empty.length === 0
    ? data
    : { ...data, ...Object.fromEntries(empty.map((name) => [name, null])) }
}

/**
 * Formats a CSV record. Empty strings are quoted to distinguish them from fields without a value.
 */
const csvLine = (fields: readonly (string | undefined)[]): string =>
  stringify([fields], {
    eof: false,
    cast: { string: (value) => ({ value, quoted_empty: true }) },
  })
