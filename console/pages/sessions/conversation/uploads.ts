/**
 * Files for the next message. They are uploaded one at a time. After its upload, a file is kept in
 * the browser as part of a draft, so that a reload does not lose it.
 *
 * Invariant: a file that is removed before it is sent is erased from the session.
 */
import { useRef, useState } from 'preact/hooks'
import type { Attached } from '../../../../protocol/sessions/attachments.ts'
import type { Block } from '../../../../protocol/sessions/turns/blocks.ts'
import { ApiError, call, randomKey, requestOf, send } from '../../../api/client.ts'
import { useDraft } from '../../../shell/drafts.ts'
import { conversationText as text } from './text.ts'

/** A file in the list. `preview` is the URL of an image that has not been sent yet. */
interface Upload {
  readonly key: string
  readonly name: string
  readonly size: number
  readonly preview?: string
  readonly block?: Block
  readonly artifact?: string
  readonly active?: true
  readonly fault?: string
}
/** The files of a composer. */
export interface Uploads {
  readonly files: readonly Upload[]
  readonly blocks: readonly Block[]
  /** The reason why the message cannot be sent yet; undefined if it can be sent. */
  readonly obstacle: string | undefined
  add(files: readonly File[]): void
  remove(key: string): void
  /** Removes the files of a sent message from the list. */
  sent(blocks: readonly Block[]): void
}

type Kept = Pick<Upload, 'key' | 'name' | 'size' | 'block' | 'artifact'>
function keptOf(draft: string): readonly Kept[] {
  try {
    const kept: unknown = JSON.parse(draft)
    return Array.isArray(kept) ? (kept as Kept[]) : []
  } catch {
    return []
  }
}

/** Manages the files for the next message of a session. `announce` informs screen readers. */
export function useUploads(
  project: string,
  session_id: string,
  announce: (message: string) => void,
): Uploads {
  const [draft, setDraft] = useDraft(`files.${project}.${session_id}`)
  const [files, setFiles] = useState<readonly Upload[]>(() => keptOf(draft))
  const latest = useRef(files)
  const queue = useRef<Promise<void>>(Promise.resolve())
  const aborts = useRef(new Map<string, AbortController>())
  const change = (next: readonly Upload[]): void => {
    latest.current = next
    setFiles(next)
    const kept = next.flatMap(({ key, name, size, block, artifact }) =>
      block && artifact !== undefined ? [{ key, name, size, block, artifact }] : [],
    )
    setDraft(kept.length === 0 ? '' : JSON.stringify(kept))
  }
  const update = (key: string, more: Partial<Upload>): void =>
    change(
      latest.current.map((one) => {
        const { active: _, ...rest } = one
        return one.key === key ? { ...rest, ...more } : one
      }),
    )
  const of = { project, session_id }

  const upload = async (key: string, file: File): Promise<void> => {
    if (!latest.current.some((one) => one.key === key)) return
    const abort = new AbortController()
    aborts.current.set(key, abort)
    update(key, { active: true })
    try {
      const form = new FormData()
      form.append('file', file)
      const { method, path } = requestOf('session.attach', of)
      const answer = await send(method, path, form, { signal: abort.signal })
      const { artifact, content_block } = (await answer.json()) as Attached
      if (abort.signal.aborted) return void erase(artifact.id)
      update(key, { block: content_block, artifact: artifact.id })
      announce(text.fileAttached(file.name))
    } catch (error) {
      if (abort.signal.aborted) return
      const fault = error instanceof ApiError ? error.message : String(error)
      update(key, { fault })
      announce(text.fileFailed(file.name, fault))
    }
  }
  // If erasing fails, the file is erased together with its session.
  const erase = (artifact_id: string): void =>
    void call('session.detach', { ...of, artifact_id }).catch(() => {})

  return {
    files,
    blocks: files.flatMap(({ block }) => (block ? [block] : [])),
    get obstacle() {
      const failed = files.find(({ fault }) => fault !== undefined)
      if (failed) return text.removeFirst(failed.name)
      return files.some(({ block }) => !block) ? text.stillUploading : undefined
    },
    add: (added) => {
      for (const file of added) {
        const key = randomKey()
        const preview = file.type.startsWith('image/') ? URL.createObjectURL(file) : undefined
        const { name, size } = file
        change([...latest.current, { key, name, size, ...(preview !== undefined && { preview }) }])
        queue.current = queue.current.then(() => upload(key, file))
      }
    },
    remove: (key) => {
      const gone = latest.current.find((one) => one.key === key)
      aborts.current.get(key)?.abort()
      if (gone?.artifact !== undefined) erase(gone.artifact)
      if (gone?.preview !== undefined) URL.revokeObjectURL(gone.preview)
      change(latest.current.filter((one) => one.key !== key))
      if (gone) announce(text.fileRemoved(gone.name))
    },
    sent: (blocks) =>
      change(latest.current.filter(({ block }) => !block || !blocks.includes(block))),
  }
}
