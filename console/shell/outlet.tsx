/** Loads the module of the current page, and shows the page. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button, LinkButton } from '../design/button.tsx'
import { Boundary, Empty, Notice, Skeleton } from '../design/states.tsx'
import { matchPath } from '../router/match.ts'
import { loadPart, MissingPart } from '../router/part.ts'
import { isOfProject, type Route } from '../router/route.ts'
import { currentUrl } from '../router/router.ts'
import { routes } from '../router/routes.ts'
import { Page, type PageProps } from './page.tsx'
import { current, isShutOut, mayOpen, wasSignedIn } from './session.ts'
import { shellText as text } from './text.ts'

const loaded = new Map<Route, ComponentType<PageProps>>()

/** Returns the route of a path with its parameters. */
function routeOfPath(path: string) {
  for (const route of routes) {
    const params = matchPath(route.path, path)
    if (params) return { route, params }
  }
  return undefined
}

/**
 * Preloads the module and the data of the first page, before the session is loaded. The data is
 * loaded only if somebody was signed in before. A failure is handled when the page is shown.
 */
export function preloadPage(path: string, query: URLSearchParams): void {
  const found = routeOfPath(path)
  if (!found) return
  const { route, params } = found
  route.load().catch(() => {})
  if (wasSignedIn()) route.early?.(params, query)
}
/**
 * Loads the module of a page. Returns undefined while it is being loaded, or the error if it is
 * missing.
 */
function usePageModule(route: Route | undefined): ComponentType<PageProps> | Error | undefined {
  const [missing, setMissing] = useState<{ readonly route: Route; readonly error: Error }>()
  const [, setCount] = useState(0)
  useEffect(() => {
    if (!route || loaded.has(route)) return
    const isWanted = () => routeOfPath(currentUrl.peek().path)?.route === route
    loadPart(route.path, route.load, isWanted).then(
      ({ default: page }) => {
        loaded.set(route, page)
        setCount((count) => count + 1)
      },
      (error: unknown) => {
        if (!(error instanceof MissingPart)) throw error
        setMissing({ route, error })
      },
    )
  }, [route])
  if (!route) return undefined
  return loaded.get(route) ?? (missing?.route === route ? missing.error : undefined)
}

/** Shows the page of the current URL. */
export function Outlet() {
  const { path } = currentUrl.value
  const found = routeOfPath(path)
  const route = found?.route
  const Shown = usePageModule(route)
  if (Shown instanceof Error)
    return (
      <Notice tone="warn">
        <p>{Shown.message}</p>
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
  const ofProject = isOfProject(route.path)
  if (ofProject && isShutOut.value)
    return (
      <Page title={text.noSuchProject}>
        <Empty icon="keys" title={text.noSuchProject}>
          <p>{text.noSuchProjectHint}</p>
          <LinkButton href="/organization/projects">{text.projects}</LinkButton>
        </Empty>
      </Page>
    )
  if (permission && (current.value || !ofProject) && !mayOpen(route))
    return (
      <Page title={text.notAllowed}>
        <Empty icon="keys" title={text.notAllowed}>
          <p>{(ofProject ? text.notAllowedHint : text.notAllowedOrganization)(permission)}</p>
        </Empty>
      </Page>
    )
  return (
    <Boundary key={path}>
      {Shown ? (
        <Shown params={found.params} />
      ) : (
        <div class="page">
          <Skeleton lines={6} />
        </div>
      )}
    </Boundary>
  )
}
