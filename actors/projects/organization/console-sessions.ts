/**
 * Console sessions, the accounts of people who sign in with OpenID Connect, and one-time sign-in
 * links.
 *
 * Invariants:
 * C1. A session is identified by the hash of its cookie. It ends when it is signed out or revoked,
 *     when it has been unused for its idle time, or at its absolute expiry. Its rights depend on
 *     keys and users that may become invalid earlier. Gateways check them on every request.
 * C2. A link is used at most once, expires after an hour, and acts as one organization key, which
 *     must still be valid when the link is used.
 * C3. At most 10,000 sessions are stored. At most 50 sessions act as one principal: when another
 *     session is opened for it, or receives a grant for it, the oldest of the 50 ends.
 */
import {
  type AccountUsers,
  type ConsoleCommands,
  type ConsoleEvent,
  type ConsoleGrant,
  type ConsoleOwner,
  type ConsoleSessionState,
  consoleEnd,
  type FoundConsoleSession,
  type SignInCode,
  type SignInMethod,
  useInterval,
} from '../../../protocol/access/console-rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Cause, Decided, Decision } from '../../actor.ts'
import { isUnexpired, type KeyHolder, keysLastUsed } from '../../configuration.ts'
import type { ConsoleHolder } from './console-state.ts'

type Holder = ConsoleHolder & KeyHolder
type In<N extends keyof ConsoleCommands> = ConsoleCommands[N]['input']

/** Maximum number of console sessions of the organization. */
const MAX_SESSIONS = 10_000
/**
 * Maximum number of console sessions of one principal. A session beyond it replaces the oldest one.
 */
const MAX_OF_PRINCIPAL = 50
/** Maximum number of unused sign-in links. */
const MAX_LINKS = 100
/** Milliseconds after which a sign-in link expires. */
const LINK_MS = 3_600_000

const withHash = (
  { console_sessions }: ConsoleHolder,
  hash: string | undefined,
  at: number,
): ConsoleSessionState | undefined =>
  hash === undefined
    ? undefined
    : Object.values(console_sessions).find(
        (session) => session.hash === hash && consoleEnd(session) > at,
      )
const usersOf = ({ accounts }: ConsoleHolder, { account }: Pick<ConsoleSessionState, 'account'>) =>
  (account === undefined ? undefined : getOwn(accounts, account)?.users) ?? {}
/** Returns the ids of the principals that a session may act as. */
const principalsOf = (
  state: ConsoleHolder,
  session: Pick<ConsoleSessionState, 'grants' | 'account'>,
): string[] => [
  ...session.grants.map(({ principal_id }) => principal_id),
  // The id is empty until the user of the project has been created.
  ...Object.values(usersOf(state, session)).filter((id) => id !== ''),
]
const sharesOne = (
  state: ConsoleHolder,
  session: ConsoleSessionState,
  principals: readonly string[],
): boolean => principalsOf(state, session).some((id) => principals.includes(id))

const NO_LINK =
  'This sign-in link has expired or was already used. Create another one with: baton sign-in-link'

/** The rights of a new session, and the events that are stored when they are granted. */
type Rights = {
  readonly method: SignInMethod
  readonly grants: readonly ConsoleGrant[]
  readonly account?: string
  readonly events: readonly ConsoleEvent[]
}
function rightsOf(
  { keys, accounts, sign_in_links }: Holder,
  input: In<'console_session.open'>,
  at: number,
): Rights | Refusal {
  if ('account' in input)
    return getOwn(accounts, input.account)
      ? { method: 'oidc', grants: [], account: input.account, events: [] }
      : refuse('unauthorized')
  if ('grant' in input) {
    const { grant } = input
    const stored = getOwn(keys, grant.key.id)
    // The gateway has already checked a project key, and checks it again on every request.
    return grant.project_id !== undefined || (stored && isUnexpired(stored.key, at))
      ? { method: 'credential', grants: [grant], events: [] }
      : refuse('unauthorized')
  }
  const link = getOwn(sign_in_links, input.link)
  const stored = link && getOwn(keys, link.key_id)
  if (!link || link.expires_at <= at || !stored || !isUnexpired(stored.key, at))
    return refuse('unauthorized', undefined, NO_LINK)
  const { key, hash } = stored
  return {
    method: 'link',
    grants: [{ principal_id: key.principal_id, key: { id: key.id, hash } }],
    events: [{ type: 'sign_in_link.ended', id: input.link }],
  }
}

