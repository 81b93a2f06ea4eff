/**
 * Sign-in to and sign-out from the console. These operations need no credential in a header, so
 * they are not rows of the table.
 *
 * Invariants:
 * N1. A browser signs in and out only from a page of the service's own origin. A sign-in is JSON,
 *     which no form of another site can send.
 * N2. Sign-ins are counted against the rate limit of their IP address.
 * N3. Adding a credential to a session changes its cookie, so an earlier cookie gains no rights.
 */
import type { ConsoleCommands } from '../../../protocol/access/console-rows.ts'
import { unauthenticated } from '../../../protocol/access/unauthenticated-rows.ts'
import type { Row } from '../../../protocol/contract.ts'
import type { Credential, Principal } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { Edge } from '../../call.ts'
import { originOf } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { organizationAt, sendNew } from '../../http/send.ts'
import { readBody } from '../../http/validate.ts'
import type { World } from '../../ports.ts'
import type { Handler } from '../../serve.ts'
import type { Caller } from '../authenticate.ts'
import { enterProject } from '../authorize.ts'
import { parseCredential } from '../keys.ts'
import { addressLimitId, countRefusal } from '../rate.ts'
import {
  newSessionCookie,
  ownOrigin,
  refuseForeignOrigin,
  sessionCookieHash,
  sessionCookieOf,
  setCookie,
} from './cookies.ts'
import { anonymousIdentity, identityOf } from './identity.ts'
import { codeHash } from './rows.ts'

const NO_STORE = { 'Cache-Control': 'no-store' } as const
const NOT_HERE =
  'Signing in needs https. Open the address of BATON_PUBLIC_URL, or use localhost on this machine.'
/** Default lifetimes of a session in milliseconds: 12 hours without use, and 7 days in total. */
const LIFETIMES = { idle: 43_200_000, lifetime: 604_800_000 } as const

type Rights =
  | Pick<Extract<Open, { readonly grant: unknown }>, 'grant'>
  | Pick<Extract<Open, { readonly link: unknown }>, 'link'>
  | Pick<Extract<Open, { readonly account: unknown }>, 'account'>
type Open = ConsoleCommands['console_session.open']['input']
/** The principal and credential that the audit log shows when the request has no caller. */
const SIGN_IN: { readonly principal: Principal; readonly credential: Credential } = {
  principal: { type: 'system', id: 'sign_in' },
  credential: { type: 'internal', id: 'sign_in' },
}

/**
 * Opens a session with these rights, or adds them to the session of the request. Returns the hash
 * of the new cookie and the header that sets it.
 * @param origin the service's own origin.
 */
export async function openSession(
  { world }: Pick<Edge, 'world'>,
  incoming: Incoming,
  origin: string,
  rights: Rights,
  by: Pick<Caller, 'principal' | 'credential'> = SIGN_IN,
): Promise<{ readonly hash: string; readonly headers: Answer['headers'] } | Refusal> {
  const { value, hash } = newSessionCookie(world)
  // The callers of this function have checked that a page of this service, or this browser, sent
  // the request.
  const joins = sessionCookieHash(world, incoming)
  const by_request = originOf(world, by, incoming)
  const { idle, lifetime } = { ...LIFETIMES, ...world.settings.console }
  const to = organizationAt(world)
  const input = {
    ...rights,
    hash,
    idle,
    lifetime,
    ...(joins !== undefined && { joins }),
    ...(by_request.ip !== undefined && { address: by_request.ip }),
    ...(by_request.user_agent !== undefined && { client: by_request.user_agent }),
  }
  const outcome = await sendNew(world, to, 'console_session.open', input, by_request)
  if (isRefusal(outcome)) return outcome
  const { expires_at, joined } = outcome.reply
  // Other gateways may have cached a session that has ended or whose cookie has changed, so they
  // must look it up again.
  if (joined) await world.forget(to.id)
  const seconds = Math.max(1, (expires_at - world.now()) / 1000)
  return { hash, headers: setCookie(world.settings, origin, 'session', value, seconds) }
}

