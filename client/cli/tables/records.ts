/**
 * Reads the records of a CSV or JSON Lines file one by one, so that memory use is bounded.
 * `columns.ts` converts values to the types of columns.
 *
 * CSV has a header with the names of the columns (RFC 4180). An empty field has no value. An empty
 * string is written as `""`. JSON Lines has one JSON object per line. Blank lines are skipped.
 */
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { Mistake } from '../mistake.ts'
import { fromSpreadsheet } from './spreadsheet.ts'

/** File formats by file name extension. */
const FORMATS = { csv: 'csv', jsonl: 'jsonl', ndjson: 'jsonl' } as const
export type FileFormat = 'csv' | 'jsonl'
export const fileFormats: readonly FileFormat[] = ['csv', 'jsonl']

export interface FileRecord {
  /** The line on which the record ends. The first line is 1. */
  readonly line: number
  /** Values by column name. CSV values are strings, or undefined for empty fields. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Returns the format that a file name extension implies; undefined if the extension is unknown. */
export function formatOf(file: string): FileFormat | undefined {
  const ending = file.toLowerCase().split('.').at(-1) ?? ''
  return Object.hasOwn(FORMATS, ending) ? FORMATS[ending as keyof typeof FORMATS] : undefined
}

/**
 * Reads the records of a file.
 * @param spreadsheet whether CSV was written for a spreadsheet program.
 * @throws Mistake if a record cannot be read. The message contains its line number.
 */
export const readRecords = (
  from: Readable,
  format: FileFormat,
  spreadsheet = false,
): AsyncIterable<FileRecord> => (format === 'csv' ? readCsv(from, spreadsheet) : readLines(from))

interface CsvRecord {
  readonly record: Readonly<Record<string, unknown>>
  readonly info: { readonly lines: number }
}
async function* readCsv(from: Readable, spreadsheet: boolean): AsyncGenerator<FileRecord> {
  const parser = parse({
    bom: true,
    columns: checkHeader,
    info: true,
    skip_empty_lines: true,
    cast: (text, { quoting, header }) =>
      text === '' && !quoting && !header
        ? undefined
        : spreadsheet && !header
          ? fromSpreadsheet(text)
          : text,
  })
  from.on('error', (error) => parser.destroy(error)).pipe(parser)
  try {
    for await (const { record, info } of parser as AsyncIterable<CsvRecord>)
      yield { line: info.lines, values: record }
  } catch (error) {
    throw error instanceof CsvError ? new Mistake(`The file is not CSV: ${error.message}.`) : error
  }
}
function checkHeader(names: readonly string[]): string[] {
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new Mistake(`The header of the file has the column ${JSON.stringify(twice)} twice.`)
  return [...names]
}

async function* readLines(from: Readable): AsyncGenerator<FileRecord> {
  let line = 0
  for await (const text of createInterface({ input: from, crlfDelay: Number.POSITIVE_INFINITY })) {
    line++
    const json = line === 1 ? text.replace(/^\uFEFF/, '') : text
    if (json.trim() === '') continue
    yield { line, values: objectIn(json, line) }
  }
}
function objectIn(json: string, line: number): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw new Mistake(`Line ${line} is not JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Mistake(`Line ${line} is not a JSON object.`)
  return value as Record<string, unknown>
}
