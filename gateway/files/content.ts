/**
 * Decides how the bytes of a stored file are sent: conditional requests (RFC 9110, section 13),
 * single ranges (RFC 9110, section 14), and which files a browser may display. The caller reads and
 * sends the bytes.
 */
import { tagsIn } from '../../protocol/conditional.ts'
import { errorBody, refuse } from '../../protocol/errors.ts'
import type { Answer } from '../http/respond.ts'

/** The properties of a file that determine the response. `sha256` is lower-case hex. */
interface ServedFile {
  readonly name: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly sha256?: string
}
/** The names of the request headers that determine the response, in lower case. */
export const CONTENT_HEADERS = ['if-match', 'if-none-match', 'if-range', 'range'] as const
type ContentHeader = (typeof CONTENT_HEADERS)[number]

/** The response to a request for a file. */
export interface ContentPlan {
  /** 200: all bytes; 206: a range of them; 304, 412 and 416: no bytes. */
  readonly status: 200 | 206 | 304 | 412 | 416
  readonly headers: Readonly<Record<string, string>>
  /** The value of `Content-Type`. */
  readonly type: string
  /** Position of the first byte to send. */
  readonly start: number
  /** Position after the last byte to send. */
  readonly end: number
}

/**
 * MIME types that a browser may display, because they cannot run scripts in the service's origin.
 * Files of all other types are downloads.
 */
const inlineTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'text/plain',
  'text/markdown',
  'text/csv',
  'application/json',
  'application/pdf',
])

/** The parts of a request that determine the response. */
export interface ContentRequest {
  readonly method: string
  /** Returns the value of a request header, or undefined. */
  further(name: ContentHeader): string | undefined
}
/**
 * Plans the response to a GET or HEAD request.
 * @param download whether a browser must save the file instead of displaying it.
 */
export function planContent(
  file: ServedFile,
  request: ContentRequest,
  download = false,
): ContentPlan {
  const header = (name: ContentHeader) => request.further(name)
  const { mime_type, size_bytes: size, sha256 } = file
  const inline = inlineTypes.has(mime_type)
  const etag = sha256 === undefined ? undefined : `"sha256-${sha256}"`
  const type = !inline
    ? 'application/octet-stream'
    : mime_type.startsWith('text/')
      ? `${mime_type}; charset=utf-8`
      : mime_type
  const disposition = inline && !download ? 'inline' : 'attachment'
  const headers = {
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-transform',
    'Content-Disposition': `${disposition}; filename*=utf-8''${fileNameValue(file.name)}`,
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    ...(etag !== undefined && { ETag: etag }),
    ...(sha256 !== undefined && {
      Digest: `sha-256=${Buffer.from(sha256, 'hex').toString('base64')}`,
    }),
  }
  const whole: ContentPlan = { status: 200, headers, type, start: 0, end: size }
  if (!isExpected(header('if-match'), etag)) return { ...whole, status: 412, end: 0 }
  if (etag !== undefined && matchesTag(header('if-none-match'), etag))
    return { ...whole, status: 304, end: 0 }
  const condition = header('if-range')
  // RFC 9110, section 14.2: ranges are defined for GET only.
  const isRanged = request.method === 'GET' && (condition === undefined || condition === etag)
  const range = isRanged ? header('range') : undefined
  const wanted = rangeOf(range, size)
  if (wanted === undefined) return whole
  if (wanted === 'unsatisfiable')
    return {
      ...whole,
      status: 416,
      headers: { ...headers, 'Content-Range': `bytes */${size}` },
      end: 0,
    }
  const { start, end } = wanted
  const contentRange = `bytes ${start}-${end - 1}/${size}`
  return {
    ...whole,
    status: 206,
    headers: { ...headers, 'Content-Range': contentRange },
    start,
    end,
  }
}

/**
 * Returns the response without bytes that a plan requires: the file has not changed, does not match
 * the condition, or has no such range. Returns undefined if bytes are sent.
 */
export function answerWithoutBytes(
  { status, headers }: ContentPlan,
  { size_bytes }: Pick<ServedFile, 'size_bytes'>,
): Answer | undefined {
  if (status === 304) return { status, headers }
  if (status !== 412 && status !== 416) return undefined
  const refusal =
    status === 412
      ? refuse('precondition_failed', undefined, 'The file does not match If-Match.')
      : refuse('range_not_satisfiable', { size_bytes })
  return { status, headers, body: errorBody(refusal) }
}

/**
 * Characters that no file name needs, and that can disguise the extension, as in `\u202Egnp.exe`.
 */
const HIDING = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
/**
 * Returns the last segment of a path as `value-chars` of an extended header parameter (RFC 8187,
 * section 3.2.1). Slashes and backslashes separate segments. Lone surrogates, which have no UTF-8
 * form, are replaced.
 */
const fileNameValue = (path: string): string =>
  encodeURIComponent(
    Buffer.from(path.split(/[/\\]/).at(-1) ?? '')
      .toString()
      .replaceAll(HIDING, ''),
  ).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/**
 * Returns whether the file is one that the value of `If-Match` permits, by strong comparison. A
 * value that is not valid permits none.
 */
function isExpected(value: string | undefined, etag: string | undefined): boolean {
  if (value === undefined) return true
  const tags = tagsIn(value)
  return tags === '*' || (etag !== undefined && tags?.includes(etag) === true)
}

/** Returns whether the value of `If-None-Match` contains the entity tag, by weak comparison. */
export const matchesTag = (value: string | undefined, etag: string): boolean =>
  value !== undefined &&
  (value.trim() === '*' || value.split(',').some((one) => one.trim().replace(/^W\//, '') === etag))

/**
 * Returns the single range that the value of `Range` requests, limited to the file, or
 * `unsatisfiable` if the file has no byte of it. Returns undefined if the whole file must be sent,
 * for example because the value is absent or malformed, or contains several ranges.
 */
function rangeOf(
  value: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | 'unsatisfiable' | undefined {
  const found = /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i.exec(value ?? '')
  if (!found) return undefined
  const [, first, last, suffix] = found
  if (suffix !== undefined) {
    if (Number(suffix) === 0) return 'unsatisfiable'
    return size === 0 ? undefined : { start: Math.max(0, size - Number(suffix)), end: size }
  }
  // Positions beyond the end may be inexact or infinite as numbers, which changes no result.
  const start = Number(first)
  const end = last === '' ? size : Number(last) + 1
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(end, size) }
}
