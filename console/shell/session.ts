/**
 * The signed-in person, the current project, and the person's permissions in it.
 *
 * Invariant: permissions decide only what is offered. The service checks every request itself.
 */
import { computed, effect, signal } from '@preact/signals'
import type { ConsoleIdentity } from '../../protocol/access/console-session.ts'
import { onChange } from '../api/changes.ts'
import { ApiError, send, setForbiddenHandler, setSignedOutHandler } from '../api/client.ts'
import { connection, forgetLive, live, setLiveOwner } from '../api/live.ts'
import { forgetResponses } from '../api/query.ts'
import { isOfProject, type Route } from '../router/route.ts'
import { currentUrl, go } from '../router/router.ts'
import { draftOwner, removeDrafts, removeOldDrafts } from './drafts.ts'
import { covers } from './permissions.ts'
import { store, stored } from './theme.ts'

const SESSION = '/v1/auth/console/session'

/** The signed-in person and the sign-in methods; undefined until the session is loaded. */
export const identity = signal<ConsoleIdentity | undefined>(undefined)
/** Whether somebody is signed in; undefined until the session is loaded. */
export const signedIn = computed(() => identity.value?.signed_in)
/** The projects that the person can enter, sorted by name. */
export const projects = computed(() => identity.value?.projects ?? [])
/** The handle or id of the current project in the URL; '' outside of projects. */
export const project = computed(
  () => /^\/p\/([^/]+)/.exec(currentUrl.value.path)?.[1]?.replace(/.+/, decodeURIComponent) ?? '',
)
/**
 * The current project as the session lists it, with the person's principal and permissions.
 * Undefined if the session does not list it.
 */
export const current = computed(() =>
  projects.value.find(({ handle, id }) => project.value === handle || project.value === id),
)
/** The last project in the URL that the session did not list even after a reload. */
const notFound = signal('')
/**
 * Whether the project in the URL does not exist, or is not accessible to the person. False if the
 * session does not list all of the person's projects.
 */
export const isShutOut = computed(
  () =>
    signedIn.value === true &&
    !current.value &&
    !identity.value?.more_projects &&
    project.value !== '' &&
    notFound.value === project.value,
)

/**
 * Whether the person may not see the project in the URL. No live change announces that this ends.
 */
const isBarred = computed(() => (current.value ? !may('project.view') : isShutOut.value))

const SIGNED_IN = 'console.signed-in'
/**
 * Whether somebody was signed in when this browser last loaded the session. The flag is stored,
 * because scripts cannot read the cookie.
 */
export const wasSignedIn = (): boolean => stored(SIGNED_IN) !== undefined

let loads = 0
/**
 * Loads the session. The response to an older request never replaces a newer session.
 * @throws ApiError if the request fails.
 */
export async function loadSession(): Promise<void> {
  const load = ++loads
  const response = await send('GET', SESSION)
  const known = (await response.json()) as ConsoleIdentity
  if (load !== loads) return
  setLiveOwner(known.session?.id ?? '')
  identity.value = known
}

/** Goes to the sign-in page, which returns to the current page afterwards. */
function askToSignIn(): void {
  const { pathname, search } = location
  if (pathname === '/sign-in') return
  go(`/sign-in?return=${encodeURIComponent(pathname + search)}`, { replace: true })
}

/** Clears the identity and all loaded data of the person. */
function forget(): void {
  const known = identity.peek()
  if (known) identity.value = { signed_in: false, ways: known.ways }
  forgetResponses()
  forgetLive()
}

/**
 * Reloads the session with its permissions. If the request fails, changes nothing and returns
 * false.
 */
async function refresh(): Promise<boolean> {
  const rights = (): string => JSON.stringify(projects.peek())
  const before = rights()
  try {
    await loadSession()
    if (signedIn.peek() === false) forget()
    // Subscriptions that were refused may be permitted now, so they are retried.
    else if (rights() !== before) live().retry()
    return true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return false
  }
}
/**
 * Kinds of changes that may affect the person's permissions. `refused` means that the subscription
 * to changes was refused. `*` means that changes may have been missed between the loading of
 * the session and the beginning of the subscription.
 */
