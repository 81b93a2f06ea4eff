/**
 * Reads the records of a CSV or JSON Lines file one by one, so that memory use is bounded.
 * `columns.ts` converts values to the types of columns.
 *
 * Files are UTF-8. Any other encoding is refused, because its letters would be stored as `\uFFFD`.
 * CSV has a header with the names of the columns (RFC 4180). An empty field has no value. An empty
 * string is written as `""`. JSON Lines has one JSON object per line. Blank lines are skipped.
 */
import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { Mistake } from '../mistake.ts'
import { inexactFault, inexactInteger } from './exact.ts'
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
  const texts = Readable.from(textsOf(from))
  texts.on('error', (error) => parser.destroy(error)).pipe(parser)
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
  // Spreadsheet programs of many countries separate the fields of CSV by semicolons.
  const [only = ''] = names
  const separator = names.length === 1 ? /[;\t|]/.exec(only)?.[0] : undefined
  if (separator !== undefined)
    throw new Mistake(
      `The fields of the file seem to be separated by ${JSON.stringify(separator)}. ` +
        'Save the file with commas as separators.',
    )
  return [...names]
}

/**
 * Decodes a file as UTF-8.
 * @throws Mistake if the file has another encoding. The message contains the line number.
 */
async function* textsOf(from: Readable): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  let line = 1
  const decoded = (bytes: Buffer): string => {
    if (!isUtf8(bytes))
      throw new Mistake(
        `Line ${line + firstInvalidLine(bytes)} is not UTF-8 text. ` +
          'Save the file with the encoding UTF-8.',
      )
    const text = bytes.toString()
    line += text.split('\n').length - 1
    return text
  }
  for await (const chunk of from) {
    const bytes = Buffer.concat([rest, Buffer.from(chunk as Uint8Array)])
    const end = bytes.length - unfinishedLength(bytes)
    yield decoded(bytes.subarray(0, end))
    rest = bytes.subarray(end)
  }
  if (rest.length > 0) yield decoded(rest)
}
/** Returns the index of the first line that is not UTF-8. At least one line must not be. */
function firstInvalidLine(bytes: Buffer): number {
  for (let from = 0, index = 0; ; index++) {
    const end = bytes.indexOf('\n', from)
    if (end < 0 || !isUtf8(bytes.subarray(from, end))) return index
    from = end + 1
  }
}
/** Returns the number of bytes at the end that begin an incomplete character of UTF-8. */
function unfinishedLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}
/** Returns the lines of a text. */
async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const text of texts) {
    // A carriage return at the end may be followed by a line feed in the next text.
    const lines = (rest + text).split(/\r\n|\n|\r(?=[\s\S])/)
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

async function* readLines(from: Readable): AsyncGenerator<FileRecord> {
  let line = 0
  for await (const text of linesOf(textsOf(from))) {
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
  const inexact = inexactInteger(json)
  if (inexact !== undefined) throw new Mistake(inexactFault(line, inexact))
  return value as Record<string, unknown>
}
