/**
 * Shows one message on the page. Invariant: if neither the message nor its tool results have
 * changed, the row is not modified, except that the name of its sender is added once it is known.
 */
import type { TranscriptMessage } from '../../protocol/sessions/schema.ts'
import { type BlockView, blockView } from './blocks.ts'
import { el, timeElement } from './dom.ts'
import { isShown, type Results } from './entries.ts'
import type { ReadFiles } from './files/file-view.ts'

const speakers: Readonly<Record<Exclude<TranscriptMessage['role'], 'assistant' | 'user'>, string>> =
  {
    system: 'System',
    tool: 'Tool',
    compaction: 'Summary of earlier messages',
  }

export class MessageRow {
  readonly element: HTMLLIElement
  readonly #body = el('div', { class: 'blocks' })
  readonly #views: (BlockView | undefined)[] = []
  #shown: TranscriptMessage | undefined
  #results: readonly unknown[] = []
  #time: HTMLTimeElement
  #isNamed = false

  readonly #read: ReadFiles

  /**
   * @param agent name of the session's agent.
   * @param read fetches stored files.
   */
  constructor({ id, role, created_at }: TranscriptMessage, agent: string, read: ReadFiles) {
    this.#read = read
    this.#time = timeElement(created_at)
    this.element = el(
      'li',
      { class: `message ${role}`, 'data-id': id },
      el('p', { class: 'speaker' }, ' ', this.#time),
      this.#body,
    )
    if (role !== 'user') this.#name(role === 'assistant' ? agent : speakers[role])
  }

  #name(speaker: string): void {
    this.element.querySelector('.speaker')?.prepend(speaker)
    this.#isNamed = true
  }

  /** @param sender name of the sender of a message of the role `user`, once it is known. */
  update(message: TranscriptMessage, results: Results, sender: string | undefined): void {
    if (!this.#isNamed && sender !== undefined) this.#name(sender)
    const came = message.content.map((block) =>
      block.type === 'tool_use' ? results.get(block.id) : undefined,
    )
    if (message === this.#shown && came.every((result, index) => result === this.#results[index]))
      return
    this.#shown = message
    this.#results = came
    const live = message.status === 'streaming'
    // A complete message is announced to screen readers by `announcements.ts`. Until then, the row
    // is marked as busy.
    this.element.setAttribute('aria-busy', String(live))
    if (this.#time.dateTime !== message.created_at) {
      const time = timeElement(message.created_at)
      this.#time.replaceWith(time)
      this.#time = time
    }
    for (const [index, block] of message.content.entries()) {
      // The placeholder of a block that has not arrived yet has no type.
      if (block.type === undefined || !isShown(block)) continue
      let view = this.#views[index]
      if (view?.type !== block.type) {
        const made = blockView(block.type, live, this.#read)
        if (view) view.element.replaceWith(made.element)
        else
          this.#body.insertBefore(
            made.element,
            this.#views.slice(index).find((later) => later !== undefined)?.element ?? null,
          )
        view = this.#views[index] = made
      }
      view.update(block, came[index])
    }
    for (const view of this.#views.splice(message.content.length)) view?.element.remove()
  }
}
