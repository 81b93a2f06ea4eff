/**
 * The current place in the console, as a signal that follows the browser's URL. All state that a
 * link can contain is in the URL.
 *
 * Invariant: the URL changes only through `go`, a link or the browser's own buttons, and `place`
 * follows it.
 */
import { signal } from '@preact/signals'

/** A path with its query parameters. */
export interface Place {
  readonly path: string
  readonly query: URLSearchParams
}

const current = (): Place => ({
  path: location.pathname,
  query: new URLSearchParams(location.search),
})
/** The current place. */
export const place = signal<Place>(current())

/** Functions that return a question if leaving the page would lose something. */
const guards = new Set<() => string | undefined>()
/**
 * Asks for confirmation before the page is left, if something would be lost, such as changes of a
 * form. The browser's history buttons leave a page of the console without confirmation.
 * @param question returns the question for the user, or undefined if the page may be left.
 * @returns a function that removes the guard.
 */
export function guardLeaving(question: () => string | undefined): () => void {
  guards.add(question)
  return () => void guards.delete(question)
}
/**
 * Lets the browser ask for confirmation before the tab is closed or reloaded. Navigation within the
 * console does not ask.
 * @param isNeeded returns whether something would be lost.
 * @returns a function that removes the guard.
 */
export function guardUnload(isNeeded: () => boolean): () => void {
  const ask = (event: BeforeUnloadEvent): void => {
    if (isNeeded()) event.preventDefault()
  }
  addEventListener('beforeunload', ask)
  return () => removeEventListener('beforeunload', ask)
}
/** Returns the first question that must be answered before the page is left. */
const openQuestion = (): string | undefined => {
  for (const question of guards) {
    const asked = question()
    if (asked !== undefined) return asked
  }
  return undefined
}

/**
 * Goes to a URL of the console.
 * @param options `replace` replaces the current entry of the history; `keep` keeps the scroll
 * position, for a changed filter or tab.
 */
export function go(
  href: string,
  { replace = false, keep = false }: { readonly replace?: boolean; readonly keep?: boolean } = {},
): void {
  const target = new URL(href, location.href)
  const question = target.pathname === location.pathname ? undefined : openQuestion()
  if (question !== undefined && !confirm(question)) return
  if (replace) history.replaceState(history.state, '', target)
  else {
    history.replaceState({ scroll: scrollY }, '')
    history.pushState({}, '', target)
  }
  place.value = current()
  if (!keep) scrollTo(0, 0)
}

/** Changes query parameters of the current place. `undefined` and '' remove a parameter. */
export function setQuery(
  changes: Readonly<Record<string, string | undefined>>,
  { push = false }: { readonly push?: boolean } = {},
): void {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes))
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  const text = query.toString()
  go(`${location.pathname}${text === '' ? '' : `?${text}`}${location.hash}`, {
    replace: !push,
    keep: true,
  })
}

/**
 * Handles the browser's history buttons, clicks on links of the console, and the unloading of the
 * page.
 * @param isOurs returns whether a path belongs to the console.
 */
export function startRouter(isOurs: (path: string) => boolean): void {
  history.scrollRestoration = 'manual'
  addEventListener('popstate', ({ state }) => {
    place.value = current()
    const { scroll = 0 } = (state ?? {}) as { scroll?: number }
    requestAnimationFrame(() => scrollTo(0, scroll))
  })
  addEventListener('beforeunload', (event) => {
    if (openQuestion() !== undefined) event.preventDefault()
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link?.target !== '' || link.hasAttribute('download')) return
    const target = new URL(link.href, location.href)
    if (target.origin !== location.origin || !isOurs(target.pathname)) return
    if (target.pathname === location.pathname && target.hash !== '') return
    event.preventDefault()
    go(target.href)
  })
}
