/**
 * Manages the files for the next message: they are chosen, dropped or pasted, uploaded one at a
 * time, and shown in a list from which they can be removed.
 *
 * Invariant: an unsent file is erased from the session when it is removed or the screen is left.
 */

import type { Attached } from '../../../protocol/sessions/attachments.ts'
import type { Block } from '../../../protocol/sessions/turns/blocks.ts'
import { isolate } from '../../isolate.ts'
import { el } from '../dom.ts'
import { sizeText } from './describe.ts'

/**
 * Session operations used by uploads. If the service rejects a request, `attach` and `detach` throw
 * an `Error` with the service's message.
 */
export interface UploadTarget {
  attach(file: File, signal: AbortSignal): Promise<Attached>
  detach(artifact: string): Promise<unknown>
  /** Announces a message to screen readers. */
  announce(text: string): void
}

interface Upload {
  readonly file: File
  readonly element: HTMLLIElement
  readonly state: HTMLElement
  readonly removed: AbortController
  attached?: Attached
  failed?: true
}

export class Uploads {
  /** The list of files, with a button that adds more. */
  readonly element: HTMLElement
  readonly #target: UploadTarget
  readonly #list = el('ul', { class: 'files', 'aria-label': 'Attached files', hidden: true })
  readonly #button: HTMLButtonElement
  #uploads: readonly Upload[] = []
  #queue: Promise<void> = Promise.resolve()

  constructor(target: UploadTarget) {
    this.#target = target
    const input = el('input', { type: 'file', multiple: true, hidden: true, 'aria-label': 'Files' })
    input.addEventListener('change', () => {
      this.add([...(input.files ?? [])])
      // Resets the input, so that the same file can be chosen again.
      input.value = ''
    })
    this.#button = el(
      'button',
      { type: 'button', class: 'other', onclick: () => input.click() },
      'Attach files',
    )
    this.element = el('div', { class: 'uploads' }, this.#list, this.#button, input)
  }

  /**
   * Accepts files that are dropped anywhere on the page or pasted into `field`. When the signal
   * aborts, stops listening and discards all files.
   */
  listen(field: HTMLElement, signal: AbortSignal): void {
    const hasFiles = ({ dataTransfer }: DragEvent): boolean =>
      dataTransfer?.types.includes('Files') ?? false
    document.addEventListener(
      'dragover',
      (event) => {
        // By default, the browser navigates to a dropped file.
        if (hasFiles(event)) event.preventDefault()
      },
      { signal },
    )
    document.addEventListener(
      'drop',
      (event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        this.add([...(event.dataTransfer?.files ?? [])])
      },
      { signal },
    )
    field.addEventListener(
      'paste',
      (event) => {
        const { files = [], types = [] } = event.clipboardData ?? {}
        // Some programs add an image to copied text; in that case the text is pasted.
        if (files.length === 0 || types.includes('text/plain')) return
        event.preventDefault()
        this.add([...files])
      },
      { signal },
    )
    signal.addEventListener('abort', () => {
      for (const upload of this.#uploads) this.#discard(upload)
    })
  }

  /** Adds files to the upload queue. */
  add(files: readonly File[]): void {
    for (const file of files) {
      const upload = this.#show(file)
      this.#queue = this.#queue.then(() => this.#upload(upload))
    }
  }
  /** The reason why the message cannot be sent yet; undefined if it can. */
  get obstacle(): string | undefined {
    const failed = this.#uploads.find((upload) => upload.failed)
    if (failed) return `Remove ${failed.file.name} first: it could not be attached.`
    return this.#uploads.some(({ attached }) => !attached)
      ? 'Files are still being uploaded.'
      : undefined
  }
  /** The blocks of the stored files, to be sent unchanged. */
  get blocks(): readonly Block[] {
    return this.#uploads.flatMap(({ attached }) => (attached ? [attached.content_block] : []))
  }
  /** Removes the files of a sent message from the list. */
  sent(blocks: readonly Block[]): void {
    for (const upload of this.#uploads)
      if (upload.attached && blocks.includes(upload.attached.content_block)) this.#hide(upload)
  }

  #show(file: File): Upload {
    const state = el('span', { class: 'note' }, 'waiting')
    const remove = el(
      'button',
      { type: 'button', class: 'other', 'aria-label': `Remove ${file.name}` },
      '×',
    )
    const element = el(
      'li',
      { class: 'chip' },
      el('span', { class: 'name' }, file.name),
      el('span', { class: 'note' }, sizeText(file.size)),
      state,
      remove,
    )
    const upload: Upload = { file, element, state, removed: new AbortController() }
    remove.addEventListener('click', () => this.#remove(upload))
    this.#uploads = [...this.#uploads, upload]
    this.#list.append(element)
    this.#list.hidden = false
    return upload
  }
  async #upload(upload: Upload): Promise<void> {
    const { file, state, removed } = upload
    if (removed.signal.aborted) return
    state.textContent = 'uploading…'
    try {
      upload.attached = await this.#target.attach(file, removed.signal)
    } catch (error) {
      if (removed.signal.aborted) return
      upload.failed = true
      state.className = 'fault'
      state.textContent = error instanceof Error ? error.message : String(error)
      this.#target.announce(`${isolate(file.name)} could not be attached: ${state.textContent}`)
      return
    }
    // The file was removed during its upload.
    if (removed.signal.aborted) return this.#discard(upload)
    state.textContent = ''
    this.#target.announce(`${isolate(file.name)} is attached.`)
  }
  #remove(upload: Upload): void {
    const index = this.#uploads.indexOf(upload)
    this.#discard(upload)
    this.#hide(upload)
    this.#target.announce(`${isolate(upload.file.name)} is removed.`)
    const next = this.#uploads[index] ?? this.#uploads.at(-1)
    const focused = next?.element.querySelector('button') ?? this.#button
    focused.focus()
  }
  #hide({ element }: Upload): void {
    this.#uploads = this.#uploads.filter((upload) => upload.element !== element)
    element.remove()
    this.#list.hidden = this.#uploads.length === 0
  }
  /**
   * Aborts an upload and erases the stored file. If erasing fails, the file is erased together with
   * its session.
   */
  #discard({ removed, attached }: Upload): void {
    removed.abort()
    if (attached) this.#target.detach(attached.artifact.id).catch(() => {})
  }
}
