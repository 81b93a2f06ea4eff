/** The whole console: the sign-in page, or the frame with the current page. */
import { useEffect } from 'preact/hooks'
import { LinkButton } from '../design/button.tsx'
import { Boundary, Empty, Skeleton } from '../design/states.tsx'
import { Toasts } from '../design/toast.tsx'
import { SignIn } from '../pages/sign-in/sign-in.tsx'
import { fillPath } from '../router/match.ts'
import { isOfProject } from '../router/route.ts'
import { currentUrl, go } from '../router/router.ts'
import { routes } from '../router/routes.ts'
import { Frame } from './frame.tsx'
import { Outlet } from './outlet.tsx'
import { Page } from './page.tsx'
import { paletteOpen } from './palette.tsx'
import { mayOpen, project, projects, signedIn } from './session.ts'
import { type Command, listenForKeys, useCommands } from './shortcuts.ts'
import { shellText as text } from './text.ts'
import { store, stored } from './theme.ts'

const LAST_PROJECT = 'console.project'

/**
 * The page at `/`: redirects to the last visited project, otherwise to the first one. Without a
 * project, shows a notice.
 */
function Start() {
  const last = stored(LAST_PROJECT)
  const target = projects.value.find(({ handle }) => handle === last) ?? projects.value[0]
  useEffect(() => {
    if (target) go(`/p/${encodeURIComponent(target.handle)}`, { replace: true })
  }, [target])
  if (target) return <Skeleton />
  return (
    <Page title={text.projects}>
      <Empty title={text.noProjects}>
        <p>{text.noProjectsHint}</p>
        <LinkButton href="/organization/projects">{text.projects}</LinkButton>
      </Empty>
    </Page>
  )
}

/** Registers the keyboard shortcuts of the pages. */
function usePageKeys(): void {
  const current = project.value
  const own = routes.flatMap((route): Command[] => {
    const { path, entry } = route
    if (!entry?.keys || (isOfProject(path) && current === '') || !mayOpen(route)) return []
    const href = fillPath(path, { project: current })
    // An empty label hides the command in the palette, which already lists the page.
    return [{ id: href, label: '', keys: entry.keys, run: () => go(href) }]
  })
  useCommands(own, [current, own.length])
}

function SignedIn() {
  usePageKeys()
  useEffect(() => {
    if (project.value !== '') store(LAST_PROJECT, project.value)
  }, [project.value])
  return <Frame>{currentUrl.value.path === '/' ? <Start /> : <Outlet />}</Frame>
}

/** The root component: the sign-in page, or the frame with the current page. */
export function App() {
  useEffect(
    () =>
      listenForKeys(() => {
        paletteOpen.value = !paletteOpen.peek()
      }),
    [],
  )
  const known = signedIn.value
  if (currentUrl.value.path === '/sign-in' || known === false)
    return (
      <Boundary>
        <SignIn />
        <Toasts />
      </Boundary>
    )
  if (known === undefined)
    return (
      <div class="alone">
        <Skeleton />
      </div>
    )
  return <SignedIn />
}
