/**
 * Keeps the keyboard focus in the page. A browser moves it to the body when the focused element
 * disappears or is disabled, for example when a row is deleted, a form is answered, a dialog
 * replaces the focused element, or a button is disabled after saving.
 *
 * Invariants:
 * K1. The focus moves only after such a change, and only if no other code has set it since.
 * K2. An element that lost the focus through a click elsewhere does not regain it.
 */
interface Focused {
  readonly element: Element
  /** The ancestors of the element, nearest first. */
  readonly around: readonly Element[]
}

function focusedAt(element: Element): Focused {
  const around: Element[] = []
  for (let next = element.parentElement; next; next = next.parentElement) around.push(next)
  return { element, around }
}
const isLost = (): boolean =>
  document.activeElement === null || document.activeElement === document.body
const isGone = ({ element }: Focused): boolean =>
  !element.isConnected || element.matches(':disabled')
const FOCUSABLE = ':is(a[href], button, input, select, textarea, [tabindex]):not(:disabled)'

/**
 * Returns the element that receives the focus after `element` has lost it. If `element` was
 * disabled, this is the focusable element before it. If `element` was removed, this is the first
 * control of an open dialog. Without an open dialog, it is a grid, list or region around `element`,
 * or else the content of the page.
 */
function nextTo({ element, around }: Focused): HTMLElement | null {
  const dialog = [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-1)
  const all = [...(dialog ?? document).querySelectorAll<HTMLElement>(FOCUSABLE)]
  if (element.isConnected)
    return (
      all.findLast(
        (one) =>
          one.tabIndex >= 0 &&
          one.checkVisibility() &&
          one.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING,
      ) ?? null
    )
  if (dialog) return all[0] ?? null
  const region = around.find(
    (one): one is HTMLElement =>
      one instanceof HTMLElement && one.isConnected && one.matches('[tabindex]:not(main)'),
  )
  return region ?? document.querySelector<HTMLElement>('main h1[tabindex], main')
}

/** Starts to preserve the focus. Must be called only once. */
export function keepFocus(): void {
  let last: Focused | undefined
  let planned = false
  const place = (): void => {
    planned = false
    if (last && isGone(last) && isLost()) nextTo(last)?.focus({ preventScroll: true })
  }
  addEventListener('focusin', ({ target }) => {
    if (target instanceof Element) last = focusedAt(target)
  })
  addEventListener('focusout', () =>
    queueMicrotask(() => {
      // If the element is still focusable, the person has left it on purpose.
      if (last && !isGone(last) && isLost()) last = undefined
    }),
  )
  new MutationObserver(() => {
    if (planned || !last || !isGone(last)) return
    planned = true
    // The effects of components, which may set the focus, run after the next frame.
    requestAnimationFrame(() => setTimeout(place))
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] })
}
