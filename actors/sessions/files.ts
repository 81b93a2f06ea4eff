/**
 * The files of a session: how events change them, how content that refers to them is completed, and
 * which of them can be read. The decisions are in attachments.ts.
 */
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { type FieldError, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import {
  type AttachmentEvent,
  blockOf,
  fileName,
  fileOf,
  objectNames,
  type SessionFile,
  unreadFileBlock,
} from '../../protocol/sessions/attachments.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../protocol/sessions/schema.ts'
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import type { Effect } from '../actor.ts'
import { isLive, type SessionState } from './state.ts'

type Files = NonNullable<SessionState['attachments']>
/** Returns the files of a session by id. */
export const filesOf = ({ attachments = {} }: SessionState): Files => attachments
/**
 * Returns the time at which the next unfinished upload is abandoned, in Unix milliseconds. Returns
 * Infinity if no upload is unfinished.
 */
export const nextUploadDeadline = (state: SessionState): number =>
  Math.min(Infinity, ...Object.values(filesOf(state)).map(({ until }) => until ?? Infinity))

/**
 * How events change the files. An abandoned upload leaves no record. Only the newest
 * `limits.file.erased` erased files are remembered.
 */
export const evolveAttachments = {
  'attachment.reserved': (
    state: SessionState,
    { attachment }: Extract<AttachmentEvent, { type: 'attachment.reserved' }>,
  ): SessionState => ({
    ...state,
    attachments: { ...filesOf(state), [attachment.artifact.id]: attachment },
  }),
  'attachment.stored': (
    state: SessionState,
    { id, created_at }: Extract<AttachmentEvent, { type: 'attachment.stored' }>,
  ): SessionState =>
    changed(state, ({ until: _, ...file }) =>
      file.artifact.id === id
        ? {
            ...file,
            artifact: { ...file.artifact, ...(created_at !== undefined && { created_at }) },
            state: 'stored',
          }
        : undefined,
    ),
  'attachment.converted': (
    state: SessionState,
    { id, conversion }: Extract<AttachmentEvent, { type: 'attachment.converted' }>,
  ): SessionState =>
    changed(state, (file) =>
      file.artifact.id === id ? { ...file, artifact: { ...file.artifact, conversion } } : undefined,
    ),
  'attachment.erased': (
    state: SessionState,
    { ids }: Extract<AttachmentEvent, { type: 'attachment.erased' }>,
  ): SessionState => {
    const after = changed(state, ({ until: _, ...file }) =>
      ids.includes(file.artifact.id) ? { ...file, state: 'erased' } : undefined,
    )
    const files = Object.entries(filesOf(after)).filter(
      ([id]) => filesOf(state)[id]?.state !== 'coming' || !ids.includes(id),
    )
    const old = files
      .filter(([, file]) => file.state === 'erased')
      .slice(0, -limits.file.erased)
      .map(([id]) => id)
    return { ...after, attachments: Object.fromEntries(files.filter(([id]) => !old.includes(id))) }
  },
}
const changed = (
  state: SessionState,
  change: (file: SessionFile) => SessionFile | undefined,
): SessionState => ({
  ...state,
  attachments: Object.fromEntries(
    Object.entries(filesOf(state)).map(([id, file]) => [id, change(file) ?? file]),
  ),
})

/**
 * The effect of erasing files that have no artifact actor: their objects are deleted from the
 * object store.
 */
export const reactAttachments = {
  'attachment.erased': (
    { ids, counted = [] }: Extract<AttachmentEvent, { type: 'attachment.erased' }>,
    { project }: { readonly project: string },
  ): readonly Effect[] => {
    const own = ids.filter((id) => !counted.includes(id))
    return own.length > 0
      ? [{ erase: own.flatMap((id) => objectNames(fileName(project, id))) }]
      : []
  },
}

/**
 * Adds the metadata of files to the blocks that refer to them, or refuses references to missing or
 * unsuitable files.
 * @param path path of the content in the request, for error messages.
 */
export function bindFiles(
  state: SessionState,
  content: readonly JsonObject[],
  path: string,
): readonly JsonObject[] | Refusal {
  const faults: FieldError[] = []
  const blocks = content.map((block, index) => {
    const id = fileOf(block)
    if (id === undefined) return block
    const file = getOwn(filesOf(state), id)
    const fault = (message: string) => {
      faults.push({ field: `${path}[${index}].source.artifact_id`, message, actual: id })
    }
    if (file?.state !== 'stored') fault('is not an attachment of this session')
    else if (file.as !== block['type']) fault(`must be in a block of type ${file.as}`)
    else
      return {
        ...blockOf(file),
        ...block,
        media_type: file.artifact.mime_type,
        size_bytes: file.artifact.size_bytes,
        ...(file.page_count !== undefined && { page_count: file.page_count }),
      }
    return block
  })
  return faults.length > 0 ? refuseFields(...faults) : blocks
}
/** Returns the rows as the model receives them: a note replaces each file that no longer exists. */
export const withFiles = (
  state: SessionState,
  rows: readonly TranscriptMessage[],
): readonly TranscriptMessage[] =>
  rows.map((row) => {
    const gone = (block: Block): boolean => {
      const id = fileOf(block)
      return id !== undefined && getOwn(filesOf(state), id)?.state !== 'stored'
    }
    return row.content.some(gone)
      ? {
          ...row,
          content: row.content.map((block) =>
            gone(block) ? (unreadFileBlock(block, 'it was deleted') as Block) : block,
          ),
        }
      : row
  })

/** Returns the stored files, oldest first, or null if the session is not live. */
export const listFiles = (
  state: SessionState,
  _: unknown,
  at: number,
): { readonly items: readonly Artifact[] } | null => {
  if (!isLive(state, at)) return null
  return {
    items: Object.values(filesOf(state)).flatMap((file) =>
      file.state === 'stored' ? [file.artifact] : [],
    ),
  }
}
/**
 * Returns the stored file with the given id, or null if the session has no such file or is not
 * live.
 */
export const fileAt = (
  state: SessionState,
  { artifact_id }: { readonly artifact_id: string },
  at: number,
): Artifact | null => {
  const file = isLive(state, at) ? getOwn(filesOf(state), artifact_id) : undefined
  return file?.state === 'stored' ? file.artifact : null
}
