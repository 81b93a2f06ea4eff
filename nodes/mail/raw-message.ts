/**
 * Raw messages before they are parsed and authenticated. The libraries that do this need memory for
 * each line, and time that grows with the square of the length of some header fields.
 */

/** Maximum length of the header block in bytes. Those of ordinary messages have up to 30 KiB. */
const MAX_HEADER_BYTES = 131_072
/** Maximum number of lines of the header block. */
const MAX_HEADER_LINES = 2000
/** Maximum number of lines of a message, without one for each `BYTES_PER_LINE` bytes. */
const MAX_LINES = 100_000
/** Lines of base64 have 78 bytes. */
const BYTES_PER_LINE = 16
/** Maximum number of lines without text. */
const MAX_BLANK_LINES = 100_000

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20

/** A raw message within the limits. `header` is the length of its header block in bytes. */
interface Measured {
  readonly header: number
}
/**
 * Measures a message. `error` completes a sentence about a message that exceeds a limit.
 */
export function measureMessage(raw: Buffer): Measured | { readonly error: string } {
  const max = MAX_LINES + raw.length / BYTES_PER_LINE
  let [lines, blank, header] = [0, 0, -1]
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = raw.indexOf(LF, start)
    const next = end < 0 ? raw.length : end
    if (header < 0 && next >= MAX_HEADER_BYTES)
      return { error: `has a header of more than ${MAX_HEADER_BYTES} bytes` }
    if (header < 0 && lines > MAX_HEADER_LINES)
      return { error: `has a header of more than ${MAX_HEADER_LINES} lines` }
    if (header < 0 && lines > 0 && isEmpty(raw, start, next))
      header = Math.min(next + 1, raw.length)
    if (isBlank(raw, start, next)) blank++
    if (++lines > max) return { error: 'has too many lines' }
    if (blank > MAX_BLANK_LINES) return { error: 'has too many empty lines' }
  }
  return { header: header < 0 ? raw.length : header }
}
const isEmpty = (raw: Buffer, start: number, end: number): boolean =>
  end === start || (end === start + 1 && raw[start] === CR)
function isBlank(raw: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = raw[at]
    if (byte !== SPACE && byte !== TAB && byte !== CR) return false
  }
  return true
}

/**
 * Returns the message without some fields of its header. The rules for fields are those of
 * `mailauth`, which receives the result.
 * @param header length of the header block.
 * @param isDropped whether a field is left out. It is called once for each field, in order.
 */
export function withoutFields(
  raw: Buffer,
  header: number,
  isDropped: (name: string, length: number) => boolean,
): Buffer {
  const fields: string[] = []
  for (const line of raw.toString('latin1', 0, header).split(/(?<=\n)/)) {
    const isContinued = fields.length > 0 && /^\s/.test(line) && !/^\r?\n$/.test(line)
    if (isContinued) fields.push((fields.pop() ?? '') + line)
    else fields.push(line)
  }
  const kept = fields.filter(
    (field) => !isDropped((/^[^:]+/.exec(field)?.[0] ?? '').trim().toLowerCase(), field.length),
  )
  return kept.length === fields.length
    ? raw
    : Buffer.concat([Buffer.from(kept.join(''), 'latin1'), raw.subarray(header)])
}

/** Returns the message with CR LF at the end of every line. */
export function withLineEnds(raw: Buffer): Buffer {
  const parts: Buffer[] = []
  let start = 0
  for (let end = raw.indexOf(LF); end >= 0; end = raw.indexOf(LF, end + 1)) {
    if (end > 0 && raw[end - 1] === CR) continue
    parts.push(raw.subarray(start, end), LINE_END)
    start = end + 1
  }
  return start === 0 ? raw : Buffer.concat([...parts, raw.subarray(start)])
}
const LINE_END = Buffer.from('\r\n')
