/**
 * One session on the page: the live conversation, a field for messages with files, and a button
 * that cancels the turn. The conversation shows only the transcript. User actions call the service,
 * whose replies and later frames update the transcript.
 */
import type { Session } from '../../protocol/sessions/schema.ts'
import { followTranscript, Transcript, TranscriptRefused } from '../transcript.ts'
import { announcer } from './announcements.ts'
import { Conversation } from './conversation.ts'
import { el } from './dom.ts'
import { Uploads } from './files/uploads.ts'
import { WorkspacePanel } from './files/workspace.ts'
import { Senders } from './people/senders.ts'
import { type Account, Refused, type Service } from './service.ts'

/** The parts of the surrounding page that a screen uses. */
export interface Page {
  readonly account: Account
  readonly service: Service
  /** Announces a message to screen readers. */
  announce(text: string): void
  /** Sets the document title. */
  showTitle(title: string): void
  /** Called when the service rejects the key. */
  refused(): void
}
/** One screen of the page. `leave` is called before another screen is shown. */
export interface Screen {
  readonly element: HTMLElement
  readonly leave: () => void
}
/** Maximum distance in pixels from the end of the page at which the page scrolls to new content. */
const MAX_DISTANCE_PX = 120
/** Delay before missing senders are looked up again. */
const SENDERS_PAUSE_MS = 300
const states: Readonly<Record<string, string>> = {
  queued: 'queued',
  running: 'running',
  waiting: 'waiting for an answer',
}

