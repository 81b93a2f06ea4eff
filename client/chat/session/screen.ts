/**
 * One session on the page: the live conversation, a field for messages with files, and a button
 * that cancels the turn. The conversation shows only the transcript. User actions call the service,
 * whose replies and later frames update the transcript.
 */
import type { Session } from '../../../protocol/sessions/schema.ts'
import { Transcript } from '../../transcript.ts'
import { announcer } from '../announcements.ts'
import { Conversation } from '../conversation.ts'
import { el } from '../dom.ts'
import type { Entry } from '../entries.ts'
import { WorkspacePanel } from '../files/workspace.ts'
import { attempt, type Page, type Screen, sessionName } from '../page.ts'
import { Senders } from '../people/senders.ts'
import type { Answering } from '../question.ts'
import { Composer } from './composer.ts'
import { startFollowing } from './follow.ts'

/** Maximum distance in pixels from the end of the page at which the page scrolls to new content. */
const MAX_DISTANCE_PX = 120
/** Delay before missing senders are looked up again. */
const SENDERS_PAUSE_MS = 300
const states: Readonly<Record<string, string>> = {
  queued: 'queued',
  running: 'running',
  waiting: 'waiting for an answer',
}

/** The screen of a session, which follows the session until `leave` is called. */
export class SessionScreen implements Screen {
  readonly element: HTMLElement
  readonly #page: Page
  readonly #id: string
  readonly #left = new AbortController()
  readonly #transcript = new Transcript()
  readonly #heading = el('h2', { id: 'session' }, 'Session')
  readonly #state = el('span', { class: 'badge', hidden: true })
  readonly #cancel = el(
    'button',
    { type: 'button', class: 'other', hidden: true, onclick: () => void this.#cancelTurn() },
    'Cancel the turn',
  )
  readonly #connection = el('p', { class: 'fault', role: 'status' })
  readonly #earlier = el(
    'button',
    { type: 'button', class: 'other', hidden: true, onclick: () => void this.#loadEarlier() },
    'Earlier messages',
  )
  readonly #senders: Senders
  readonly #conversation: Conversation
  readonly #announcementOf: (entries: readonly Entry[]) => string
  readonly #workspace: WorkspacePanel
  readonly #composer: Composer
  /** Whether a draw is scheduled. */
  #drawing = false
  #isLookingUp = false
  /** Whether the transcript has content. */
  #loaded = false
  /** Whether the name of the agent is known, or cannot be read. */
  #named = false
  /** The number of ended turns that are shown; undefined before the first draw. */
  #ended: number | undefined

