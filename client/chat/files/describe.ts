/**
 * Describes the files of messages as data: where their bytes are, and how they are shown. The
 * functions are pure.
 */
import type { ArtifactReference } from '../../../protocol/artifacts/reference.ts'
import type { Block } from '../../../protocol/sessions/turns/blocks.ts'
import { linkTarget } from '../markdown.ts'

/** Image types that the service stores and browsers can decode. */
const imageTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
])
/**
 * Location of a block's bytes: in the service, in the block itself, at an external URL, or
 * unavailable.
 */
type FileSource =
  | { readonly kind: 'artifact'; readonly id: string }
  | { readonly kind: 'inline'; readonly url: string }
  | { readonly kind: 'link'; readonly url: string }
  | { readonly kind: 'none' }
/** The fields of an image or document that the page shows. */
export interface FileDescription {
  readonly title: string
  /** The formatted size, by default in the browser's locale; empty if unknown. */
  readonly size: string
  readonly source: FileSource
  readonly isImage: boolean
}

/**
 * Describes a block. The source is `none` for inline documents, for inline images that browsers
 * cannot decode, and for URLs that `linkTarget` rejects.
 */
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

/** Returns the file name and the button label of an artifact that a tool result references. */
export function describeReference(
  { id, name, size }: ArtifactReference,
  locale?: string,
): { readonly title: string; readonly words: string } {
  // The name of an artifact may contain folders.
  const title = name?.split('/').at(-1) || id
  return { title, words: `${name || id} (${sizeText(size, locale)})` }
}

/** Formats a number of bytes in a suitable unit, with at most one decimal place. */
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
