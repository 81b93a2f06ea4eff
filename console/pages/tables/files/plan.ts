/**
 * Plans an import: which column of a file goes to which column of the table. The functions are
 * pure.
 */

import { clearedByEmpty, dataOf, inferColumns } from '../../../../client/cli/tables/columns.ts'
import { fromSpreadsheet } from '../../../../client/cli/tables/spreadsheet.ts'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Column, ColumnType, TableSchema } from '../../../../protocol/tables/schema.ts'
import { type CsvRecord, readCsv } from '../../../preview/csv.ts'
import { tablesText as text } from '../text.ts'

/** A parsed CSV file: its name, the fields of its header, and its records. */
export interface CsvFile {
  readonly name: string
  readonly head: readonly string[]
  readonly records: readonly CsvRecord[]
}
/** Decodes a file as UTF-8. Returns undefined if it has another encoding. */
export function textOf(bytes: ArrayBuffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
/**
 * Parses a CSV file, and removes the apostrophes that an export adds so that spreadsheets do not
 * evaluate texts as formulas. Returns undefined if the file has no records.
 */
export function readFile(name: string, text: string): CsvFile | undefined {
  const [first, ...records] = readCsv(text)
  if (!first || records.length === 0) return undefined
  return {
    name,
    head: first.fields.map((field) => field ?? ''),
    records: records.map(({ line, fields }) => ({
      line,
      fields: fields.map((field) => (field === undefined ? undefined : fromSpreadsheet(field))),
    })),
  }
}

/**
 * The target of each column of the file, by position: a column of the table, a new column
 * (`NEW_COLUMN`), or none ('').
 */
export type Mapping = readonly string[]
/** Marks a column that the import adds to the table. */
export const NEW_COLUMN = '+'

const COLUMN_NAME = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_]{0,63}$/
const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** Returns the columns that the file could add to the table, by position in the file. */
export function newColumns(file: CsvFile, schema: TableSchema): ReadonlyMap<number, Column> {
  const values = file.records.slice(0, 1000).map(({ line, fields }) => ({
    line,
    values: Object.fromEntries(file.head.map((name, index) => [name, fields[index]])),
  }))
  const types = new Map(inferColumns(values, 'csv', '').map(({ name, type }) => [name, type]))
  const taken = new Set(schema.columns.map(({ name }) => name))
  const found = new Map<number, Column>()
  for (const [index, title] of file.head.entries()) {
    const name = title
      .trim()
      .replaceAll(/[^A-Za-z0-9_]+/g, '_')
      .replace(/^(?=\d)/, '_')
    if (!COLUMN_NAME.test(name) || taken.has(name)) continue
    taken.add(name)
    found.set(index, { name, type: types.get(title) ?? 'string' })
  }
  return found
}
/**
 * Maps the columns of the file to table columns with the same name. Case and punctuation are
 * ignored for a column without an exact match.
 */
export function suggested(file: CsvFile, schema: TableSchema): Mapping {
  const free = new Set(schema.columns.map(({ name }) => name))
  const take = (name: string | undefined): string => {
    if (name === undefined || !free.delete(name)) return ''
    return name
  }
  const exact = file.head.map((title) => take(free.has(title) ? title : undefined))
  return exact.map((known, index) =>
    known !== ''
      ? known
      : take([...free].find((name) => plain(name) === plain(file.head[index] ?? ''))),
  )
}

/** A row to import, and the number of its line in the file. */
export interface PlannedRow {
  readonly line: number
  readonly data: Readonly<Record<string, unknown>>
}
/** The valid rows, and the faults of the others. */
export interface ImportPlan {
  readonly rows: readonly PlannedRow[]
  readonly faults: readonly { readonly line: number; readonly message: string }[]
}

/**
 * Converts the records to rows. Records with faults are left out.
 * @param update whether rows that exist are updated: an empty field then leaves the stored value as
 * it is. Otherwise it has no value, even if its column has a default.
 */
export function planImport(
  file: CsvFile,
  mapping: Mapping,
  schema: TableSchema,
  added: ReadonlyMap<number, Column>,
  update = false,
): ImportPlan {
  const cleared = clearedByEmpty(update ? [] : schema.columns)
  const types = new Map<string, ColumnType>(
    [...schema.columns, ...added.values()].map(({ name, type }) => [name, type]),
  )
  const names = mapping.map((target, index) =>
    target === NEW_COLUMN ? added.get(index)?.name : target,
  )
  const rows: PlannedRow[] = []
  const faults: { line: number; message: string }[] = []
  for (const { line, fields } of file.records) {
    const values: Record<string, unknown> = {}
    for (const [index, name] of names.entries()) if (name) values[name] = fields[index]
    const missing = schema.columns.find(
      ({ name, required, default: standard }) =>
        required && standard === undefined && (getOwn(values, name) ?? '') === '',
    )
    const isTooLong = fields.slice(file.head.length).some((field) => field !== undefined)
    if (isTooLong) faults.push({ line, message: text.tooManyFields(line, file.head.length) })
    else if (missing) faults.push({ line, message: text.valueMissing(line, missing.name) })
    else
      try {
        rows.push({ line, data: dataOf({ line, values }, types, 'csv', cleared) })
      } catch (error) {
        faults.push({ line, message: (error as Error).message })
      }
  }
  return { rows, faults }
}

/** Maximum number of rows in one request. */
const MAX_BULK_ROWS = 500
/** Maximum size of the rows of one request, in characters of JSON. */
const MAX_BULK_CHARACTERS = 1_000_000
/**
 * Divides rows into requests. A request has at most `MAX_BULK_ROWS` rows. It exceeds
 * `MAX_BULK_CHARACTERS` only if its single row does.
 */
export function bulksOf(rows: readonly PlannedRow[]): PlannedRow[][] {
  const bulks: PlannedRow[][] = []
  let [bulk, size]: [PlannedRow[], number] = [[], 0]
  for (const row of rows) {
    const length = JSON.stringify(row.data).length
    if (bulk.length > 0 && (bulk.length >= MAX_BULK_ROWS || size + length > MAX_BULK_CHARACTERS)) {
      bulks.push(bulk)
      ;[bulk, size] = [[], 0]
    }
    bulk.push(row)
    size += length
  }
  return bulk.length > 0 ? [...bulks, bulk] : bulks
}

/** Maximum number of updates that run at the same time. */
const MAX_RUNNING = 6
/**
 * Divides rows into groups whose updates may run at the same time. A group has at most one row of
 * each identity, so the last row of an identity in the file is applied last.
 * @param identity the name of the identity column.
 */
export function updatesOf(rows: readonly PlannedRow[], identity: string): PlannedRow[][] {
  const groups: PlannedRow[][] = []
  let [group, taken]: [PlannedRow[], Set<unknown>] = [[], new Set()]
  for (const row of rows) {
    if (group.length >= MAX_RUNNING || taken.has(row.data[identity])) {
      groups.push(group)
      ;[group, taken] = [[], new Set()]
    }
    group.push(row)
    taken.add(row.data[identity])
  }
  return group.length > 0 ? [...groups, group] : groups
}
