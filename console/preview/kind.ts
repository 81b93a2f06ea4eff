/** Chooses how a file is shown, by its media type and its name. The functions are pure. */

import { getOwn } from '../../protocol/lookup.ts'

/** A way of showing a file. `none`: only its description is shown. */
export type PreviewKind =
  | 'image'
  | 'audio'
  | 'video'
  | 'pdf'
  | 'html'
  | 'markdown'
  | 'json'
  | 'csv'
  | 'diff'
  | 'text'
  | 'none'

const byType: Readonly<Record<string, PreviewKind>> = {
  'application/pdf': 'pdf',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'text/markdown': 'markdown',
  'application/json': 'json',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
  'text/x-diff': 'diff',
  'text/x-patch': 'diff',
  'application/x-ndjson': 'text',
  'application/xml': 'text',
  'application/yaml': 'text',
  'application/javascript': 'text',
  'application/toml': 'text',
  'application/x-sh': 'text',
}
const byEnding: Readonly<Record<string, PreviewKind>> = Object.fromEntries(
  (
    [
      ['image', 'png jpg jpeg gif webp svg avif bmp ico'],
      ['audio', 'mp3 wav ogg m4a flac'],
      ['video', 'mp4 webm mov'],
      ['pdf', 'pdf'],
      ['html', 'html htm'],
      ['markdown', 'md markdown'],
      ['json', 'json'],
      ['csv', 'csv tsv'],
      ['diff', 'diff patch'],
      [
        'text',
        'txt log jsonl ndjson xml yaml yml toml ini env sh py js mjs ts tsx jsx css sql go rs rb c ' +
          'h cpp java php lock gitignore dockerfile makefile',
      ],
    ] as const
  ).flatMap(([kind, endings]) => endings.split(' ').map((ending) => [ending, kind])),
)
const general: ReadonlySet<string> = new Set([
  '',
  'text/plain',
  'application/octet-stream',
  'binary/octet-stream',
])

/**
 * Returns how a file is shown, by its media type, or by its name if the type is generic or not
 * known.
 * @param mime media type without parameters; '' if unknown.
 */
export function previewKind(mime: string, name: string): PreviewKind {
  const type = mime.toLowerCase()
  const known = getOwn(byType, type)
  if (known) return known
  if (!general.has(type)) {
    const [family = ''] = type.split('/')
    if (family === 'image' || family === 'audio' || family === 'video') return family
    if (type.endsWith('+json')) return 'json'
  }
  const file = name.toLowerCase().split('/').at(-1) ?? ''
  const found = getOwn(byEnding, file.split('.').at(-1) ?? '')
  return found ?? (type.startsWith('text/') || type.endsWith('+xml') ? 'text' : 'none')
}

/** Media types of images, for the file name extensions that differ from the subtype. */
const imageTypes: Readonly<Record<string, string>> = {
  svg: 'image/svg+xml',
  jpg: 'image/jpeg',
  ico: 'image/x-icon',
}
/** Returns the media type of the blob from which the browser shows a file. */
export function mediaTypeOf(kind: PreviewKind, mime: string, name: string): string {
  if (mime.startsWith(`${kind}/`)) return mime
  if (kind === 'pdf') return 'application/pdf'
  if (kind === 'html') return 'text/html; charset=utf-8'
  const ending = name.toLowerCase().split('.').at(-1) ?? ''
  return getOwn(imageTypes, ending) ?? `${kind}/${ending}`
}

/** Returns whether bytes are probably text: valid UTF-8 without zero bytes in the first 4,096. */
export function looksLikeText(bytes: Uint8Array): boolean {
  const start = bytes.subarray(0, 4096)
  if (start.includes(0)) return false
  try {
    // The last character may be cut off, which the option `stream` tolerates.
    new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true })
    return true
  } catch {
    return false
  }
}
