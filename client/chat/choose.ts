/**
 * The screens before a session: sign-in with a key, then the choice of an agent and of a session.
 */
import type { Agent } from '../../protocol/agents/schema.ts'
import { el, timeElement } from './dom.ts'
import { attempt, type Page, type Screen, sessionName } from './page.ts'
import type { Account } from './service.ts'

/**
 * Shows the sign-in form.
 * @param wrong the reason why the last key was rejected.
 */
export function signIn(
  project: string,
  wrong: string | undefined,
  enter: (account: Account) => void,
): Screen {
  const key = el('input', {
    id: 'key',
    type: 'password',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': 'kept',
  })
  const place = el('input', {
    id: 'project',
    type: 'text',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    value: project,
  })
  const form = el(
    'form',
    { class: 'card' },
    el('h2', {}, 'Sign in'),
    wrong !== undefined && el('p', { class: 'fault', role: 'alert' }, wrong),
    el('label', { for: key.id }, 'Key or token'),
    key,
    el(
      'p',
      { id: 'kept', class: 'note' },
      'Stored in this tab until it is closed, and sent only to this service.',
    ),
    el('label', { for: place.id }, 'Project'),
    place,
    el('p', { class: 'buttons' }, el('button', { type: 'submit' }, 'Continue')),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    enter({ key: key.value.trim(), project: place.value.trim() })
  })
  return { element: form, leave: () => {} }
}

/**
 * Shows the agents of the project, and the sessions of the selected agent.
 * @param go opens a session by its id.
 */
export function createChooser(page: Page, go: (session: string) => void): Screen {
  const { service } = page
  let over = false
  const fault = el('p', { class: 'fault', role: 'alert' })
  const agents = el('select', { id: 'agent', onchange: () => void list() })
  const sessions = el('ul', { class: 'sessions', 'aria-label': 'Sessions' })
  const none = el('p', { class: 'note', role: 'status' })
  const fresh = el(
    'button',
    {
      type: 'button',
      disabled: true,
      onclick: () => void act(async () => go((await service.open(agents.value)).id)),
    },
    'New session',
  )
  const element = el(
    'section',
    { class: 'card', 'aria-labelledby': 'choose' },
    el('h2', { id: 'choose' }, 'Sessions'),
    fault,
    el('label', { for: agents.id }, 'Agent'),
    el('div', { class: 'line' }, agents, fresh),
    sessions,
    none,
  )

  async function act(what: () => Promise<void>): Promise<void> {
    fault.textContent = ''
    const reason = await attempt(page, what)
    if (reason !== undefined) fault.textContent = reason
  }
  const list = (): Promise<void> =>
    act(async () => {
      const agent = agents.value
      const found = await service.sessions(agent)
      // The user may have chosen another agent in the meantime.
      if (over || agents.value !== agent) return
      sessions.replaceChildren(
        ...found.map((session) =>
          el(
            'li',
            {},
            el('a', { href: `#session=${session.id}` }, sessionName(session)),
            el(
              'span',
              { class: 'note' },
              ` ${session.message_count} ${session.message_count === 1 ? 'message' : 'messages'}, `,
              timeElement(session.last_message_at ?? session.created_at),
            ),
          ),
        ),
      )
      none.textContent = found.length === 0 ? 'This agent has no sessions yet.' : ''
    })
  void act(async () => {
    const all: readonly Agent[] = await service.agents()
    if (over) return
    agents.replaceChildren(...all.map(({ id, name }) => el('option', { value: id }, name)))
    fresh.disabled = all.length === 0
    if (all.length === 0) none.textContent = 'This project has no agents yet.'
    else await list()
  })
  return {
    element,
    leave: () => {
      over = true
    },
  }
}
