/**
 * Renders the files of a message, and the artifacts that a tool result references. An image of a
 * message is previewed when it becomes visible, and any stored file can be downloaded. Stored files
 * are fetched with the user's key and never opened as documents.
 */
import type { ArtifactReference } from '../../../protocol/artifacts/reference.ts'
import type { BlockView } from '../blocks.ts'
import { el } from '../dom.ts'
import { describeFile, describeReference, type FileDescription } from './describe.ts'

/**
 * Fetches a stored file by its artifact id.
 * @throws Refused if the service rejects the request.
 */
export type ReadFile = (artifact: string) => Promise<Blob>

/** Functions that fetch the files of the session and other artifacts of the project. */
export interface ReadFiles {
  readonly attachment: ReadFile
  readonly artifact: ReadFile
}

/**
 * The artifacts that a tool result references, each as a download button. The service checks the
 * user's permission when the button is clicked.
 */
export class ArtifactList {
  readonly element = el('div', { class: 'file', hidden: true })
  readonly #read: ReadFile
  #shown = ''
  constructor(read: ReadFile) {
    this.#read = read
  }
  update(references: readonly ArtifactReference[]): void {
    const key = JSON.stringify(references)
    if (key === this.#shown) return
    this.#shown = key
    this.element.hidden = references.length === 0
    this.element.replaceChildren(
      ...references.map((reference) => {
        const { title, words } = describeReference(reference)
        return el('p', {}, ...download(title, words, () => this.#read(reference.id)))
      }),
    )
  }
}

export function fileView(type: 'image' | 'document', read: ReadFile): BlockView {
  const element = el('div', { class: 'file' })
  let shown = ''
  return {
    type,
    element,
    update: (block) => {
      if (block.type !== type) return
      const file = describeFile(block)
      const key = JSON.stringify(file)
      if (key === shown) return
      shown = key
      element.replaceChildren(...partsOf(file, read))
    },
  }
}

function partsOf({ title, size, source, isImage }: FileDescription, read: ReadFile): Node[] {
  const words = size === '' ? title : `${title} (${size})`
  switch (source.kind) {
    case 'artifact': {
      const { id } = source
      return [
        ...(isImage ? [preview(title, async () => URL.createObjectURL(await read(id)))] : []),
        ...download(title, words, () => read(id)),
      ]
    }
    case 'inline':
      return [preview(title, async () => source.url), el('p', { class: 'note' }, words)]
    case 'link':
      return [el('a', { href: source.url, target: '_blank', rel: 'noopener noreferrer' }, words)]
    case 'none':
      return [el('p', { class: 'note' }, words)]
  }
}

/**
 * Creates an image that is fetched when it becomes visible. Its space is reserved, so the layout
 * does not shift when it loads.
 */
function preview(title: string, open: () => Promise<string>): Node {
  const image = el('img', { class: 'preview', alt: title })
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return
    observer.disconnect()
    open().then(
      (url) => {
        // The browser keeps the decoded image, so the object URL can be revoked after loading.
        const release = (): void => URL.revokeObjectURL(url)
        image.addEventListener('load', release, { once: true })
        image.addEventListener('error', release, { once: true })
        image.src = url
      },
      // The file could not be fetched. A click on the download button shows the reason.
      () => image.remove(),
    )
  })
  observer.observe(image)
  return image
}

/**
 * Creates a button that downloads a file, and an element that shows the error if the download
 * fails.
 * @param title name under which the file is saved.
 * @param words label of the button.
 */
export function download(title: string, words: string, read: () => Promise<Blob>): Node[] {
  const fault = el('span', { class: 'fault', role: 'alert' })
  const button = el(
    'button',
    { type: 'button', class: 'link', 'aria-label': `Download ${words}` },
    words,
  )
  button.addEventListener('click', async () => {
    button.disabled = true
    fault.textContent = ''
    try {
      save(await read(), title)
    } catch (error) {
      fault.textContent = ` ${error instanceof Error ? error.message : String(error)}`
    }
    button.disabled = false
  })
  return [button, fault]
}
/**
 * Saves bytes as a file. Their media type is dropped, because a blob URL has the origin of the page
 * and must not be opened as a document.
 */
function save(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  el('a', { href: url, download: name }).click()
  // The browser reads the bytes asynchronously, so the URL is revoked later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