/** Returns the right that a key or token grants, and its caller. */
async function grantOf(
  { directory, authentication }: Edge,
  text: string,
): Promise<{ readonly rights: Rights; readonly caller: Caller } | Refusal> {
  const caller = await authentication.signIn(parseCredential(text.trim()))
  if (isRefusal(caller)) return caller
  const { scope, principal, credential, proof, environment } = caller
  if (environment)
    return refuse('forbidden', undefined, 'The worker of an environment cannot sign in.')
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const project =
    scope.kind === 'project' ? enterProject(caller, known, scope.project_id) : undefined
  if (project && isRefusal(project)) return project
  const grant = {
    principal_id: principal.id,
    ...(project && { project_id: project.id }),
    key: { id: credential.id, hash: proof.hash },
  }
  return { rights: { grant }, caller }
}

const isJson = (incoming: Incoming): boolean =>
  /^application\/json\s*(;|$)/i.test(incoming.header('content-type') ?? '')

/** Handles a sign-in with a key, a token or the code of a link. */
export const signIn =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits } = edge
    const limited = await limits?.(addressLimitId(incoming.ip))
    if (limited?.refused) return limited.refused
    const host = incoming.header('host')
    const origin = ownOrigin(world.settings, host)
    if (origin === undefined) return refuse('forbidden', undefined, NOT_HERE)
    const foreign =
      incoming.header('origin') === undefined && incoming.header('cookie') === undefined
        ? undefined
        : refuseForeignOrigin(incoming, origin)
    if (foreign) return foreign
    if (!isJson(incoming))
      return refuse('unsupported_media_type', {
        content_type: incoming.header('content-type') ?? '',
      })
    const row = unauthenticated['console.sign_in'] as unknown as Row
    if (incoming.broken === 'too_large')
      return refuse('payload_too_large', { limit: row.shape.limit })
    const body = readBody(
      row,
      incoming.broken ? undefined : incoming.body,
      incoming.header('content-type'),
    )
    if (isRefusal(body)) return body
    if (!(await edge.becomesFresh())) return refuse('service_unavailable')
    const { credential, code } = body as { readonly credential?: string; readonly code?: string }
    const granted =
      credential === undefined
        ? { rights: { link: codeHash(world, code ?? '') }, caller: SIGN_IN }
        : await grantOf(edge, credential)
    if (isRefusal(granted)) return granted
    const opened = await openSession(edge, incoming, origin, granted.rights, granted.caller)
    if (isRefusal(opened)) return opened
    const identity = await identityOf(edge, opened.hash, host)
    return isRefusal(identity)
      ? identity
      : { status: 201, headers: { ...NO_STORE, ...opened.headers }, body: identity }
  }

/**
 * Returns the header that deletes the session cookie, or no header if the request has no cookies.
 */
function forgetCookie({ settings }: World, incoming: Incoming): Answer['headers'] {
  const origin = ownOrigin(settings, incoming.header('host'))
  return origin === undefined || incoming.header('cookie') === undefined
    ? {}
    : setCookie(settings, origin, 'session', '', 0)
}

/** Describes the session of a request, or only the ways of signing in if it has no session. */
export const showSession =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits, authentication } = edge
    const host = incoming.header('host')
    const signedOut = { status: 200, headers: NO_STORE, body: anonymousIdentity(world, host) }
    const hash = sessionCookieOf(world, incoming)
    if (hash === undefined || isRefusal(hash)) return signedOut
    if (!(await edge.becomesFresh())) return refuse('service_unavailable')
    const identity = await identityOf(edge, hash, host)
    if (!isRefusal(identity)) {
      const caller = await authentication.console.find(hash, {})
      if (!isRefusal(caller)) authentication.note(caller)
      return { status: 200, headers: NO_STORE, body: identity }
    }
    if (identity.refused !== 'unauthorized') return identity
    const refused = await countRefusal(limits, incoming.ip, identity)
    return refused === identity
      ? { ...signedOut, headers: { ...NO_STORE, ...forgetCookie(world, incoming) } }
      : refused
  }

/** Handles a sign-out. Without a session, only the cookie is deleted. */
export const signOut =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, authentication } = edge
    const headers = { ...NO_STORE, ...forgetCookie(world, incoming) }
    const hash = sessionCookieOf(world, incoming)
    if (hash === undefined) return { status: 204, headers }
    if (isRefusal(hash)) return hash
    const caller = await authentication.console.find(hash, {})
    const to = organizationAt(world)
    const origin = originOf(world, isRefusal(caller) ? SIGN_IN : caller, incoming)
    const outcome = await sendNew(world, to, 'console_session.end', { hash }, origin)
    if (isRefusal(outcome)) return outcome
    await world.forget(to.id)
    return { status: 204, headers }
  }
