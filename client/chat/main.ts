/**
 * The entry point of the chat page, which selects the screen to show. In the URL, `#session=…`
 * selects a session and `&project=…` its project.
 *
 * Invariant: the key is stored only in this tab's `sessionStorage`, and never appears in a
 * URL.
 */
import { createChooser, signIn } from './choose.ts'
import { el } from './dom.ts'
import type { Page, Screen } from './page.ts'
import { type Account, createService } from './service.ts'
import { SessionScreen } from './session/screen.ts'

const KEY = 'chat.key'
const PROJECT = 'chat.project'
const place = document.querySelector('main') as HTMLElement
const announcements = document.querySelector('#announcements') as HTMLElement
const out = el(
  'button',
  { type: 'button', class: 'other', hidden: true, onclick: () => forget() },
  'Sign out',
)
document.querySelector('header')?.append(out)

let screen: Screen | undefined
const pageTitle = document.title
const addressed = (): URLSearchParams => new URLSearchParams(location.hash.slice(1))

function show(next: Screen, focus: string): void {
  screen?.leave()
  screen = next
  place.replaceChildren(next.element)
  place.querySelector<HTMLElement>(focus)?.focus({ preventScroll: true })
}
function forget(wrong?: string): void {
  sessionStorage.removeItem(KEY)
  start(wrong)
}

/**
 * Shows the screen that the URL selects, or the sign-in form if no key is stored.
 * @param wrong a message for the sign-in form, such as the reason why a key was refused.
 */
function start(wrong?: string): void {
  const named = addressed()
  const project = named.get('project') ?? sessionStorage.getItem(PROJECT) ?? 'default'
  const key = sessionStorage.getItem(KEY)
  out.hidden = key === null
  announcements.textContent = ''
  document.title = pageTitle
  if (key === null) return void show(signIn(project, wrong, enter), 'input')
  const account: Account = { key, project }
  const page: Page = {
    account,
    service: createService(account),
    announce: (text) => {
      announcements.textContent = text
    },
    showTitle: (title) => {
      document.title = `${title} · ${pageTitle}`
    },
    refused: () => forget('The service does not accept this key.'),
  }
  const session = named.get('session')
  if (session) show(new SessionScreen(page, session), 'textarea')
  else
    show(
      createChooser(page, (id) => {
        location.hash = `session=${id}`
      }),
      'select',
    )
}
function enter({ key, project }: Account): void {
  sessionStorage.setItem(KEY, key)
  sessionStorage.setItem(PROJECT, project)
  // The project entered in the form takes precedence over the one in the URL.
  if (addressed().has('project')) {
    const session = addressed().get('session')
    const place = new URLSearchParams({ project, ...(session !== null && { session }) })
    history.replaceState(null, '', `#${place}`)
  }
  start()
}

addEventListener('hashchange', () => start())
start()
