/**
 * The field for messages with files. While a turn is active, a text is sent as a nudge, which the
 * agent reads during the turn. Until then, the nudge is shown below the field.
 */
import type { Session } from '../../../protocol/sessions/schema.ts'
import type { Transcript } from '../../transcript.ts'
import { el } from '../dom.ts'
import { Uploads } from '../files/uploads.ts'
import { attempt, type Page } from '../page.ts'
import type { Senders } from '../people/senders.ts'

export interface ComposerParts {
  readonly page: Page
  readonly session_id: string
  readonly transcript: Transcript
  readonly senders: Pick<Senders, 'sentHere'>
  /** Aborts when the screen is left. */
  readonly signal: AbortSignal
  /** Called with the session in a reply. */
  onSession(session: Session): void
  /** Called when `update` should be called. */
  onChange(): void
  /** Called after a message was sent or rejected. */
  onSent(): void
}

export class Composer {
  readonly element: HTMLFormElement
  readonly #parts: ComposerParts
  readonly #uploads: Uploads
  readonly #field = el('textarea', {
    id: 'message',
    rows: '2',
    maxlength: '32768',
    'aria-describedby': 'hint',
  })
  readonly #send = el('button', { type: 'submit' }, 'Send')
  readonly #undelivered = el('p', { class: 'note', role: 'status' })
  readonly #fault = el('p', { class: 'fault', role: 'alert' })
  /** The content of nudges that the transcript does not contain yet, by id. */
  readonly #nudges = new Map<string, string>()

  constructor(parts: ComposerParts) {
    this.#parts = parts
    const { page, session_id, signal } = parts
    this.#uploads = new Uploads({
      attach: (file, signal) => page.service.attach(session_id, file, signal),
      detach: (artifact) => page.service.detach(session_id, artifact),
      announce: (text) => {
        page.announce(text)
        parts.onChange()
      },
    })
    this.#uploads.listen(this.#field, signal)
    const hint = el(
      'p',
      { id: 'hint', class: 'note' },
      'Enter sends the message; Shift+Enter starts a new line. Files can also be dropped or pasted.',
    )
    this.element = el(
      'form',
      { class: 'composer' },
      el('label', { for: this.#field.id }, 'Message'),
      el('div', { class: 'line' }, this.#field, this.#send),
      this.#uploads.element,
      hint,
      this.#undelivered,
      this.#fault,
    )
    this.element.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#submit()
    })
    this.#field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
      event.preventDefault()
      void this.#submit()
    })
  }

  focus(): void {
    this.#field.focus()
  }
  /** Shows why an action failed; '' removes the message. */
  showFault(text: string): void {
    this.#fault.textContent = text
  }
  /** Shows what the transcript contains now: whether a turn is active, and unread nudges. */
  update(): void {
    const { transcript } = this.#parts
    const isActive = transcript.active() !== undefined
    this.#send.textContent =
      isActive && this.#uploads.blocks.length === 0 ? 'Add to this turn' : 'Send'
    for (const { metadata } of transcript.rows.values())
      this.#nudges.delete(String(metadata?.['session_nudge_id']))
    if (!isActive) this.#nudges.clear()
    this.#undelivered.textContent =
      this.#nudges.size === 0 ? '' : `Sent, not yet read: ${[...this.#nudges.values()].join(' ')}`
  }

  async #submit(): Promise<void> {
    const text = this.#field.value.trim()
    if (this.#send.disabled) return
    const { blocks, obstacle } = this.#uploads
    this.showFault(obstacle ?? '')
    if (obstacle !== undefined || (text === '' && blocks.length === 0)) return
    this.#send.disabled = true
    const { page, transcript, onSent } = this.#parts
    const reason = await attempt(page, async () => {
      // A nudge contains only text, so a message with files is sent as a new turn.
      if (transcript.active() && blocks.length === 0) await this.#sendNudge(text)
      else await this.#sendMessage(text, blocks)
      if (this.#field.value.trim() === text) this.#field.value = ''
    })
    this.#send.disabled = false
    if (reason !== undefined) this.showFault(reason)
    onSent()
  }
  async #sendNudge(text: string): Promise<void> {
    const { page, session_id, senders, onSession } = this.#parts
    const { nudge_id, session } = await page.service.nudge(session_id, text)
    senders.sentHere(nudge_id)
    this.#nudges.set(nudge_id, text)
    onSession(session)
  }
  async #sendMessage(text: string, blocks: Uploads['blocks']): Promise<void> {
    const { page, session_id, transcript, senders, onSession } = this.#parts
    const { user_message, turn, session } = await page.service.say(session_id, [
      ...blocks,
      ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ])
    senders.sentHere(turn.id)
    onSession(session)
    this.#uploads.sent(blocks)
    // The stream may have delivered the message and the turn before this response. Its versions are
    // newer, so they are kept.
    if (user_message && !transcript.rows.has(user_message.id))
      transcript.apply({ event_type: 'message.upsert', ...user_message })
    if (!transcript.turns.has(turn.id)) transcript.apply({ event_type: 'turn.upsert', ...turn })
  }
}
