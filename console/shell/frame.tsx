/** The frame around every page: navigation, project, search, connection and account. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { connection } from '../api/live.ts'
import { Button, IconButton } from '../design/button.tsx'
import { Icon } from '../design/icons.tsx'
import { Menu } from '../design/overlay.tsx'
import { Toasts } from '../design/toast.tsx'
import { fillPath } from '../router/match.ts'
import { isOfProject, type Route } from '../router/route.ts'
import { currentUrl, go } from '../router/router.ts'
import { routes } from '../router/routes.ts'
import { formatNumber } from '../text/format.ts'
import { badges } from './badges.ts'
import { Palette, paletteOpen } from './palette.tsx'
import { current, identity, mayOpen, project, projects, signOut } from './session.ts'
import { shellText as text } from './text.ts'
import { theme } from './theme.ts'
import { useWaitingQuestions } from './waiting.ts'

/** Whether the navigation is open on a narrow screen. */
const navigationOpen = signal(false)

function Navigation() {
  useWaitingQuestions()
  const handle = project.value
  const { path } = currentUrl.value
  const offered = routes.filter(
    (route): route is Route & Required<Pick<Route, 'entry'>> =>
      route.entry !== undefined && (handle !== '' || !isOfProject(route.path)) && mayOpen(route),
  )
  const groups = Map.groupBy(offered, ({ entry }) => entry.group)
  return (
    <nav
      class={navigationOpen.value ? 'side open' : 'side'}
      aria-label={text.navigation}
      onClick={() => {
        navigationOpen.value = false
      }}
    >
      {[...groups].map(([group, entries]) => (
        <section key={group}>
          <h2 class="small soft">{group}</h2>
          <ul>
            {entries.map(({ path: pattern, entry }) => {
              const href = fillPath(pattern, { project: handle })
              const isHome = pattern === '/p/:project'
              const here = path === href || (!isHome && path.startsWith(`${href}/`))
              return (
                <li key={href}>
                  <a class="side-link" href={href} aria-current={here ? 'page' : undefined}>
                    <Icon name={entry.icon} />
                    <span class="grow">{entry.label}</span>
                    {(badges.value[pattern] ?? 0) > 0 && (
                      <span class="badge accent">{formatNumber(badges.value[pattern] ?? 0)}</span>
                    )}
                  </a>
                </li>
              )
            })}
          </ul>
        </section>
      ))}
    </nav>
  )
}

function ProjectMenu() {
  return (
    <Menu
      label={text.chooseProject}
      items={projects.value.map(({ name, handle }) => ({
        label: name,
        href: `/p/${encodeURIComponent(handle)}`,
      }))}
    >
      <span class="clip user-text project-name">{current.value?.name ?? text.chooseProject}</span>
      <Icon name="down" />
    </Menu>
  )
}

/** Indicates that the connection for live data is not established. */
function Connection() {
  const { state } = connection.value
  if (state === 'live' || state === 'idle') return null
  return (
    <span class="badge warn" role="status">
      {state === 'waiting' ? text.waiting : text.connecting}
    </span>
  )
}

const themes = [
  { name: 'system', label: text.themeSystem },
  { name: 'light', label: text.themeLight },
  { name: 'dark', label: text.themeDark },
] as const
const AccountMenu = () => (
  <Menu
    label={text.account}
    icon="user"
    items={[
      { label: identity.value?.display_name ?? text.account, icon: 'user', href: '/account' },
      ...themes.map(({ name, label }) => ({
        label,
        icon: theme.value === name ? ('check' as const) : ('theme' as const),
        onSelect: () => void (theme.value = name),
      })),
      { label: text.apiReference, icon: 'external', href: '/docs' },
      { label: text.signOut, icon: 'close', onSelect: signOut },
    ]}
  />
)

/** Lays out the frame with the page in it. */
export const Frame = ({ children }: { readonly children: ComponentChildren }) => (
  <>
    <a class="skip" href="#content">
      {text.skip}
    </a>
    <header class="top">
      <span class="narrow-only">
        <IconButton
          icon="menu"
          label={text.openNavigation}
          pressed={navigationOpen.value}
          onClick={() => {
            navigationOpen.value = !navigationOpen.value
          }}
        />
      </span>
      <a class="brand" href="/" onClick={() => go('/')}>
        {document.documentElement.dataset['product']}
      </a>
      <ProjectMenu />
      <span class="grow" />
      <Connection />
      <Button
        kind="quiet"
        icon="search"
        title={text.search}
        shortcut="Control+K"
        onClick={() => {
          paletteOpen.value = true
        }}
      >
        <span class="wide-only">{text.search}</span>
        <kbd class="wide-only">Ctrl K</kbd>
      </Button>
      <AccountMenu />
    </header>
    <Navigation />
    <main id="content" class="content" tabIndex={-1}>
      {children}
    </main>
    <Palette />
    <Toasts />
  </>
)
