/**
 * Who is signed in, what the person may do in the current project, and which project that is.
 *
 * Invariant: permissions decide only what is offered. The service checks every request itself.
 */
import { computed, effect, signal } from '@preact/signals'
import { ApiError, type CallReply, call, send, whenSignedOut } from '../api/client.ts'
import { forgetAnswers } from '../api/query.ts'
import { go, place } from '../router/router.ts'
import { covers } from './permissions.ts'

/** A project that the person can enter. */
export interface ProjectEntry {
  readonly id: string
  readonly handle: string
  readonly name: string
}
/** The signed-in person. */
export interface Session {
  readonly name: string
  readonly projects: readonly ProjectEntry[]
}

/** The session: `undefined` while it is loaded, null when nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined)
/** The handle or id of the current project; '' outside of projects. */
export const project = computed(
  () => /^\/p\/([^/]+)/.exec(place.value.path)?.[1]?.replace(/.+/, decodeURIComponent) ?? '',
)
/** The principal of the person in the current project, with its permissions. */
export const me = signal<CallReply<'me.get'> | undefined>(undefined)

/** Loads the session. */
export async function loadSession(): Promise<void> {
  const answer = await send('GET', '/v1/projects?limit=200').catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 401) return undefined
    throw error
  })
  if (!answer) {
    session.value = null
    return
  }
  const { items } = (await answer.json()) as { items: ProjectEntry[] }
  session.value = { name: '', projects: items }
}

/** Goes to the page for signing in, which returns to the current place. */
export function askToSignIn(): void {
  const { pathname, search } = location
  if (pathname === '/sign-in') return
  go(`/sign-in?return=${encodeURIComponent(pathname + search)}`, { replace: true })
}

/** Follows the session and the current project. Called once. */
export function followSession(): void {
  whenSignedOut(() => {
    if (session.peek() === null) return
    session.value = null
    me.value = undefined
    forgetAnswers()
  })
  effect(() => {
    const handle = project.value
    me.value = undefined
    if (handle === '' || !session.value) return
    void call('me.get', { project: handle })
      .then((answer) => {
        if (project.peek() === handle) me.value = answer
      })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error
      })
  })
}

/**
 * Returns whether the person holds a permission in the current project, such as `runs.operate`.
 * False until that is known.
 */
export const may = (permission: string): boolean =>
  (me.value?.permissions ?? []).some((granted) => covers(granted, permission))

/**
 * Signs in with an API key or a personal token.
 * @throws ApiError if it is not valid.
 */
export async function signIn(credential: string): Promise<void> {
  localStorage.setItem('console.key', credential)
  await send('GET', '/v1/projects')
}
/** Ends the session of this browser. */
export async function signOut(): Promise<void> {
  localStorage.removeItem('console.key')
  session.value = null
  me.value = undefined
  forgetAnswers()
}
