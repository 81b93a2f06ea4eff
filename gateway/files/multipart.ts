/**
 * Parses forms with a file (RFC 7578): splits a complete body into its parts. The caller interprets
 * the parts. Nested forms and transfer encodings, which the RFC deprecates, are not supported.
 * `streaming/form-parser.ts` accepts the same forms while their body arrives.
 * `@fastify/busboy` 3.2 is not used: it silently drops parts without a name and truncates headers
 * at its limit, so a malformed form would be accepted in part.
 */

/** The headers of a part. `type` is a media type without parameters, in lower case. */
export interface PartHead {
  readonly name: string
  readonly filename?: string
  readonly type?: string
}
/** A complete part of a form, with its content. */
export interface Part extends PartHead {
  readonly bytes: Buffer
}
/** Maximum number of parts, and maximum size of the headers of one part in bytes. */
export const MULTIPART_LIMITS = { parts: 20, head: 4096 } as const

/**
 * Returns the boundary in a Content-Type header, or undefined when the header describes no form.
 */
export function boundaryOf(type: string | undefined): string | undefined {
  const found =
    /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(
      type ?? '',
    )
  return found?.[1] ?? found?.[2]
}

/**
 * Returns the parts of a form in their order, or a text that describes the error, such as `is
 * truncated`.
 */
export function partsOf(body: Buffer, boundary: string): readonly Part[] | string {
  const line = Buffer.from(`--${boundary}`)
  const next = Buffer.from(`\r\n--${boundary}`)
  // The preamble before the first boundary is ignored.
  let at = body.subarray(0, line.length).equals(line) ? line.length : after(body, next)
  if (at < 0) return 'has no part'
  const parts: Part[] = []
  for (;;) {
    if (body.toString('latin1', at, at + 2) === '--') return parts
    const begin = body.indexOf('\r\n', at)
    if (begin < 0 || body.toString('latin1', at, begin).trim() !== '') return 'is truncated'
    const end = body.indexOf('\r\n\r\n', begin)
    // An empty line separates headers from content. A part without headers has no name.
    if (end < 0 || end - begin > MULTIPART_LIMITS.head) return 'has a part without a name'
    const close = body.indexOf(next, end + 2)
    if (close < 0) return 'is truncated'
    const head = headOf(body.toString('utf8', begin + 2, end))
    if (!head) return 'has a part without a name'
    parts.push({ ...head, bytes: body.subarray(end + 4, Math.max(close, end + 4)) })
    if (parts.length > MULTIPART_LIMITS.parts)
      return `has more than ${MULTIPART_LIMITS.parts} parts`
    at = close + next.length
  }
}
const after = (body: Buffer, mark: Buffer): number => {
  const found = body.indexOf(mark)
  return found < 0 ? -1 : found + mark.length
}

/** Parses the header lines of a part. Returns undefined for a part without a name. */
export function headOf(lines: string): PartHead | undefined {
  const headers = new Map(
    lines.split('\r\n').map((text) => {
      const colon = text.indexOf(':')
      return [text.slice(0, colon).trim().toLowerCase(), text.slice(colon + 1).trim()] as const
    }),
  )
  const disposition = headers.get('content-disposition') ?? ''
  const name = parameter(disposition, 'name')
  if (!/^form-data\b/i.test(disposition) || name === undefined) return undefined
  const filename = extended(disposition) ?? parameter(disposition, 'filename')
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  return { name, ...(filename !== undefined && { filename }), ...(type && { type }) }
}
/**
 * Returns the value of a parameter, which may be quoted; undefined if it is absent. Browsers encode
 * a quote as `%22`. Other clients escape it with a backslash.
 */
function parameter(disposition: string, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(
    disposition,
  )
  const text = found?.[1] ?? found?.[2]
  return text?.replaceAll(/\\(["\\])/g, '$1').replaceAll(/%22/g, '"')
}
/**
 * Returns the decoded file name in `filename*` (RFC 8187), or undefined when it is absent or
 * malformed.
 */
function extended(disposition: string): string | undefined {
  const text = /;\s*filename\*=utf-8'[^']*'([^\s;]+)/i.exec(disposition)?.[1]
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}
