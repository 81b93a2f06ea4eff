/** The layout of a page: its title, its actions and its content. */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isolate } from '../../client/isolate.ts'
import { Button } from '../design/button.tsx'
import type { IconName } from '../design/icons.tsx'
import { currentUrl } from '../router/router.ts'
import { useCommands } from './shortcuts.ts'
import { shellText as text } from './text.ts'

/** The props of every page: the parameters of its URL. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>
}
/** A breadcrumb: a link to a parent page. */
export interface Crumb {
  readonly label: string
  readonly href: string
}

/** The path whose heading last received the focus. */
let announced = location.pathname

/**
 * Lays out a page. When the page is shown after another one, its heading receives the focus, so
 * that screen readers announce it.
 */
export function Page({
  title,
  heading,
  crumbs = [],
  actions,
  full = false,
  wide = false,
  children,
}: {
  /** Title of the tab, and the heading unless `heading` is given. */
  readonly title: string
  readonly heading?: ComponentChildren
  readonly crumbs?: readonly Crumb[]
  readonly actions?: ComponentChildren
  /** Whether the page uses the whole height, for pages with their own scrollable areas. */
  readonly full?: boolean
  /** Whether the page is wider on large screens, for an editor, a graph or many columns. */
  readonly wide?: boolean
  readonly children: ComponentChildren
}) {
  const top = useRef<HTMLHeadingElement>(null)
  const { path } = currentUrl.value
  useEffect(() => {
    document.title = `${isolate(title)} · ${document.documentElement.dataset['product'] ?? ''}`
  }, [title])
  // The focus moves before the page is shown, so that it is never lost between two pages.
  useLayoutEffect(() => {
    if (announced === path) return
    announced = path
    top.current?.focus({ preventScroll: true })
  }, [path])
  return (
    <div class={['page', full && 'full', wide && 'wide'].filter(Boolean).join(' ')}>
      <header class="page-head">
        <div class="grow">
          {crumbs.length > 0 && (
            <nav class="crumbs small" aria-label={text.breadcrumb}>
              {crumbs.map(({ label, href }) => (
                <a key={href} href={href} class="user-text">
                  {label}
                </a>
              ))}
            </nav>
          )}
          <h1 ref={top} tabIndex={-1} class="user-text">
            {heading ?? title}
          </h1>
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** An action of a page: a button in the page header, and a command with a key. */
export function PageAction({
  label,
  icon = 'plus',
  keys,
  primary = true,
  onRun,
}: {
  readonly label: string
  readonly icon?: IconName
  /** The key, such as `c`. */
  readonly keys: string
  readonly primary?: boolean
  readonly onRun: () => void
}) {
  const latest = useRef(onRun)
  latest.current = onRun
  useCommands([{ id: `page.${keys}`, label, icon, keys, run: () => latest.current() }], [label])
  return (
    <Button {...(primary && { kind: 'primary' })} icon={icon} shortcut={keys} onClick={onRun}>
      {label}
    </Button>
  )
}
