/** Shows the page of the current place, and loads its module first. */
import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button, LinkButton } from '../design/button.tsx'
import { Boundary, Empty, Notice, Skeleton } from '../design/states.tsx'
import { matchPath } from '../router/match.ts'
import type { Route } from '../router/route.ts'
import { place } from '../router/router.ts'
import { routes } from '../router/routes.ts'
import { Page, type PageProps } from './page.tsx'
import { current, may } from './session.ts'
import { shellText as text } from './text.ts'

/** Whether a module of this version can no longer be loaded, because the service was updated. */
const outdated = signal(false)

const RELOADED = 'console.reloaded'
const loaded = new Map<Route, ComponentType<PageProps>>()

/**
 * Loads the module of a page. After an upgrade its file may be gone: the console then reloads once,
 * and asks the user if that did not help.
 */
async function moduleOf(route: Route): Promise<ComponentType<PageProps> | undefined> {
  const known = loaded.get(route)
  if (known) return known
  try {
    const { default: page } = await route.load()
    loaded.set(route, page)
    sessionStorage.removeItem(RELOADED)
    return page
  } catch (error) {
    console.error(error)
    if (navigator.onLine && sessionStorage.getItem(RELOADED) === null) {
      sessionStorage.setItem(RELOADED, '1')
      location.reload()
    } else outdated.value = true
    return undefined
  }
}

/** Returns the route of a path with its parameters. */
function routeOfPath(path: string) {
  for (const route of routes) {
    const params = matchPath(route.path, path)
    if (params) return { route, params }
  }
  return undefined
}

/**
 * Begins to load the module and the data of the first page, before it is known who is signed in. A
 * failure is handled when the page is shown.
 */
export function preloadPage(path: string, query: URLSearchParams): void {
  const found = routeOfPath(path)
  if (!found) return
  const { route, params } = found
  route.load().catch(() => {})
  route.early?.(params, query)
}

/** The page of the current place. */
export function Outlet() {
  const { path } = place.value
  const found = routeOfPath(path)
  const [, setCount] = useState(0)
  const route = found?.route
  useEffect(() => {
    if (route && !loaded.has(route)) void moduleOf(route).then(() => setCount((n) => n + 1))
  }, [route])
  if (outdated.value)
    return (
      <Notice tone="warn">
        <p>{text.updated}</p>
        <Button onClick={() => location.reload()}>{text.reload}</Button>
      </Notice>
    )
  if (!found || !route)
    return (
      <Page title={text.notFound}>
        <Empty title={text.notFoundHint}>
          <LinkButton href="/" icon="home">
            {text.toHome}
          </LinkButton>
        </Empty>
      </Page>
    )
  const { permission } = route
  if (permission && route.path.startsWith('/p/') && current.value && !may(permission))
    return (
      <Page title={text.notAllowed}>
        <Empty icon="keys" title={text.notAllowed}>
          <p>{text.notAllowedHint(permission)}</p>
        </Empty>
      </Page>
    )
  const Shown = loaded.get(route)
  return (
    <Boundary key={path}>
      {Shown ? <Shown params={found.params} /> : <Skeleton lines={6} />}
    </Boundary>
  )
}
