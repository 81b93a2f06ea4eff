/**
 * The panel with the newest files of the agent's workspace. Files of up to `MAX_DOWNLOAD` bytes can
 * be downloaded.
 *
 * Invariants:
 * P1. The panel is hidden unless the workspace exists and the user may list and read its files.
 * P2. A closed panel sends requests only to check the user's permissions for an environment.
 */
import type { SessionDetail } from '../../../protocol/sessions/schema.ts'
import { el, timeElement } from '../dom.ts'
import { sizeText } from './describe.ts'
import { download } from './file-view.ts'
import {
  type InvokeAction,
  MAX_DOWNLOAD,
  type WorkspaceFile,
  WorkspaceFiles,
} from './workspace-files.ts'

export class WorkspacePanel {
  readonly element: HTMLDetailsElement
  readonly #invoke: InvokeAction
  readonly #status = el('p', { class: 'note', role: 'status' })
  readonly #fault = el('p', { class: 'fault', role: 'alert' })
  readonly #list = el('ul', { class: 'workspace', 'aria-label': 'Files of the workspace' })
  /** Rows by the JSON of their file, so that an unchanged file keeps its element. */
  #rows: ReadonlyMap<string, HTMLLIElement> = new Map()
  #environment_id: string | undefined
  #files: WorkspaceFiles | undefined
  #reading = false
  #stale = false

  constructor(invoke: InvokeAction) {
    this.#invoke = invoke
    this.element = el(
      'details',
      { class: 'panel', hidden: true, ontoggle: () => void this.#read() },
      el('summary', {}, 'Files'),
      this.#status,
      this.#fault,
      this.#list,
    )
  }
  /**
   * Updates the panel to the current state of the session's workspace, and lists the files again if
   * the panel is open. Called when the session has been loaded, after each turn, and when the page
   * becomes visible.
   */
  async update(environment: SessionDetail['environment']): Promise<void> {
    const exists = environment !== undefined && environment.status !== 'destroyed'
    if (exists && environment.id !== this.#environment_id) {
      const files = new WorkspaceFiles(this.#invoke, environment.id)
      // A failed check is repeated at the next update.
      const allowed = await files.allowed().catch(() => undefined)
      if (allowed === undefined) return
      this.#environment_id = environment.id
      this.#files = allowed ? files : undefined
    }
    this.element.hidden = !exists || !this.#files
    await this.#read()
  }

  /** Lists the files if the panel is open. Only one list request is in progress at a time. */
  async #read(): Promise<void> {
    const files = this.#files
    if (!files || this.element.hidden || !this.element.open) return
    this.#stale = true
    if (this.#reading) return
    this.#reading = true
    if (this.#rows.size === 0) this.#status.textContent = 'The files are being read…'
    while (this.#stale) {
      this.#stale = false
      try {
        this.#show(files, await files.list())
        this.#fault.textContent = ''
      } catch (error) {
        this.#status.textContent = ''
        this.#fault.textContent = error instanceof Error ? error.message : String(error)
      }
    }
    this.#reading = false
  }
  #show(workspace: WorkspaceFiles, list: Awaited<ReturnType<WorkspaceFiles['list']>>): void {
    const { files, truncated } = list
    this.#status.textContent =
      files.length === 0
        ? 'The workspace has no files.'
        : truncated
          ? 'Only the newest files are shown.'
          : ''
    this.#rows = new Map(
      files.map((file) => {
        const key = JSON.stringify(file)
        return [key, this.#rows.get(key) ?? rowOf(file, workspace)]
      }),
    )
    const { activeElement } = document
    this.#list.replaceChildren(...this.#rows.values())
    // Reinserting a row removes the focus from its button, so the focus is restored.
    if (activeElement instanceof HTMLElement && this.#list.contains(activeElement))
      activeElement.focus({ preventScroll: true })
  }
}

function rowOf({ path, size, modified_at }: WorkspaceFile, files: WorkspaceFiles): HTMLLIElement {
  const words = `${path} (${sizeText(size)})`
  const name = path.split('/').at(-1) || path
  return el(
    'li',
    {},
    ...(size > MAX_DOWNLOAD
      ? [`${words}: too large to download here`]
      : download(name, words, () => files.read(path))),
    ' ',
    el('span', { class: 'note' }, timeElement(modified_at)),
  )
}
