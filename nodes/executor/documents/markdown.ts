/**
 * Builds the Markdown of Office files. Text is not escaped, except in cells of tables, because its
 * readers are models.
 */

/** Maximum length in characters of the Markdown of one file. */
export const MAX_MARKDOWN = 262_144
/** Maximum number of rows, columns and characters of a table. */
export const TABLE = { rows: 1000, columns: 200, characters: 200_000 } as const

const count = (value: number, what: string): string =>
  `${value.toLocaleString('en-US')} ${what}${value === 1 ? '' : 's'}`

/** The sentence at the end of a text that was cut. */
const CUT = '[The file is too long: the rest of its text was omitted.]'
/**
 * Cuts a text at `MAX_MARKDOWN` characters. Appends a sentence if anything was left out.
 * @param whole false if something was already left out of the text.
 */
export const cutMarkdown = (text: string, whole = true): string =>
  (whole && text.length <= MAX_MARKDOWN) || text.endsWith(CUT)
    ? text
    : `${text.slice(0, MAX_MARKDOWN)}\n\n${CUT}`

const cell = (text: string): string =>
  text
    .slice(0, MAX_MARKDOWN)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll('|', '\\|')
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`

/** The first rows of a table, and the size of the original table. */
export interface Rows {
  readonly rows: readonly (readonly string[])[]
  /** The number of rows of the original table. */
  readonly height: number
  /** The number of columns of the original table. */
  readonly width: number
}

/**
 * Returns a Markdown table whose header is the first row. The table ends after the row that exceeds
 * `TABLE.characters`, or at the maximum number of rows. If rows or columns are left out, a sentence
 * after the table states this.
 * @param what the word for the table in that sentence.
 */
export function tableOf({ rows, height, width }: Rows, what = 'table'): string {
  const columns = Math.min(TABLE.columns, width)
  if (columns === 0) return ''
  const lines: string[] = []
  let [size, shown] = [0, 0]
  for (const cells of rows) {
    if (shown === TABLE.rows || size > TABLE.characters) break
    const line = row(Array.from({ length: columns }, (_, index) => cells[index] ?? ''))
    lines.push(line)
    if (shown === 0) lines.push(`|${' --- |'.repeat(columns)}`)
    size += line.length
    shown++
  }
  const table = lines.join('\n')
  return shown === height && columns === width
    ? table
    : `${table}\n\n[The ${what} has ${count(height, 'row')} and ${count(width, 'column')}. ` +
        `Only ${count(shown, 'row')} and ${count(columns, 'column')} are shown.]`
}

/** Returns the rows of a complete table, with its size. */
export const allRows = (rows: readonly (readonly string[])[]): Rows => ({
  rows,
  height: rows.length,
  width: rows.reduce((most, { length }) => Math.max(most, length), 0),
})
