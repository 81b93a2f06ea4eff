/**
 * Attachments: files that belong to one session and can be shown to its agent. Each is an artifact
 * with an actor in the shard of the session. The bytes are in the object store under a name that
 * the service assigns. The session stores only metadata. A message refers to a file by a source of
 * type `artifact`.
 */
import { type Static, Type } from 'typebox'
import type { ConversionResult } from '../artifacts/commands.ts'
import { Artifact } from '../artifacts/schema.ts'
import type { JsonObject } from '../common.ts'
import { Block } from './turns/blocks.ts'

/**
 * The reply to an upload: the file, and the content block that refers to it. Clients insert this
 * block into messages unchanged.
 */
export const Attached = Type.Object(
  { artifact: Artifact, content_block: Block },
  { additionalProperties: false },
)
export type Attached = Static<typeof Attached>

/** Properties of a file that the gateway determines before it stores the bytes. */
export interface FileFacts {
  readonly name: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly sha256: string
  readonly as: 'image' | 'document'
  readonly page_count?: number
  /** Only for Office files: the extraction of the text. */
  readonly conversion?: NonNullable<Artifact['conversion']>
}
/**
 * A file as the session stores it. The records of the newest erased files remain, so that erasing a
 * file again is not refused.
 */
export interface SessionFile {
  readonly artifact: Artifact
  readonly as: FileFacts['as']
  readonly page_count?: number
  /**
   * `coming`: the bytes are not stored yet; `stored`: they are in the object store; `erased`: they
   * were deleted.
   */
  readonly state: 'coming' | 'stored' | 'erased'
  /** Time in Unix milliseconds at which an unfinished upload is abandoned. */
  readonly until?: number
  /**
   * Id of the caller and idempotency key. An upload with the same key and another `hash` is
   * refused.
   */
  readonly key?: string
  /** Digest of bytes, name and type hint. */
  readonly hash: string
  /**
   * The file has an artifact actor, so it is listed as an artifact and counts toward the quota.
   * Absent for files that earlier releases stored.
   */
  readonly counted?: true
}

/** Returns the name of the object that contains the bytes of a file. */
export const fileName = (project: string, artifact_id: string): string =>
  `file/${project}/${artifact_id}`

/**
 * Returns the name of the object that contains the Markdown text of an Office file.
 * @param place name of the object that contains the file itself.
 */
export const textName = (place: string): string => `${place}.md`
/**
 * Returns the names of all objects that may be stored for a file: the file itself and its Markdown
 * text.
 * @param place name of the object that contains the file itself.
 */
export const objectNames = (place: string): readonly string[] => [place, textName(place)]
/** Whether a MIME type is the type of an Office file. */
export const isOffice = (mime_type: string): boolean =>
  mime_type.startsWith('application/vnd.openxmlformats-officedocument.')

/** Returns the initial state of the conversion of an Office file; undefined for other files. */
export const conversionOf = (mime_type: string): FileFacts['conversion'] =>
  isOffice(mime_type) ? { state: 'converting' } : undefined

/** Returns the content block that refers to a file. */
export const blockOf = ({
  artifact: { id, name, mime_type, size_bytes },
  as,
  page_count,
}: SessionFile): Block => ({
  type: as,
  source: { type: 'artifact', artifact_id: id },
  media_type: mime_type,
  title: name,
  size_bytes,
  ...(as === 'document' && page_count !== undefined && { page_count }),
})
/** Returns the id of the file that a block refers to; undefined if the block refers to no file. */
export function fileOf(block: JsonObject): string | undefined {
  const { type, source } = block
  if ((type !== 'image' && type !== 'document') || typeof source !== 'object' || source === null)
    return undefined
  const { type: kind, artifact_id } = source as JsonObject
  return kind === 'artifact' && typeof artifact_id === 'string' ? artifact_id : undefined
}
/**
 * Returns the text block that replaces a file that is not shown to the model.
 * @param why the reason, with which the sentence in the block ends.
 */
export const unreadFileBlock = (
  { type, title, media_type, size_bytes }: JsonObject,
  why: string,
): JsonObject => ({
  type: 'text',
  text:
    `[${type === 'image' ? 'image' : 'file'} ${JSON.stringify(title ?? 'without a name')}` +
    (typeof media_type === 'string' ? `, ${media_type}` : '') +
    `${typeof size_bytes === 'number' ? `, ${size_bytes} bytes` : ''}: ${why}]`,
})

export type AttachmentEvent =
  /**
   * An upload is announced. This record makes it possible to find and erase the bytes of an upload
   * that is never finished.
   */
  | { readonly type: 'attachment.reserved'; readonly attachment: SessionFile }
  /** `created_at`: time at which the file became visible; absent in events of earlier releases. */
  | { readonly type: 'attachment.stored'; readonly id: string; readonly created_at?: string }
  | {
      readonly type: 'attachment.converted'
      readonly id: string
      readonly conversion: ConversionResult
    }
  /**
   * The files are erased. Each file in `counted` has an artifact actor, whose effects delete the
   * bytes. An effect of the session deletes the bytes of the other files.
   */
  | {
      readonly type: 'attachment.erased'
      readonly ids: readonly string[]
      readonly counted?: readonly string[]
    }
