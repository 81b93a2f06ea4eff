/**
 * Converts Office files (ECMA-376) to Markdown: documents with headings, lists and tables,
 * workbooks as one table for each sheet, and presentations with one section for each slide. Other
 * formatting, pictures, comments and formulas are left out. A file with macros is rejected.
 * Archives are opened by `zip.ts`.
 */
import { attribute, readXml } from './xml.ts'
import type { Archive } from './zip.ts'

const prefix = 'application/vnd.openxmlformats-officedocument.'
const kinds = [
  ['word/document.xml', `${prefix}wordprocessingml.document`],
  ['xl/workbook.xml', `${prefix}spreadsheetml.sheet`],
  ['ppt/presentation.xml', `${prefix}presentationml.presentation`],
] as const
/** Maximum length in characters of the Markdown of one file. */
const MAX_MARKDOWN_LENGTH = 262_144
/** Maximum number of columns that are converted in each table. */
const COLUMNS = 200

/**
 * The media type of an Office file. Returns `unsafe` for a file with macros, and undefined for an
 * archive that is not an Office file.
 */
export function officeKind({ names }: Archive): string | 'unsafe' | undefined {
  const kind = kinds.find(([main]) => names.includes(main))
  if (!kind || !names.includes('[Content_Types].xml')) return undefined
  return names.some((name) => /vbaProject\.bin$/i.test(name)) ? 'unsafe' : kind[1]
}

/**
 * The file's content as Markdown, truncated at `MAX_MARKDOWN_LENGTH`. Undefined for a document that
 * cannot be read, and for a presentation without slides.
 */
export async function markdownOf(archive: Archive): Promise<string | undefined> {
  const text = archive.names.includes('word/document.xml')
    ? await documentOf(archive)
    : archive.names.includes('xl/workbook.xml')
      ? await workbookOf(archive)
      : await slidesOf(archive)
  return text === undefined || text.length <= MAX_MARKDOWN_LENGTH
    ? text
    : `${text.slice(0, MAX_MARKDOWN_LENGTH)}\n\n[cut off here]`
}

const cell = (text: string): string =>
  text
    .slice(0, MAX_MARKDOWN_LENGTH)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll('|', '\\|')
/** Number of characters that a cell adds to a row of Markdown, in addition to its text. */
const SEPARATOR_LENGTH = ' | '.length
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
/**
 * Converts rows to a Markdown table, with the first row as the header. The table ends with the row
 * at which its length exceeds `MAX_MARKDOWN_LENGTH`.
 */
function table(rows: readonly (readonly string[])[]): string {
  const width = Math.min(
    COLUMNS,
    rows.reduce((most, { length }) => Math.max(most, length), 0),
  )
  if (width === 0) return ''
  const lines: string[] = []
  let size = 0
  for (const cells of rows) {
    const line = row(Array.from({ length: width }, (_, index) => cells[index] ?? ''))
    lines.push(line)
    if (lines.length === 1) lines.push(`|${' --- |'.repeat(width)}`)
    size += line.length
    if (size > MAX_MARKDOWN_LENGTH) break
  }
  return lines.join('\n')
}

async function documentOf(archive: Archive): Promise<string | undefined> {
  const xml = await archive.text('word/document.xml')
  if (xml === undefined) return undefined
  const blocks: string[] = []
  let size = 0
  const add = (block: string) => {
    blocks.push(block)
    size += block.length
  }
  let [line, mark, taking, depth] = ['', '', false, 0]
  let rows: string[][] = []
  for (const token of readXml(xml)) {
    const { tag, end = false, text } = token
    if (size > MAX_MARKDOWN_LENGTH) break
    if (text !== undefined) line += taking ? text : ''
    else if (tag === 't') taking = !end
    else if ((tag === 'tab' || tag === 'br') && !end) line += tag === 'tab' ? '\t' : '\n'
    else if (tag === 'pStyle' && !end) mark = headingOf(attribute(token, 'val')) || mark
    else if (tag === 'numPr' && !end) mark ||= '- '
    else if (tag === 'tbl') {
      depth += end ? -1 : 1
      if (end && depth === 0) add(table(rows))
      if (depth === 0 || (!end && depth === 1)) rows = []
    } else if (depth > 0 && tag === 'tr' && !end) rows.push([])
    else if (depth > 0 && tag === 'tc' && end) {
      rows.at(-1)?.push(line)
      line = ''
    } else if (tag === 'p' && end) {
      if (depth > 0) line += '\n'
      else {
        if (line.trim() !== '') add(mark + line.trim())
        line = ''
      }
      mark = ''
    }
  }
  return blocks.join('\n\n')
}
const headingOf = (style = ''): string => {
  const level = style === 'Title' ? 1 : Number(/^Heading(\d)$/i.exec(style)?.[1] ?? 0)
  return level > 0 ? `${'#'.repeat(Math.min(6, level))} ` : ''
}

