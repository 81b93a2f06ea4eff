/**
 * Who is signed in, what the person may do in the current project, and which project that is.
 *
 * Invariant: permissions decide only what is offered. The service checks every request itself.
 */
import { computed, effect, signal } from '@preact/signals'
import type { ConsoleIdentity } from '../../protocol/access/console-session.ts'
import { send, whenSignedOut } from '../api/client.ts'
import { forgetLive, setLiveOwner } from '../api/live.ts'
import { forgetAnswers } from '../api/query.ts'
import { go, place } from '../router/router.ts'
import { covers } from './permissions.ts'

const SESSION = '/v1/auth/console/session'

/** Who is signed in, and the ways of signing in; undefined until it is known. */
export const identity = signal<ConsoleIdentity | undefined>(undefined)
/** Whether somebody is signed in; undefined until it is known. */
export const signedIn = computed(() => identity.value?.signed_in)
/** The projects that the person can enter, by name. */
export const projects = computed(() => identity.value?.projects ?? [])
/** The handle or id in the address of the current project; '' outside of projects. */
export const project = computed(
  () => /^\/p\/([^/]+)/.exec(place.value.path)?.[1]?.replace(/.+/, decodeURIComponent) ?? '',
)
/** The current project as the session sees it, with the person's principal and permissions. */
export const current = computed(() =>
  projects.value.find(({ handle, id }) => project.value === handle || project.value === id),
)

/**
 * Loads who is signed in.
 * @throws ApiError if the service does not answer.
 */
export async function loadSession(): Promise<void> {
  const answer = await send('GET', SESSION)
  const known = (await answer.json()) as ConsoleIdentity
  setLiveOwner(known.session?.id ?? '')
  identity.value = known
}

/** Goes to the page for signing in, which returns to the current place. */
function askToSignIn(): void {
  const { pathname, search } = location
  if (pathname === '/sign-in') return
  go(`/sign-in?return=${encodeURIComponent(pathname + search)}`, { replace: true })
}

/** Forgets the person and all data of the person. */
function forget(): void {
  const known = identity.peek()
  if (known) identity.value = { signed_in: false, ways: known.ways }
  forgetAnswers()
  forgetLive()
}

/** Asks for signing in when the session has ended. Called once. */
export function followSession(): void {
  whenSignedOut(() => {
    if (identity.peek()?.signed_in) forget()
  })
  effect(() => {
    if (signedIn.value === false) askToSignIn()
  })
}

/**
 * Signs in, or adds a credential to the session.
 * @param way an API key or personal token, or the code of a sign-in link.
 * @throws ApiError if it is not valid.
 */
export async function signIn(
  way: { readonly credential: string } | { readonly code: string },
): Promise<void> {
  const type = 'application/json'
  await send('POST', '/v1/auth/console/sessions', JSON.stringify(way), { type })
  await loadSession()
}
/** Ends the session of this browser. */
export async function signOut(): Promise<void> {
  await send('DELETE', SESSION)
  forget()
}

/** Returns whether the person holds a permission in the current project, such as `runs.operate`. */
export const may = (permission: string): boolean =>
  (current.value?.permissions ?? []).some((granted) => covers(granted, permission))
/** Returns whether the person holds a permission in the organization. */
export const mayInOrganization = (permission: string): boolean =>
  (identity.value?.organization?.permissions ?? []).some((granted) => covers(granted, permission))