/**
 * Returns the sessions, oldest first, that must end so that another session may act as one of these
 * principals.
 */
function surplusOf(
  state: ConsoleHolder,
  others: readonly ConsoleSessionState[],
  principals: readonly string[],
): ConsoleSessionState[] {
  const theirs = others
    .filter((session) => sharesOne(state, session, principals))
    .sort((a, b) => a.created_at - b.created_at)
  return theirs.slice(0, Math.max(0, theirs.length - MAX_OF_PRINCIPAL + 1))
}
const endReplaced = ({ id }: ConsoleSessionState): ConsoleEvent => ({
  type: 'console_session.ended',
  id,
  reason: 'replaced',
})

/**
 * Opens a session, or adds a grant to the session of the caller. Refuses with `unauthorized` if the
 * credential is not valid, and with `conflict` if too many sessions are open.
 */
export function openSession(
  state: Holder,
  input: In<'console_session.open'>,
  cause: Cause,
): Decision<ConsoleEvent, ConsoleCommands['console_session.open']['reply']> {
  const { at } = cause
  const rights = rightsOf(state, input, at)
  if (isRefusal(rights)) return rights
  const { events, ...granted } = rights
  const before = withHash(state, input.joins, at)
  const others = Object.values(state.console_sessions).filter((session) => session !== before)
  const surplus = surplusOf(state, others, principalsOf(state, granted))
  const [added] = granted.grants
  if (before && added) {
    const grants = [
      ...before.grants.filter(({ project_id }) => project_id !== added.project_id),
      added,
    ]
    return {
      events: [
        ...events,
        ...surplus.map(endReplaced),
        { type: 'console_session.extended', id: before.id, hash: input.hash, grants },
      ],
      reply: { id: before.id, expires_at: before.expires_at, joined: true },
    }
  }
  const replaced = before ? [before] : []
  if (others.length - surplus.length >= MAX_SESSIONS)
    return refuse('conflict', { limit: MAX_SESSIONS }, 'Too many console sessions are open.')
  const { hash, idle, lifetime, address, client } = input
  const session: ConsoleSessionState = {
    id: cause.mint('console_session'),
    hash,
    ...granted,
    created_at: at,
    seen_at: at,
    expires_at: at + lifetime,
    idle,
    ...(address !== undefined && { address }),
    ...(client !== undefined && { client }),
  }
  return {
    events: [
      ...events,
      ...[...replaced, ...surplus].map(endReplaced),
      { type: 'console_session.opened', id: session.id, session },
    ],
    reply: {
      id: session.id,
      expires_at: session.expires_at,
      joined: replaced.length + surplus.length > 0,
    },
  }
}

const ended = (
  sessions: readonly ConsoleSessionState[],
  reason: 'signed_out' | 'revoked',
): Decided<ConsoleEvent, undefined> => ({
  events: sessions.map(({ id }) => ({ type: 'console_session.ended', id, reason })),
  reply: undefined,
})
/** Ends the session whose cookie has this hash. */
export const endSession = (
  { console_sessions }: ConsoleHolder,
  { hash }: In<'console_session.end'>,
): Decided<ConsoleEvent, undefined> =>
  ended(
    Object.values(console_sessions).filter((session) => session.hash === hash),
    'signed_out',
  )
/** Revokes a session that acts as one of the caller's principals. */
export function revokeSession(
  state: ConsoleHolder,
  { id, principals }: { readonly id: string } & ConsoleOwner,
): Decision<ConsoleEvent, undefined> {
  const session = getOwn(state.console_sessions, id)
  return session && sharesOne(state, session, principals)
    ? ended([session], 'revoked')
    : refuse('not_found')
}
/** Revokes all sessions that act as one of the caller's principals. */
export const revokeSessions = (
  state: ConsoleHolder,
  { principals }: ConsoleOwner,
): Decided<ConsoleEvent, undefined> => ended(sessionsOf(state, { principals }), 'revoked')

/**
 * Creates an account, or adds users to it. A user of the same project is replaced, but not by an
 * empty id, which another sign-in of the same person may send at the same time.
 */
export function putAccount(
  { accounts }: ConsoleHolder,
  { id, issuer, subject, users }: In<'console_account.put'>,
): Decided<ConsoleEvent, ConsoleCommands['console_account.put']['reply']> {
  const before = getOwn(accounts, id)
  const added = Object.fromEntries(
    Object.entries(users).filter(([project, user]) => {
      const known = before && getOwn(before.users, project)
      return known === undefined || (user !== '' && user !== known)
    }),
  )
  const changed = !before || Object.keys(added).length > 0
  return {
    events: changed
      ? [
          {
            type: 'console_account.changed',
            id,
            issuer,
            subject,
            users: { ...before?.users, ...added },
          },
        ]
      : [],
    reply: { changed },
  }
}

