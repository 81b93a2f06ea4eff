/**
 * Inserts the files that a conversation refers to into a model request. Text files and the text of
 * Office files are inserted as text, all other files as base64. A file is replaced by a note if the
 * model cannot read its type, if it would exceed the limit, or if it is not available.
 */

import type { Artifact } from '../../protocol/artifacts/schema.ts'
import type { JsonObject } from '../../protocol/common.ts'
import {
  fileName,
  fileOf,
  isOffice,
  textName,
  unreadFileBlock,
} from '../../protocol/sessions/attachments.ts'
import type { ModelMessage } from '../../protocol/sessions/turns/request.ts'
import type { Files } from '../ports.ts'

/** Determines which files of a conversation are inserted. */
interface Showing {
  /**
   * Maximum total size of the inserted files in bytes, as they are encoded in JSON. The latest
   * files take precedence.
   */
  readonly most: number
  /** Returns whether the model can read files of the given type. */
  reads(mime_type: string): boolean
  /**
   * Returns the state of the conversion of an Office file without text, possibly only after the
   * conversion has ended.
   */
  conversion?(artifact_id: string): Promise<Artifact['conversion']>
}
/** Returns whether any message refers to a file. */
export const refersToFiles = (messages: readonly ModelMessage[]): boolean =>
  messages.some(({ content }) => content.some((block) => fileOf(block) !== undefined))

/** Whether a block contains the address or the base64 data of a file that is not text. */
function isInlineFile({ type, source, media_type }: JsonObject): boolean {
  if ((type !== 'image' && type !== 'document') || typeof source !== 'object' || source === null)
    return false
  const from = source as JsonObject
  return (
    from['type'] === 'url' ||
    (from['type'] === 'base64' && !String(from['media_type'] ?? media_type).startsWith('text/'))
  )
}
/** Returns whether any message contains a file that `withoutInlineFiles` replaces. */
export const hasInlineFiles = (messages: readonly ModelMessage[]): boolean =>
  messages.some(({ content }) => content.some(isInlineFile))
/**
 * Returns the messages with a note in place of each address of a file, and of each file that is not
 * text.
 */
export const withoutInlineFiles = (messages: readonly ModelMessage[]): readonly ModelMessage[] =>
  messages.map(({ role, content }) => ({
    role,
    content: content.map((block) => {
      if (!isInlineFile(block)) return block
      const { media_type } = block['source'] as JsonObject
      return unreadFileBlock(
        { ...block, ...(media_type !== undefined && { media_type }) },
        'the model did not accept this file',
      )
    }),
  }))

/**
 * Returns the messages with their files inserted. Rejects when the store of files is unreachable.
 */
export async function withFileBytes(
  files: Pick<Files, 'get'> | undefined,
  project: string,
  messages: readonly ModelMessage[],
  showing: Showing,
): Promise<readonly ModelMessage[]> {
  let left = showing.most
  const shown: ModelMessage[] = []
  for (const { role, content } of [...messages].reverse()) {
    const blocks: JsonObject[] = []
    for (const block of [...content].reverse()) {
      const id = fileOf(block)
      const [next, size] =
        id === undefined
          ? [block, 0]
          : await show(files, fileName(project, id), id, block, left, showing)
      left -= size
      blocks.push(next)
    }
    shown.push({ role, content: blocks.reverse() })
  }
  return shown.reverse()
}

/**
 * Returns the text of an Office file as bytes, or a string with the reason why there is no text.
 */
async function textOf(
  files: Pick<Files, 'get'> | undefined,
  name: string,
  conversion: () => ReturnType<NonNullable<Showing['conversion']>> | undefined,
): Promise<Uint8Array | string> {
  const text = await files?.get(textName(name))
  if (text) return text
  const { state, error = '' } = (await conversion()) ?? {}
  if (state === 'converting') return 'its text is still being extracted'
  if (state === 'failed') return `its text could not be extracted. ${error}`.trim()
  return (await files?.get(textName(name))) ?? 'its text could not be read'
}

const CROWDED = 'omitted, because the conversation has too many files'
/**
 * Returns a block with its file or a note, and the number of bytes that the file occupies in the
 * request.
 */
async function show(
  files: Pick<Files, 'get'> | undefined,
  name: string,
  id: string,
  block: JsonObject,
  left: number,
  { reads, conversion }: Showing,
): Promise<readonly [JsonObject, number]> {
  const type = String(block['media_type'])
  const office = isOffice(type)
  const text = office || type.startsWith('text/')
  if (!text && !reads(type))
    return [unreadFileBlock(block, 'the model cannot read files of this type'), 0]
  const size = Number(block['size_bytes'])
  if (!office && (text ? size : Math.ceil(size / 3) * 4) > left)
    return [unreadFileBlock(block, CROWDED), 0]
  const bytes = office
    ? await textOf(files, name, () => conversion?.(id))
    : ((await files?.get(name)) ?? 'it no longer exists')
  if (typeof bytes === 'string') return [unreadFileBlock(block, bytes), 0]
  const data = Buffer.from(bytes).toString(text ? 'utf8' : 'base64')
  const sent = text ? Buffer.byteLength(JSON.stringify(data)) : data.length
  return sent > left
    ? [unreadFileBlock(block, CROWDED), 0]
    : [
        {
          ...block,
          source: {
            type: text ? 'text' : 'base64',
            media_type: office ? 'text/markdown' : type,
            data,
          },
        },
        sent,
      ]
}
