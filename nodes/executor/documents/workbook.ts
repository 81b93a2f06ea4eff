/**
 * Converts workbooks (XLSX). Each sheet becomes a table with the sheet's name as its heading. Cells
 * show their stored values: the results of formulas, and the numbers that represent dates.
 */
import { type Parts, readParts } from './archive.ts'
import { MAX_MARKDOWN, type Rows, TABLE, tableOf } from './markdown.ts'
import { numberedParts, relationshipsOf } from './relationships.ts'
import { readXml } from './xml.ts'

const wanted =
  /^xl\/(workbook\.xml|_rels\/workbook\.xml\.rels|sharedStrings\.xml|worksheets\/[^/]+\.xml)$/
const MAIN = 'xl/workbook.xml'
const SHARED = 'xl/sharedStrings.xml'

/** Returns the Markdown of a workbook, without its empty sheets. */
export function workbookMarkdown(bytes: Uint8Array): string {
  const parts = readParts(bytes, wanted)
  const shared = sharedStrings(parts)
  const sheets: string[] = []
  let [size, left] = [0, 0]
  for (const [part, title] of sheetsOf(parts)) {
    if (size > MAX_MARKDOWN) {
      left++
      continue
    }
    const table = tableOf(rowsOf(parts.get(part) ?? new Uint8Array(), part, shared), 'sheet')
    if (table === '') continue
    sheets.push(`## ${title}\n\n${table}`)
    size += table.length
  }
  // The end of the text may be cut off, so the sentence about omitted sheets comes first.
  if (left > 0) sheets.unshift(`[The last ${left} sheets of this workbook were omitted.]`)
  return sheets.join('\n\n')
}

/** Returns the names of sheets by part, in the order of the workbook. Each part occurs once. */
function sheetsOf(parts: Parts): ReadonlyMap<string, string> {
  const files = numberedParts(parts, /^xl\/worksheets\/sheet(\d+)\.xml$/)
  // If sheets were moved or deleted, only the relationships show which part contains which sheet.
  const related = new Map(relationshipsOf(parts, MAIN).map(({ id, part }) => [id, part]))
  const named = new Map<string, string>()
  let index = 0
  const main = parts.get(MAIN)
  if (main)
    readXml(main, MAIN, {
      open(tag, { id = '', name }) {
        if (tag !== 'sheet') return
        const part = related.get(id) ?? files[index]
        index++
        if (part !== undefined && parts.has(part) && !named.has(part))
          named.set(part, name || `Sheet ${index}`)
      },
    })
  if (index === 0) for (const [at, part] of files.entries()) named.set(part, `Sheet ${at + 1}`)
  return named
}

/** Returns the strings to which cells refer by index. Phonetic readings are left out. */
function sharedStrings(parts: Parts): readonly string[] {
  const strings: string[] = []
  let [line, taking, phonetic] = ['', false, false]
  const part = parts.get(SHARED)
  if (part)
    readXml(part, SHARED, {
      open(tag) {
        if (tag === 't') taking = !phonetic
        else if (tag === 'rPh') phonetic = true
        else if (tag === 'si') line = ''
      },
      text(more) {
        if (taking) line += more
      },
      close(tag) {
        if (tag === 't') taking = false
        else if (tag === 'rPh') phonetic = false
        else if (tag === 'si') strings.push(line)
      },
    })
  return strings
}

/**
 * Returns as many of the rows with content as a table may have, and the total numbers of rows with
 * content and of columns.
 */
function rowsOf(bytes: Uint8Array, part: string, shared: readonly string[]): Rows {
  const rows: string[][] = []
  let [height, width, column] = [0, 0, -1]
  let [value, taking, kind, filled] = ['', false, '', false]
  let cells: string[] = []
  if (bytes.length > 0)
    readXml(bytes, part, {
      open(tag, { t = '', r }) {
        if (tag === 'row') [cells, column, filled] = [[], -1, false]
        else if (tag === 'c') [value, kind, column] = ['', t, columnOf(r) ?? column + 1]
        else if (tag === 'v' || tag === 't') taking = true
      },
      text(more) {
        if (taking) value += more
      },
      close(tag) {
        if (tag === 'v' || tag === 't') taking = false
        else if (tag === 'c') {
          const shown = shownValue(kind, value, shared)
          if (shown === '') return
          filled = true
          width = Math.max(width, column + 1)
          if (column >= TABLE.columns || rows.length >= TABLE.rows) return
          while (cells.length < column) cells.push('')
          cells[column] = shown
        } else if (tag === 'row' && filled) {
          height++
          if (rows.length < TABLE.rows) rows.push(cells)
        }
      },
    })
  return { rows, height, width }
}

const shownValue = (kind: string, value: string, shared: readonly string[]): string =>
  kind === 's'
    ? (shared[Number(value)] ?? '')
    : kind === 'b'
      ? value === '1'
        ? 'TRUE'
        : 'FALSE'
      : value
/**
 * Returns the zero-based column in a cell reference such as `AB12`, or undefined if it has none.
 */
function columnOf(place = ''): number | undefined {
  const letters = /^[A-Z]{1,3}/.exec(place)?.[0]
  return letters === undefined
    ? undefined
    : [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
}