/**
 * Creates a link that signs in as the organization key of the request. If a node requests the link
 * when it starts, the request has no key, and the link signs in as the oldest valid Owner key.
 */
export function createLink(
  { keys, sign_in_links }: Holder,
  { hash }: SignInCode,
  { at, credential }: Cause,
): Decision<ConsoleEvent, { readonly url: string; readonly expires_at: string }> {
  const valid = Object.values(keys)
    .map(({ key }) => key)
    .filter((key) => isUnexpired(key, at))
  const key =
    credential?.type === 'internal'
      ? valid.find(({ org_role }) => org_role === 'Owner')
      : valid.find(({ id }) => id === credential?.id)
  if (!key)
    return refuse('forbidden', undefined, 'Only an organization key can create a sign-in link.')
  if (Object.values(sign_in_links).length >= MAX_LINKS)
    return refuse('conflict', { limit: MAX_LINKS }, 'Too many sign-in links are unused.')
  const expires_at = at + LINK_MS
  return {
    events: [{ type: 'sign_in_link.created', id: hash, key_id: key.id, expires_at }],
    // The gateway adds the URL, because only the gateway has the code.
    reply: { url: '', expires_at: timestamp(expires_at) },
  }
}

/**
 * Records the last use of keys and console sessions. The time of a key is updated at most once a
 * minute, and that of a session at most twice per interval of reports, because reports of the same
 * gateway arrive at unequal intervals.
 */
export function lastUsed(
  state: Holder,
  input: { readonly ids: readonly string[] },
  cause: Cause,
): Decided<ConsoleEvent | ReturnType<typeof keysLastUsed>['events'][number], undefined> {
  const sessions = [...new Set(input.ids)].filter((id) => {
    const session = getOwn(state.console_sessions, id)
    return (
      session &&
      session.seen_at + useInterval(session) / 2 <= cause.at &&
      consoleEnd(session) > cause.at
    )
  })
  return {
    events: [
      ...keysLastUsed(state, input, cause).events,
      ...sessions.map((id) => ({ type: 'console_session.used', id, at: cause.at }) as const),
    ],
    reply: undefined,
  }
}

/**
 * Returns the time at which the next session or link ends, in Unix milliseconds. Returns undefined
 * without sessions and links.
 */
export function nextConsoleEnd({
  console_sessions,
  sign_in_links,
}: ConsoleHolder): number | undefined {
  const ends = [
    ...Object.values(console_sessions).map(consoleEnd),
    ...Object.values(sign_in_links).map(({ expires_at }) => expires_at),
  ]
  return ends.length === 0 ? undefined : ends.reduce((a, b) => Math.min(a, b))
}
/** Returns the events that delete the sessions and links that have expired. */
export const endConsole = (
  { console_sessions, sign_in_links }: ConsoleHolder,
  { at }: Cause,
): ConsoleEvent[] => [
  ...Object.values(console_sessions).flatMap((session): ConsoleEvent[] =>
    consoleEnd(session) <= at
      ? [{ type: 'console_session.ended', id: session.id, reason: 'expired' }]
      : [],
  ),
  ...Object.entries(sign_in_links).flatMap(([id, { expires_at }]): ConsoleEvent[] =>
    expires_at <= at ? [{ type: 'sign_in_link.ended', id }] : [],
  ),
]

/**
 * Returns the session with this hash and the users of its account, or null if there is no such
 * session.
 */
export function sessionOf(
  state: ConsoleHolder,
  { hash }: { readonly hash: string },
  at: number,
): FoundConsoleSession | null {
  const session = withHash(state, hash, at)
  return session ? { session, users: usersOf(state, session) } : null
}
/** Returns the sessions that act as one of these principals. */
export const sessionsOf = (state: ConsoleHolder, { principals }: ConsoleOwner) =>
  Object.values(state.console_sessions).filter((session) => sharesOne(state, session, principals))
/** Returns the users of an account, or no users for an unknown account. */
export const accountUsers = (
  { accounts }: ConsoleHolder,
  { id }: { readonly id: string },
): AccountUsers => getOwn(accounts, id)?.users ?? {}
