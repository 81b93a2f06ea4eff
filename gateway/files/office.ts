/**
 * Converts Office files (ECMA-376) to Markdown: the text of a document, a workbook or a
 * presentation, without its formatting. Pictures, comments and formulas are left out. A file with
 * macros is rejected.
 */
import type { Archive } from './zip.ts'

const prefix = 'application/vnd.openxmlformats-officedocument.'
const kinds = [
  ['word/document.xml', `${prefix}wordprocessingml.document`],
  ['xl/workbook.xml', `${prefix}spreadsheetml.sheet`],
  ['ppt/presentation.xml', `${prefix}presentationml.presentation`],
] as const
/** Maximum length in characters of the Markdown of one file. */
const MAX_MARKDOWN_LENGTH = 262_144
/** Maximum number of tags and texts that are read of one part of the archive. */
const TOKENS = 400_000

/**
 * The media type of an archive; `unsafe`: it contains macros; undefined: it is not an Office file.
 */
export function officeKind({ names }: Archive): string | 'unsafe' | undefined {
  const kind = kinds.find(([main]) => names.includes(main))
  if (!kind || !names.includes('[Content_Types].xml')) return undefined
  return names.some((name) => /vbaProject\.bin$/i.test(name)) ? 'unsafe' : kind[1]
}

/** The file's content as Markdown; undefined: its parts cannot be read. */
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

/** A tag, or the text between two tags. */
interface Token {
  readonly tag?: string
  readonly end?: boolean
  readonly attributes?: string
  readonly text?: string
}
function* tokens(xml: string): Generator<Token> {
  let left = TOKENS
  // No input can match this expression in two ways, so matching takes linear time.
  for (const [, slash, tag, attributes = '', text] of xml.matchAll(
    /<(\/?)([\w:]+)((?:[\s/][^<>]*)?)>|([^<>]+)/g,
  )) {
    if (left-- === 0) return
    if (text !== undefined) yield { text: plain(text) }
    else if (tag !== undefined) {
      yield { tag: tag.slice(tag.indexOf(':') + 1), end: slash === '/', attributes }
      if (attributes.endsWith('/'))
        yield { tag: tag.slice(tag.indexOf(':') + 1), end: true, attributes: '' }
    }
  }
}
const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
const plain = (text: string): string =>
  text.replaceAll(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));/gi,
    (all, hex: string | undefined, number: string | undefined, name: string | undefined) => {
      if (name !== undefined) return named[name] ?? all
      const code = hex === undefined ? Number(number) : Number.parseInt(hex, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : all
    },
  )
const attribute = (attributes: string | undefined, name: string): string | undefined =>
  new RegExp(`(?:^|[\\s:])${name}="([^"]*)"`).exec(attributes ?? '')?.[1]
const cell = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll('|', '\\|')
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
/** Rows as a Markdown table; the first row is the header. */
const table = (rows: readonly (readonly string[])[]): string => {
  const width = Math.max(0, ...rows.map(({ length }) => length))
  const [head = [], ...rest] = rows.map((cells) =>
    Array.from({ length: width }, (_, index) => cells[index] ?? ''),
  )
  return width === 0 ? '' : [row(head), `|${' --- |'.repeat(width)}`, ...rest.map(row)].join('\n')
}

async function documentOf(archive: Archive): Promise<string | undefined> {
  const xml = await archive.text('word/document.xml')
  if (xml === undefined) return undefined
  const blocks: string[] = []
  let [line, mark, taking, depth] = ['', '', false, 0]
  let rows: string[][] = []
  for (const { tag, end = false, attributes, text } of tokens(xml)) {
    if (text !== undefined) line += taking ? text : ''
    else if (tag === 't') taking = !end
    else if ((tag === 'tab' || tag === 'br') && !end) line += tag === 'tab' ? '\t' : '\n'
    else if (tag === 'pStyle' && !end) mark = headingOf(attribute(attributes, 'val')) || mark
    else if (tag === 'numPr' && !end) mark ||= '- '
    else if (tag === 'tbl') {
      depth += end ? -1 : 1
      if (end && depth === 0) blocks.push(table(rows))
      if (depth === 0 || (!end && depth === 1)) rows = []
    } else if (depth > 0 && tag === 'tr' && !end) rows.push([])
    else if (depth > 0 && tag === 'tc' && end) {
      rows.at(-1)?.push(line)
      line = ''
    } else if (tag === 'p' && end) {
      if (depth > 0) line += '\n'
      else {
        if (line.trim() !== '') blocks.push(mark + line.trim())
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
/** The text inside each element with this name. */
function linesOf(xml: string, element: string): string[] {
  const lines: string[] = []
  let [line, taking] = ['', false]
  for (const { tag, end = false, text } of tokens(xml)) {
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
  const titles = [
    ...((await archive.text('xl/workbook.xml')) ?? '').matchAll(/<(?:\w+:)?sheet\s([^<>]*)>/g),
  ].map(([, attributes]) => plain(attribute(attributes, 'name') ?? ''))
  const sheets: string[] = []
  for (const [index, name] of numbered(archive, /^xl\/worksheets\/sheet(\d+)\.xml$/).entries()) {
    const text = sheetOf((await archive.text(name)) ?? '', shared)
    if (text !== '') sheets.push(`## ${titles[index] || `Sheet ${index + 1}`}\n\n${text}`)
  }
  return sheets.join('\n\n')
}
/** Maximum number of columns that are converted. */
const COLUMNS = 200
function sheetOf(xml: string, shared: readonly string[]): string {
  const rows: string[][] = []
  let [value, taking, kind, column, size] = ['', false, '', 0, 0]
  for (const { tag, end = false, attributes, text } of tokens(xml)) {
    if (text !== undefined) value += taking ? text : ''
    else if (tag === 'v' || tag === 't') taking = !end
    else if (tag === 'row' && !end) rows.push([])
    else if (tag === 'c' && !end)
      [value, kind, column] = [
        '',
        attribute(attributes, 't') ?? '',
        columnOf(attribute(attributes, 'r')),
      ]
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
        while (cells.length < column) cells.push('')
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