  constructor(page: Page, id: string) {
    this.#page = page
    this.#id = id
    const { service } = page
    const { signal } = this.#left
    this.#senders = new Senders(service.senders(id))
    this.#conversation = new Conversation({
      senders: this.#senders,
      answer: (...given) => this.#answer(...given),
      read: { attachment: (artifact) => service.file(id, artifact), artifact: service.artifact },
    })
    this.#announcementOf = announcer(() => this.#conversation.agent)
    this.#workspace = new WorkspacePanel((name, call) => service.invoke(name, call, signal))
    const transcript = this.#transcript
    const onChange = () => this.#draw()
    this.#composer = new Composer({
      ...{ page, session_id: id, transcript, signal, onChange },
      senders: this.#senders,
      onSession: (session) => this.#showSession(session),
      onSent: () => {
        reconnect()
        this.#draw()
      },
    })
    this.element = el(
      'section',
      { 'aria-labelledby': this.#heading.id },
      el('p', { class: 'back' }, el('a', { href: '#' }, 'All sessions')),
      el('div', { class: 'bar' }, this.#heading, this.#state, this.#cancel),
      this.#connection,
      this.#earlier,
      this.#conversation.element,
      this.#workspace.element,
      this.#composer.element,
    )
    const onVisible = (): void => {
      if (document.visibilityState === 'visible') void this.#readSession()
    }
    document.addEventListener('visibilitychange', onVisible, { signal })
    void this.#open()
    const reconnect = startFollowing({
      ...{ page, session_id: id, transcript, signal },
      onState: (text) => {
        this.#connection.textContent = text
      },
      onChange: () => {
        this.#loaded = true
        this.#draw()
      },
    })
  }
  readonly leave = (): void => this.#left.abort()

  /** Reads the session and the name of its agent. Rows are drawn once the name is known. */
  async #open(): Promise<void> {
    await attempt(this.#page, async () => {
      const session = await this.#readRecord()
      if (!session) return
      this.#conversation.agent = (await this.#page.service.agent(session.agent_id)).name
    })
    // If the name cannot be read, rows show "Agent".
    this.#named = true
    this.#draw()
  }
  /**
   * Reads the session's record again, because its title may have changed and the stream does not
   * contain the record.
   */
  #readSession(): Promise<unknown> {
    return attempt(this.#page, () => this.#readRecord())
  }
  /** Reads and shows the session's record. Returns undefined if the screen was left meanwhile. */
  async #readRecord(): Promise<Session | undefined> {
    const session = await this.#page.service.session(this.#id)
    if (this.#left.signal.aborted) return undefined
    this.#showSession(session)
    void this.#workspace.update(session.environment)
    return session
  }
  #showSession(session: Session): void {
    const name = sessionName(session)
    this.#heading.textContent = name
    this.#page.showTitle(name)
  }

  /** Draws the transcript, at most once per animation frame. */
  #draw(): void {
    if (this.#drawing || !this.#loaded || !this.#named) return
    this.#drawing = true
    // The first rows appear with the names of their senders. Later, the names are added.
    if (this.#ended === undefined) void this.#lookUpSenders().finally(() => this.#schedulePaint())
    else this.#schedulePaint()
  }
  #schedulePaint(): void {
    requestAnimationFrame(() => {
      this.#drawing = false
      if (!this.#left.signal.aborted) this.#paint()
    })
  }
  #paint(): void {
    const { documentElement } = document
    const follows = innerHeight + scrollY >= documentElement.scrollHeight - MAX_DISTANCE_PX
    const entries = this.#conversation.show(this.#transcript)
    const active = this.#transcript.active()
    this.#state.hidden = this.#cancel.hidden = active === undefined
    this.#state.textContent = active ? (states[active.status] ?? active.status) : ''
    this.#composer.update()
    this.#earlier.hidden = (this.#firstSequence() ?? 1) <= 1
    const announcement = this.#announcementOf(entries)
    if (announcement !== '') this.#page.announce(announcement)
    if (follows) scrollTo(0, documentElement.scrollHeight)
    const ended = entries.filter(({ kind }) => kind === 'end').length
    if (this.#ended !== undefined && ended > this.#ended) void this.#readSession()
    this.#ended = ended
    void this.#lookUpSenders()
  }
  /** Looks up senders, and draws again if some were missing. */
  async #lookUpSenders(): Promise<void> {
    if (this.#isLookingUp) return
    this.#isLookingUp = true
    const outcome = await this.#senders.load(this.#transcript.messages())
    this.#isLookingUp = false
    if (outcome !== 'complete')
      setTimeout(() => this.#draw(), outcome === 'missing' ? SENDERS_PAUSE_MS : 0)
  }
  /** Returns the lowest sequence number of the loaded messages; undefined if none has one. */
  #firstSequence(): number | undefined {
    return (
      this.#transcript.messages().find(({ sequence }) => sequence !== null)?.sequence ?? undefined
    )
  }

  async #answer(...[interaction, value, comment]: Parameters<Answering>): ReturnType<Answering> {
    const { service } = this.#page
    const reason = await attempt(this.#page, async () =>
      this.#transcript.interactions.set(
        interaction,
        await service.answer(interaction, value, comment),
      ),
    )
    this.#draw()
    if (reason === undefined) this.#composer.focus()
    return reason
  }
  async #cancelTurn(): Promise<void> {
    const active = this.#transcript.active()
    if (active) {
      const cancel = () => this.#page.service.cancel(this.#id, active.id)
      this.#composer.showFault((await attempt(this.#page, cancel)) ?? '')
    }
    this.#composer.focus()
  }
  async #loadEarlier(): Promise<void> {
    const before = this.#firstSequence()
    if (before === undefined) return
    this.#earlier.disabled = true
    const reason = await attempt(this.#page, async () => {
      for (const row of await this.#page.service.earlier(this.#id, before))
        this.#transcript.apply({
          event_type: 'message.upsert',
          status: 'final',
          turn_index: null,
          ...row,
        })
    })
    this.#composer.showFault(reason ?? '')
    this.#earlier.disabled = false
    this.#draw()
  }
}
