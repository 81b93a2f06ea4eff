/**
 * The current URL of the console, as a signal that follows the browser's URL. All state that a link
 * can contain is in the URL.
 *
 * Invariant: the URL changes only through `go`, a link or the browser's own buttons, and
 * `currentUrl` follows it.
 */
import { signal } from '@preact/signals'

/** A path with its query parameters. */
export interface PageUrl {
  readonly path: string
  readonly query: URLSearchParams
}

const readUrl = (): PageUrl => ({
  path: location.pathname,
  query: new URLSearchParams(location.search),
})
/** The current path and query parameters. */
export const currentUrl = signal<PageUrl>(readUrl())

type Question = () => string | undefined
/** Kinds of navigation for which a guard prompts, in addition to those that the browser starts. */
interface Ways {
  /** Calls to `go` by the program, such as those of a dialog after its input was sent. */
  readonly calls?: boolean
  /**
   * Switching to another tab of the page. False for input that is kept while another tab is shown.
   */
  readonly tabs?: boolean
  /**
   * Other changes of the query parameters, false by default. True for a dialog, because a parameter
   * can open it.
   */
  readonly queries?: boolean
}
/** The question of each active guard, with the kinds of navigation for which the guard prompts. */
const guards = new Map<Question, Ways>()
/**
 * Asks for confirmation before the user leaves the page or its current tab, if something would be
 * lost, such as changes to a form. This applies to links, to `go`, to the history buttons, and to
 * closing or reloading the browser's tab. Drafts that are kept need no guard.
 * @param question returns the question for the user, or undefined if the page may be left.
 * @param ways the kinds of navigation for which the guard prompts; all by default.
 * @returns a function that removes the guard.
 */
export function guardLeaving(question: Question, ways: Ways = {}): () => void {
  guards.set(question, ways)
  return () => void guards.delete(question)
}
/**
 * Lets the browser ask for confirmation before the tab is closed or reloaded. Navigation within the
 * console needs no confirmation.
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
/**
 * Returns the first question that must be answered before the page is left; undefined for none.
 * @param way how the page would be left. By default, the browser leaves the console.
 */
const openQuestion = (way: Ways = {}): string | undefined => {
  for (const [question, { calls = true, tabs = true, queries = false }] of guards) {
    const asks = (calls || !way.calls) && (tabs || !way.tabs) && (queries || !way.queries)
    const asked = asks ? question() : undefined
    if (asked !== undefined) return asked
  }
  return undefined
}
/**
 * Returns the first question that must be answered before another URL is shown; undefined for none.
 */
const questionBefore = ({ path, query }: PageUrl, calls: boolean): string | undefined => {
  const shown = currentUrl.peek()
  if (path !== shown.path) return openQuestion({ calls })
  if (query.get('tab') !== shown.query.get('tab')) return openQuestion({ calls, tabs: true })
  return query.toString() === shown.query.toString()
    ? undefined
    : openQuestion({ calls, queries: true })
}

/** The data that the console stores in an entry of the browser's history. */
interface Entry {
  /** Position among the console's entries. Two positions give the distance between two entries. */
  readonly at?: number
  readonly scroll?: number
  /** Scroll position of the page's virtual list. */
  readonly list?: number
}
const entry = (): Entry => (history.state ?? {}) as Entry
const virtualList = (): Element | null => document.querySelector('main .virtual')
/** Position of the entry whose page is shown. */
let shownAt = 0

/**
 * Goes to a URL of the console.
 * @param options `replace` replaces the current entry of the history. `keep` keeps the scroll
 * position, as when a filter or tab changes. `chosen` means that the person chose the target, for
 * example with a link, so that guards that ignore calls by the program prompt as well.
 */
export function go(
  href: string,
  {
    replace = false,
    keep = false,
    chosen = false,
  }: { readonly replace?: boolean; readonly keep?: boolean; readonly chosen?: boolean } = {},
): void {
  const target = new URL(href, location.href)
  const question = questionBefore({ path: target.pathname, query: target.searchParams }, !chosen)
  if (question !== undefined && !confirm(question)) return
  if (replace) history.replaceState(history.state, '', target)
  else {
    const list = virtualList()?.scrollTop ?? 0
    history.replaceState({ ...entry(), scroll: scrollY, list }, '')
    history.pushState({ at: ++shownAt }, '', target)
  }
  currentUrl.value = readUrl()
  if (!keep) scrollTo(0, 0)
}

/** Changes query parameters of the current URL. `undefined` and '' remove a parameter. */
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
 * Handles the browser's history buttons, clicks on links within the console, and page unloads.
 * @param isOurs returns whether a path belongs to the console.
 */
export function startRouter(isOurs: (path: string) => boolean): void {
  history.scrollRestoration = 'manual'
  shownAt = entry().at ?? 0
  history.replaceState({ ...entry(), at: shownAt }, '')
  /**
   * Whether the next `popstate` results from going back to the shown page, because the person
   * declined to leave it.
   */
  let returns = false
  addEventListener('popstate', () => {
    if (returns) {
      returns = false
      return
    }
    // An entry without a position was created by the browser just now, for a link within the page.
    // Its position is the one after the shown entry.
    const { at = shownAt + 1, scroll = 0, list = 0 } = entry()
    const question = questionBefore(readUrl(), false)
    if (question !== undefined && at !== shownAt && !confirm(question)) {
      returns = true
      history.go(shownAt - at)
      return
    }
    shownAt = at
    history.replaceState({ ...entry(), at }, '')
    currentUrl.value = readUrl()
    requestAnimationFrame(() => {
      scrollTo(0, scroll)
      if (list > 0) virtualList()?.scrollTo(0, list)
    })
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
    go(target.href, { chosen: true })
  })
}