/** Creates the screen of a session, which follows the session until `leave` is called. */
export function sessionScreen(page: Page, id: string): Screen {
  const { service, account } = page
  const gone = new AbortController()
  const transcript = new Transcript()
  const heading = el('h2', {}, 'Session')
  const state = el('span', { class: 'badge', hidden: true })
  const cancel = el(
    'button',
    { type: 'button', class: 'other', hidden: true, onclick: () => void stop() },
    'Cancel the turn',
  )
  const trouble = el('p', { class: 'fault', role: 'status' })
  const earlier = el(
    'button',
    { type: 'button', class: 'other', hidden: true, onclick: () => void more() },
    'Earlier messages',
  )
  const field = el('textarea', {
    id: 'message',
    rows: '2',
    maxlength: '32768',
    'aria-describedby': 'hint',
  })
  const send = el('button', { type: 'submit' }, 'Send')
  const fault = el('p', { class: 'fault', role: 'alert' })
  const hint = el(
    'p',
    { id: 'hint', class: 'note' },
    'Enter sends the message; Shift+Enter starts a new line. Files can also be dropped or pasted.',
  )
  const uploads = new Uploads({
    attach: (file, signal) => service.attach(id, file, signal),
    detach: (artifact) => service.detach(id, artifact),
    announce: (text) => {
      page.announce(text)
      draw()
    },
  })
  uploads.listen(field, gone.signal)
  const undelivered = el('p', { class: 'note', role: 'status' })
  const composer = el(
    'form',
    { class: 'composer' },
    el('label', { for: field.id }, 'Message'),
    el('div', { class: 'line' }, field, send),
    uploads.element,
    hint,
    undelivered,
    fault,
  )
  const senders = new Senders(service.senders(id))
  const conversation = new Conversation({
    senders,
    answer: async (interaction, value, comment) => {
      const wrong = await tried(async () =>
        transcript.interactions.set(interaction, await service.answer(interaction, value, comment)),
      )
      draw()
      if (wrong === undefined) field.focus()
      return wrong
    },
    read: { attachment: (artifact) => service.file(id, artifact), artifact: service.artifact },
  })
  const workspace = new WorkspacePanel((name, call) => service.invoke(name, call, gone.signal))
  const element = el(
    'section',
    { 'aria-labelledby': 'session' },
    el('p', { class: 'back' }, el('a', { href: '#' }, 'All sessions')),
    el('div', { class: 'bar' }, heading, state, cancel),
    trouble,
    earlier,
    conversation.element,
    workspace.element,
    composer,
  )
  heading.id = 'session'

  /**
   * Calls the service.
   * @returns the reason for a rejection; undefined if the call succeeds.
   */
  async function tried(act: () => Promise<unknown>): Promise<string | undefined> {
    try {
      await act()
      return undefined
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.status === 401) page.refused()
      return error.message
    }
  }

  /** The content of nudges that the transcript does not contain yet, by id. */
  const nudges = new Map<string, string>()
  const announcements = announcer(() => conversation.agent)
  let drawing = false
  let looking = false
  let loaded = false
  let named = false
  let ended: number | undefined
  /** Draws the transcript, at most once per animation frame. */
  function draw(): void {
    if (drawing || !loaded || !named) return
    drawing = true
    // The first rows appear with the names of their senders. Later, the names are added.
    if (ended === undefined) void lookUp().finally(paint)
    else paint()
  }
  /** Looks up senders, and draws again if some were missing. */
  async function lookUp(): Promise<void> {
    if (looking) return
    looking = true
    const outcome = await senders.load(transcript.messages())
    looking = false
    if (outcome !== 'complete') setTimeout(draw, outcome === 'missing' ? SENDERS_PAUSE_MS : 0)
  }
  function paint(): void {
    requestAnimationFrame(() => {
      drawing = false
      if (gone.signal.aborted) return
      const { documentElement } = document
      const follows = innerHeight + scrollY >= documentElement.scrollHeight - MAX_DISTANCE_PX
      const entries = conversation.show(transcript)
      const active = transcript.active()
      state.hidden = cancel.hidden = active === undefined
      state.textContent = active ? (states[active.status] ?? active.status) : ''
      send.textContent = active && uploads.blocks.length === 0 ? 'Add to this turn' : 'Send'
      earlier.hidden = (first() ?? 1) <= 1
      for (const { metadata } of transcript.rows.values())
        nudges.delete(String(metadata?.['session_nudge_id']))
      if (!active) nudges.clear()
      undelivered.textContent =
        nudges.size === 0 ? '' : `Sent, not yet read: ${[...nudges.values()].join(' ')}`
      for (const text of announcements(entries)) page.announce(text)
      if (follows) scrollTo(0, documentElement.scrollHeight)
      const ends = entries.filter(({ kind }) => kind === 'end').length
      if (ended !== undefined && ends > ended) void refresh()
      ended = ends
      void lookUp()
    })
  }
  /** Returns the lowest sequence number of the loaded messages; undefined if none has one. */
  const first = (): number | undefined =>
    transcript.messages().find(({ sequence }) => sequence !== null)?.sequence ?? undefined

  let wake = (): void => {}
  const pause = (ms: number): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(done, ms)
      wake = () => {
        clearTimeout(timer)
        done()
      }
    })
  async function follow(): Promise<void> {
    const onReconnect = (reason: string) => {
      if (!reason.startsWith('the server ended the stream'))
        trouble.textContent = `Not connected (${reason}). Reconnecting…`
    }
    try {
      for await (const _ of followTranscript({
        url: location.origin,
        ...account,
        session_id: id,
        transcript,
        forever: true,
        signal: gone.signal,
        pause,
        onReconnect,
      })) {
        loaded = true
        trouble.textContent = ''
        draw()
      }
    } catch (error) {
      if (error instanceof TranscriptRefused && error.status === 401) return page.refused()
      trouble.textContent =
        error instanceof TranscriptRefused && error.status === 404
          ? 'This session does not exist in this project.'
          : `The session cannot be followed: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  async function say(): Promise<void> {
    const text = field.value.trim()
    const files = uploads.blocks
    if (send.disabled) return
    fault.textContent = uploads.obstacle ?? ''
    if (uploads.obstacle !== undefined || (text === '' && files.length === 0)) return
    send.disabled = true
    const wrong = await tried(async () => {
      // A nudge contains only text, so a message with files is sent as a new turn.
      if (transcript.active() && files.length === 0) {
        const { nudge_id, session } = await service.nudge(id, text)
        senders.sentHere(nudge_id)
        nudges.set(nudge_id, text)
        showSession(session)
      } else {
        const { user_message, turn, session } = await service.say(id, [
          ...files,
          ...(text === '' ? [] : [{ type: 'text', text } as const]),
        ])
        senders.sentHere(turn.id)
        showSession(session)
        uploads.sent(files)
        // The stream may have delivered the message and the turn before this response. Its versions
        // are newer, so they are kept.
        if (user_message && !transcript.rows.has(user_message.id))
          transcript.apply({ event_type: 'message.upsert', ...user_message })
        if (!transcript.turns.has(turn.id)) transcript.apply({ event_type: 'turn.upsert', ...turn })
      }
      if (field.value.trim() === text) field.value = ''
    })
    send.disabled = false
    if (wrong !== undefined) fault.textContent = wrong
    wake()
    draw()
  }
  async function stop(): Promise<void> {
    const active = transcript.active()
    if (active) fault.textContent = (await tried(() => service.cancel(id, active.id))) ?? ''
    field.focus()
  }
  async function more(): Promise<void> {
    const before = first()
    if (before === undefined) return
    earlier.disabled = true
    fault.textContent =
      (await tried(async () => {
        for (const row of await service.earlier(id, before))
          transcript.apply({
            event_type: 'message.upsert',
            status: 'final',
            turn_index: null,
            ...row,
          })
      })) ?? ''
    earlier.disabled = false
    draw()
  }

  composer.addEventListener('submit', (event) => {
    event.preventDefault()
    void say()
  })
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    void say()
  })
  const showSession = (session: Session): void => {
    heading.textContent = nameOf(session)
    page.showTitle(nameOf(session))
  }
  /**
   * Reads the session's record again, because its title may have changed and the stream does not
   * contain the record.
   */
  const refresh = (): Promise<unknown> =>
    tried(async () => {
      const session = await service.session(id)
      if (gone.signal.aborted) return
      showSession(session)
      void workspace.update(session.environment)
    })
  const onVisible = (): void => {
    if (document.visibilityState === 'visible') void refresh()
  }
  document.addEventListener('visibilitychange', onVisible, { signal: gone.signal })
  void tried(async () => {
    const session = await service.session(id)
    if (gone.signal.aborted) return
    showSession(session)
    void workspace.update(session.environment)
    conversation.agent = (await service.agent(session.agent_id)).name
  }).then(() => {
    // Rows are drawn once the agent's name is known. If the name cannot be read, rows show "Agent".
    named = true
    draw()
  })
  void follow()
  return { element, leave: () => gone.abort() }
}

/** Returns the displayed name of a session: its title, or its key. */
export const nameOf = ({ title, session_key }: Session): string => title || session_key
