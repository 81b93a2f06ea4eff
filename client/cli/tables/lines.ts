/**
 * Writes rows as lines of a file, in a form that `records.ts` reads again. CSV has a header and the
 * columns of the schema; JSON Lines has all stored values.
 */
import { stringify } from 'csv-stringify/sync'
import { type FileColumn, textOf } from './columns.ts'
import type { FileFormat } from './records.ts'

/** The header of a file, without its line break; undefined for a format without one. */
export const headerOf = (format: FileFormat, columns: readonly FileColumn[]): string | undefined =>
  format === 'csv' ? csvLine(columns.map(({ name }) => name)) : undefined

/** A row as one record of a file, without its line break. */
export const recordOf = (
  data: Readonly<Record<string, unknown>>,
  format: FileFormat,
  columns: readonly FileColumn[],
): string =>
  format === 'csv'
    ? csvLine(
        columns.map(({ name, type }) =>
          Object.hasOwn(data, name) ? textOf(data[name], type) : undefined,
        ),
      )
    : JSON.stringify(data)

/** An empty text is quoted, which distinguishes it from a field without a value. */
const csvLine = (fields: readonly (string | undefined)[]): string =>
  stringify([fields], {
    eof: false,
    cast: { string: (value) => ({ value, quoted_empty: true }) },
  })
