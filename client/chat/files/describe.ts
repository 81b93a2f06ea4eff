/** Files of messages as data: what a block refers to, and how it is described. Pure. */
import type { Block } from '../../../protocol/sessions/turns/blocks.ts'
import { linkTarget } from '../markdown.ts'

/** Types of images that browsers decode and the service stores. */
const imageTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
])
/** Where the bytes of a block are: with the service, in the block itself, at another address, or out of reach. */
type FileSource =
  | { readonly kind: 'artifact'; readonly id: string }
  | { readonly kind: 'inline'; readonly url: string }
  | { readonly kind: 'link'; readonly url: string }
  | { readonly kind: 'none' }
/** What the page shows of an image or document. */
export interface FileDescription {
  readonly title: string
  /** The size for people, in the locale of the browser unless another is given; empty when it is not known. */
  readonly size: string
  readonly source: FileSource
  readonly isImage: boolean
}

/** Describes a block. Inline documents, and inline images of types that browsers do not decode, have no source. */
export function describeFile(
  block: Extract<Block, { readonly type: 'image' | 'document' }>,
  locale?: string,
): FileDescription {
  const { type, title, media_type, size_bytes, source = {} } = block
  const { artifact_id, url, data } = source
  const mediaType = String(source['media_type'] ?? media_type)
  const isImage = type === 'image' && imageTypes.has(mediaType)
  const target = typeof url === 'string' ? linkTarget(url) : undefined
  return {
    title: title || (type === 'image' ? 'Image' : 'Document'),
    size: size_bytes === undefined ? '' : sizeText(size_bytes, locale),
    isImage,
    source:
      source['type'] === 'artifact' && typeof artifact_id === 'string'
        ? { kind: 'artifact', id: artifact_id }
        : source['type'] === 'base64' && isImage && typeof data === 'string'
          ? { kind: 'inline', url: `data:${mediaType};base64,${data}` }
          : target !== undefined
            ? { kind: 'link', url: target }
            : { kind: 'none' },
  }
}

/** A number of bytes in the unit that suits it, with at most one digit after the point. */
export function sizeText(bytes: number, locale?: string): string {
  const [unit, value] =
    bytes < 1_000
      ? ['byte', bytes]
      : bytes < 1_000_000
        ? ['kilobyte', bytes / 1_000]
        : ['megabyte', bytes / 1_000_000]
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: String(unit),
    maximumFractionDigits: 1,
  }).format(Number(value))
}
