/**
 * Attachments: files that belong to one session and can be shown to its agent. The bytes lie in the object store under a name
 * that only the service makes; the session knows what they are. A message refers to one by a source of type `artifact`.
 */
import { Type, type Static } from 'typebox'
import { JsonObject, Timestamp } from '../common.ts'
import { Block } from './turns/blocks.ts'

/** A file as clients see it. */
export const Artifact = Type.Object(
  {
    id: Type.String(),
    visibility: Type.Enum(['private', 'shared']),
    name: Type.String(),
    mime_type: Type.String({ description: 'Found out from the bytes' }),
    size_bytes: Type.Integer({ minimum: 0 }),
    run_id: Type.Optional(Type.String()),
    step_id: Type.Optional(Type.String()),
    sha256: Type.Optional(Type.String({ description: 'Hex' })),
    created_by: Type.Optional(Type.String()),
    updated_by: Type.Optional(Type.String()),
    metadata: Type.Optional(JsonObject),
    conversion: Type.Optional(
      Type.Object(
        {
          state: Type.Enum(['converting', 'ready', 'failed']),
          error: Type.Optional(Type.String()),
        },
        { additionalProperties: false },
      ),
    ),
    created_at: Timestamp,
    updated_at: Type.Optional(Timestamp),
  },
  { additionalProperties: false },
)
export type Artifact = Static<typeof Artifact>
/** The answer of an upload: the file, and the block that refers to it, to be sent as it is. */
export const Attached = Type.Object(
  { artifact: Artifact, content_block: Block },
  { additionalProperties: false },
)
export type Attached = Static<typeof Attached>

/** What the edge finds out about a file before its bytes are stored. */
export interface FileFacts {
  readonly name: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly sha256: string
  readonly as: 'image' | 'document'
  readonly page_count?: number
  /** Of an Office file: whether its text could be read. */
  readonly conversion?: NonNullable<Artifact['conversion']>
}
/** A file as its session remembers it. One that was erased is remembered as such, so that erasing it again is no fault. */
export interface KeptAttachment {
  readonly artifact: Artifact
  readonly as: FileFacts['as']
  readonly page_count?: number
  /** `coming`: its bytes are on their way; `stored`: they are there; `erased`: they were. */
  readonly state: 'coming' | 'stored' | 'erased'
  /** Unix milliseconds at which bytes that have not come are given up. */
  readonly until?: number
  /** The caller and its idempotency key, and what stands for the upload: a repeat with other bytes or another name is another upload. */
  readonly key?: string
  readonly hash: string
}

/** Where the bytes of a file lie in the object store. */
export const fileName = (project: string, artifact_id: string): string =>
  `file/${project}/${artifact_id}`

/** Where the text of an Office file lies, as Markdown. */
export const textName = (place: string): string => `${place}.md`
/** Whether files of a type are Office files. */
export const isOffice = (mime_type: string): boolean =>
  mime_type.startsWith('application/vnd.openxmlformats-officedocument.')

/** The block that refers to a file. */
export const blockOf = ({
  artifact: { id, name, mime_type, size_bytes },
  as,
  page_count,
}: KeptAttachment): Block => ({
  type: as,
  source: { type: 'artifact', artifact_id: id },
  media_type: mime_type,
  title: name,
  size_bytes,
  ...(as === 'document' && page_count !== undefined && { page_count }),
})
/** Id of the file that a block refers to; undefined: it refers to none. */
export function fileOf(block: JsonObject): string | undefined {
  const { type, source } = block
  if ((type !== 'image' && type !== 'document') || typeof source !== 'object' || source === null)
    return undefined
  const { type: kind, artifact_id } = source as JsonObject
  return kind === 'artifact' && typeof artifact_id === 'string' ? artifact_id : undefined
}
/** What stands for a file that a model is not shown. @param why the end of the sentence. */
export const unread = (
  { type, title, media_type, size_bytes }: JsonObject,
  why: string,
): JsonObject => ({
  type: 'text',
  text: `[${type === 'image' ? 'image' : 'file'} ${JSON.stringify(title ?? 'without a name')}${typeof media_type === 'string' ? `, ${media_type}` : ''}${typeof size_bytes === 'number' ? `, ${size_bytes} bytes` : ''}: ${why}]`,
})

export type AttachmentEvent =
  /** Bytes are announced: whatever of them comes is found again by this. */
  | { readonly type: 'attachment.reserved'; readonly attachment: KeptAttachment }
  | { readonly type: 'attachment.stored'; readonly id: string }
  /** The bytes of these are taken away. */
  | { readonly type: 'attachment.erased'; readonly ids: readonly string[] }
