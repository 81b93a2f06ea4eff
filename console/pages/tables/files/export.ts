/** Exports the rows that a table shows, page by page. */
import { textOf } from '../../../../client/cli/tables/columns.ts'
import { forSpreadsheet } from '../../../../client/cli/tables/spreadsheet.ts'
import type { TableSchema } from '../../../../protocol/tables/schema.ts'
import { csvLine } from '../../../preview/csv.ts'
import { loadRows, type RowQuery, type TableRow } from '../rows/rows.ts'

export type ExportFormat = 'csv' | 'json' | 'jsonl'
const types: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
}

/**
 * Returns rows as lines of a file. CSV contains the columns of the schema, with values escaped so
 * that spreadsheets do not evaluate them as formulas. JSON contains all members of the rows.
 */
export function linesOf(
  rows: readonly Pick<TableRow, 'data'>[],
  format: ExportFormat,
  { columns }: Pick<TableSchema, 'columns'>,
): string[] {
  if (format === 'csv')
    return rows.map(({ data }) =>
      csvLine(
        columns.map(({ name, type }) => {
          const field = Object.hasOwn(data, name) ? textOf(data[name], type) : undefined
          return field === undefined ? undefined : forSpreadsheet(field)
        }),
      ),
    )
  return rows.map(({ data }) => JSON.stringify(data))
}

/**
 * Loads all rows of a query and offers them as a file.
 * @param advanced receives the number of loaded rows.
 * @returns the number of rows.
 * @throws ApiError if a request fails; the reason of the signal if it is aborted.
 */
export async function exportRows(
  {
    project,
    id,
    name,
    schema,
    query,
    format,
  }: {
    readonly project: string
    readonly id: string
    readonly name: string
    readonly schema: TableSchema
    readonly query: RowQuery
    readonly format: ExportFormat
  },
  signal: AbortSignal,
  advanced: (count: number) => void,
): Promise<number> {
  const parts: string[] = []
  if (format === 'csv') parts.push(`${csvLine(schema.columns.map((one) => one.name))}\n`)
  if (format === 'json') parts.push('[\n')
  let count = 0
  let cursor: string | undefined
  do {
    const page = await loadRows(project, id, query, { cursor, signal })
    signal.throwIfAborted()
    const lines = linesOf(page.items, format, schema)
    const between = format === 'json' ? ',\n' : '\n'
    if (lines.length > 0)
      parts.push(
        `${format === 'json' && count > 0 ? between : ''}${lines.join(between)}` +
          (format === 'json' ? '' : '\n'),
      )
    count += lines.length
    cursor = page.next_cursor
    advanced(count)
  } while (cursor !== undefined)
  if (format === 'json') parts.push('\n]\n')
  save(new Blob(parts, { type: types[format] }), `${name}.${format}`)
  return count
}
/**
 * Milliseconds until the object URL of a file is revoked. The browser has read the file by then.
 */
const RELEASE_MS = 60_000
function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS)
}