const OF_PERMISSIONS: ReadonlySet<string> = new Set([
  'assignment',
  'principal',
  'role',
  'refused',
  '*',
])
/**
 * Delays between a change and the reloads of the session. The second reload is needed if a gateway
 * applies the change only after this page has received it.
 */
const RELOADS_MS = [200, 2000]
/** Interval at which the session is reloaded while the person may not see the project. */
const BARRED_MS = 5000
/** Delay before the session is reloaded after a failure. */
const RETRY_MS = 2000

/**
 * Goes to the sign-in page when the session has ended, and reloads the permissions when they may
 * have changed. Called once.
 */
export function followSession(): void {
  removeOldDrafts()
  // Drafts belong to the principal in the current project. If the session lists none, they belong
  // to the principal in the organization, or to the session.
  effect(() => {
    const known = current.value ?? identity.value?.organization
    draftOwner.value = known?.principal.id ?? identity.value?.session?.id ?? ''
  })
  let planned: readonly ReturnType<typeof setTimeout>[] = []
  const refreshSoon = (): void => {
    if (!identity.peek()?.signed_in) return
    for (const one of planned) clearTimeout(one)
    planned = RELOADS_MS.map((ms) => setTimeout(() => void refresh(), ms))
  }
  setSignedOutHandler(() => {
    if (identity.peek()?.signed_in) forget()
  })
  setForbiddenHandler(refreshSoon)
  effect(() => {
    if (signedIn.value === undefined) return
    store(SIGNED_IN, signedIn.value ? 'yes' : undefined)
    if (!signedIn.value) askToSignIn()
  })
  effect(() => {
    if (connection.value.state === 'refused') refreshSoon()
  })
  const entered = computed(() => (current.value ? project.value : ''))
  effect(() => {
    const name = entered.value
    if (name === '') return undefined
    return onChange({ project: name }, (kind) => {
      if (OF_PERMISSIONS.has(kind)) refreshSoon()
    })
  })
  // Without access to the project, the page receives no changes. The session is therefore reloaded
  // at each navigation and at intervals.
  effect(() => {
    if (!isBarred.value || !currentUrl.value) return undefined
    void refresh()
    const timer = setInterval(() => void refresh(), BARRED_MS)
    return () => clearInterval(timer)
  })
  // An unknown project may have been created since the session was loaded, so the session is
  // reloaded.
  effect(() => {
    const name = project.value
    if (!signedIn.value || current.value || name === '' || notFound.peek() === name) return
    const look = (): void =>
      void refresh().then((isLoaded) => {
        if (project.peek() !== name) return
        if (isLoaded) notFound.value = name
        else setTimeout(look, RETRY_MS)
      })
    look()
  })
}

/**
 * Signs in, or adds a credential to the session.
 * @param way an API key or personal token, or the code of a sign-in link.
 * @throws ApiError if the credential or code is not valid, or the request fails.
 */
export async function signIn(
  way: { readonly credential: string } | { readonly code: string },
): Promise<void> {
  const type = 'application/json'
  await send('POST', '/v1/auth/console/sessions', JSON.stringify(way), { type })
  await loadSession()
}
/** Ends the session of this browser, and removes the drafts of the person from the browser. */
export async function signOut(): Promise<void> {
  await send('DELETE', SESSION)
  const { projects: entered = [], organization, session } = identity.peek() ?? {}
  const owners = [...entered, organization].map((of) => of?.principal.id)
  for (const owner of [...owners, session?.id]) if (owner !== undefined) removeDrafts(owner)
  forget()
}

/** Returns whether the person holds a permission in the current project, such as `runs.operate`. */
export const may = (permission: string): boolean =>
  (current.value?.permissions ?? []).some((granted) => covers(granted, permission))
/** Returns whether the person holds a permission in the organization. */
export const mayInOrganization = (permission: string): boolean =>
  (identity.value?.organization?.permissions ?? []).some((granted) => covers(granted, permission))
/** Returns whether the person holds the permission of a page, if it requires one. */
export const mayOpen = ({ path, permission }: Pick<Route, 'path' | 'permission'>): boolean =>
  permission === undefined || (isOfProject(path) ? may(permission) : mayInOrganization(permission))
