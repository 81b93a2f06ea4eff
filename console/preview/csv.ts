/** Parses and formats CSV (RFC 4180) in the browser. The functions are pure. */

/** A record, and the line on which it begins. The first line is 1. */
export interface CsvRecord {
  readonly line: number
  /** The fields in order. A field that is empty and has no quotation marks is undefined. */
  readonly fields: readonly (string | undefined)[]
}

/** Returns the separator that occurs most often in the first line: comma, semicolon or tab. */
function separatorOf(text: string): string {
  const line = /^[^\r\n]*/.exec(text)?.[0].replaceAll(/"[^"]*"/g, '') ?? ''
  const count = (sign: string): number => line.split(sign).length
  return [';', '\t'].reduce((best, sign) => (count(sign) > count(best) ? sign : best), ',')
}

/**
 * Parses the records of a text. Empty lines are skipped. An unterminated quoted field extends to
 * the end of the text.
 * @param most maximum number of records.
 */
export function readCsv(
  source: string,
  separator = separatorOf(source),
  most = Number.POSITIVE_INFINITY,
): CsvRecord[] {
  const text = source.replace(/^\uFEFF/, '')
  const records: CsvRecord[] = []
  let [at, line] = [0, 1]
  while (at < text.length && records.length < most) {
    const fields: (string | undefined)[] = []
    const begin = line
    for (;;) {
      if (text[at] === '"') {
        let field = ''
        at++
        for (;;) {
          const end = text.indexOf('"', at)
          const part = text.slice(at, end < 0 ? text.length : end)
          for (let cut = part.indexOf('\n'); cut >= 0; cut = part.indexOf('\n', cut + 1)) line++
          field += part
          at = end < 0 ? text.length : end + 1
          if (text[at] !== '"' || end < 0) break
          field += '"'
          at++
        }
        // Text after the closing quotation mark is part of the field.
        const end = endOf(text, at, separator)
        fields.push(field + text.slice(at, end))
        at = end
      } else {
        const end = endOf(text, at, separator)
        const field = text.slice(at, end)
        fields.push(field === '' ? undefined : field)
        at = end
      }
      if (text[at] !== separator) break
      at++
    }
    if (text[at] === '\r' && text[at + 1] === '\n') at++
    at++
    line++
    if (fields.length > 1 || fields[0] !== undefined) records.push({ line: begin, fields })
  }
  return records
}
/**
 * Returns the end offset of an unquoted field: the next separator, line break, or end of the text.
 */
function endOf(text: string, from: number, separator: string): number {
  let at = from
  while (at < text.length && text[at] !== separator && text[at] !== '\n' && text[at] !== '\r') at++
  return at
}

const NEEDS_QUOTES = /^$|[",\r\n]|^\s|\s$/
/** Formats a record as a line of CSV. An empty string becomes `""`, undefined an empty field. */
export const csvLine = (fields: readonly (string | undefined)[]): string =>
  fields
    .map((field) =>
      field === undefined
        ? ''
        : NEEDS_QUOTES.test(field)
          ? `"${field.replaceAll('"', '""')}"`
          : field,
    )
    .join(',')