const numbered = ({ names }: Archive, pattern: RegExp): string[] =>
  names
    .filter((name) => pattern.test(name))
    .sort((a, b) => Number(pattern.exec(a)?.[1]) - Number(pattern.exec(b)?.[1]))
async function slidesOf(archive: Archive): Promise<string | undefined> {
  const slides: string[] = []
  for (const [index, name] of numbered(archive, /^ppt\/slides\/slide(\d+)\.xml$/).entries()) {
    const lines = linesOf((await archive.text(name)) ?? '', 'p')
    slides.push(
      [`## Slide ${index + 1}`, ...lines.filter((line) => line.trim() !== '')].join('\n\n'),
    )
  }
  return slides.length > 0 ? slides.join('\n\n') : undefined
}
/** The text of each element with this name, in order. Only text in `t` elements counts. */
function linesOf(xml: string, element: string): string[] {
  const lines: string[] = []
  let [line, taking] = ['', false]
  for (const { tag, end = false, text } of readXml(xml)) {
    if (text !== undefined) line += taking ? text : ''
    else if (tag === 't') taking = !end
    else if (tag === 'br' && !end) line += '\n'
    else if (tag === element && end) {
      lines.push(line)
      line = ''
    }
  }
  return lines
}

async function workbookOf(archive: Archive): Promise<string | undefined> {
  const shared = linesOf((await archive.text('xl/sharedStrings.xml')) ?? '', 'si')
  const files = numbered(archive, /^xl\/worksheets\/sheet(\d+)\.xml$/)
  const parts = await sheetParts(archive)
  // Each file is read once, even if several sheets name it.
  const named = new Map<string, string>()
  let index = 0
  for (const token of readXml((await archive.text('xl/workbook.xml')) ?? '')) {
    if (token.tag !== 'sheet' || token.end) continue
    const file = parts.get(attribute(token, 'id') ?? '') ?? files[index]
    index++
    if (file !== undefined && files.includes(file) && !named.has(file))
      named.set(file, attribute(token, 'name') || `Sheet ${index}`)
  }
  if (index === 0) for (const [at, file] of files.entries()) named.set(file, `Sheet ${at + 1}`)
  const sheets: string[] = []
  for (const [file, title] of named) {
    const text = sheetOf((await archive.text(file)) ?? '', shared)
    if (text !== '') sheets.push(`## ${title}\n\n${text}`)
  }
  return sheets.join('\n\n')
}
/**
 * The file of each sheet by the id of its relationship (ECMA-376 part 2, relationships). After
 * sheets have been moved or deleted, only the relationships determine which file contains a sheet.
 */
async function sheetParts(archive: Archive): Promise<Map<string, string>> {
  const parts = new Map<string, string>()
  for (const token of readXml((await archive.text('xl/_rels/workbook.xml.rels')) ?? '')) {
    const [id, target] = [attribute(token, 'Id'), attribute(token, 'Target')]
    if (token.tag !== 'Relationship' || token.end || id === undefined || !target) continue
    parts.set(id, target.startsWith('/') ? target.slice(1) : `xl/${target}`)
  }
  return parts
}
function sheetOf(xml: string, shared: readonly string[]): string {
  const rows: string[][] = []
  let [value, taking, kind, column, size] = ['', false, '', 0, 0]
  for (const token of readXml(xml)) {
    const { tag, end = false, text } = token
    if (text !== undefined) value += taking ? text : ''
    else if (tag === 'v' || tag === 't') taking = !end
    else if (tag === 'row' && !end) rows.push([])
    else if (tag === 'c' && !end)
      [value, kind, column] = ['', attribute(token, 't') ?? '', columnOf(attribute(token, 'r'))]
    else if (tag === 'c') {
      const shown =
        kind === 's'
          ? (shared[Number(value)] ?? '')
          : kind === 'b'
            ? value === '1'
              ? 'TRUE'
              : 'FALSE'
            : value
      const cells = rows.at(-1)
      if (cells && column < COLUMNS && shown !== '') {
        for (; cells.length <= column; size += SEPARATOR_LENGTH) cells.push('')
        cells[column] = shown
        size += shown.length
      }
      if (size > MAX_MARKDOWN_LENGTH) break
    }
  }
  return table(rows.filter((cells) => cells.length > 0))
}
/** The zero-based column of a cell reference such as `AB12`. */
const columnOf = (place = 'A1'): number =>
  [...(/^[A-Z]{1,3}/.exec(place)?.[0] ?? 'A')].reduce(
    (sum, letter) => sum * 26 + letter.charCodeAt(0) - 64,
    0,
  ) - 1
