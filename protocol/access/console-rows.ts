/**
 * Console sessions, which authenticate browsers, and one-time links that sign in an administrator.
 * A session has the rights of the credentials in its grants, of the users of an account, or of
 * both. A person who signs in with OpenID Connect has an account. The organization stores each
 * session with the hash of its cookie, never with the cookie itself.
 *
 * This file declares the rows for signed-in callers, and the internal commands and events of the
 * organization. `unauthenticated-rows.ts` declares the operations that need no session.
 */
import { type Static, Type } from 'typebox'
import { Closed, pageOf, paging, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'

const signInMethods = ['credential', 'link', 'oidc'] as const
/** How a session was created: from a key or token, from a one-time link, or with OpenID Connect. */
export type SignInMethod = (typeof signInMethods)[number]

/** A session in the list of a person's sessions. */
export const ConsoleSession = Type.Object({
  id: Type.String(),
  method: Type.Enum([...signInMethods]),
  current: Type.Boolean({ description: 'Whether the request was made with this session' }),
  created_at: Timestamp,
  last_used_at: Timestamp,
  idle_expires_at: Timestamp,
  expires_at: Timestamp,
  address: Type.Optional(Type.String({ description: 'Network address of the browser at sign-in' })),
  client: Type.Optional(Type.String({ description: 'User agent of the browser at sign-in' })),
})
export type ConsoleSession = Static<typeof ConsoleSession>

const SignInLink = Type.Object({
  url: Type.String({
    description:
      'URL that opens the console and signs in; usable once. It is a path if the public address ' +
      'of the service is not configured',
  }),
  expires_at: Timestamp,
})

const tag = 'console'
const to = { kind: 'organization' } as const
export const consoleRows = {
  'console_session.list': query('GET /auth/console/sessions', {
    summary: 'Console sessions of the caller, newest first',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    query: Closed(paging),
    reply: pageOf(ConsoleSession),
  }),
  'console_session.revoke': command('DELETE /auth/console/sessions/:id', {
    summary: 'Revoke a console session of the caller',
    tag,
    permission: 'authenticated',
    to,
    status: 204,
    errors: ['not_found'],
  }),
  'console_session.revoke_all': command('DELETE /auth/console/sessions', {
    summary: 'Revoke all console sessions of the caller',
    tag,
    permission: 'authenticated',
    to,
    status: 204,
  }),
  'sign_in_link.create': command('POST /auth/console/sign-in-links', {
    summary:
      'Create a link that signs in to the console once, with the rights of the organization key ' +
      'of the request',
    tag,
    permission: 'organization.admin',
    to,
    reply: SignInLink,
    status: 201,
    errors: ['conflict'],
  }),
} as const

/**
 * A right of a session: to act as an organization key or, with `project_id`, as a project key or
 * personal token. The right is valid while that key or token is valid.
 */
export interface ConsoleGrant {
  readonly principal_id: string
  readonly project_id?: string
  readonly key: { readonly id: string; readonly hash: string }
}
/** The users of an account, by project id. */
export type AccountUsers = Readonly<Record<string, string>>
/**
 * A session as the organization stores it. Times are Unix milliseconds, durations are milliseconds.
 */
export interface ConsoleSessionState {
  readonly id: string
  /** Hash of the cookie. */
  readonly hash: string
  readonly method: SignInMethod
  readonly grants: readonly ConsoleGrant[]
  /**
   * Id of the account whose users the session acts as; absent if it was not opened for an account.
   */
  readonly account?: string
  readonly created_at: number
  readonly seen_at: number
  readonly expires_at: number
  /** Idle time after which the session ends. */
  readonly idle: number
  readonly address?: string
  readonly client?: string
}
/** A session with the users of its account. */
export interface FoundConsoleSession {
  readonly session: ConsoleSessionState
  readonly users: AccountUsers
}
/**
 * Returns the time, in Unix milliseconds, at which a session ends if no further request uses it.
 */
export const consoleEnd = ({
  seen_at,
  idle,
  expires_at,
}: Pick<ConsoleSessionState, 'seen_at' | 'idle' | 'expires_at'>): number =>
  Math.min(seen_at + idle, expires_at)

/**
 * Returns the interval in milliseconds at which uses of a session are reported. It is a small part
 * of the idle time, so that a session in use does not end because of a late report.
 */
export const useInterval = ({ idle }: Pick<ConsoleSessionState, 'idle'>): number =>
  Math.min(60_000, idle / 8)

/** The ids of the caller's principals, which the gateway adds to commands about sessions. */
export interface ConsoleOwner {
  readonly principals: readonly string[]
}
/**
 * Data that the gateway adds to the command that creates a link: the hash of the code in the link.
 */
export interface SignInCode {
  readonly hash: string
}

/** Internal commands of the organization about console sessions. */
export type ConsoleCommands = {
  /**
   * Opens a session with one grant (`grant`), with a grant for the organization key of a sign-in
   * link (`link`), or for an account (`account`). `joins` is the hash of the cookie of the caller's
   * previous session. While that session exists, a new grant is added to it, its cookie changes,
   * and no other session is opened. With `account`, a new session replaces it instead. Refused with
   * `unauthorized` for an unknown account, for a key that is no longer valid, and for a link that
   * has expired or was used; refused with `conflict` when too many sessions exist.
   */
  'console_session.open': {
    readonly input: Pick<ConsoleSessionState, 'hash' | 'idle' | 'address' | 'client'> & {
      readonly lifetime: number
      readonly joins?: string
    } & (
        | { readonly grant: ConsoleGrant }
        | { readonly link: string }
        | { readonly account: string }
      )
    readonly reply: { readonly id: string; readonly expires_at: number; readonly joined: boolean }
  }
  /** Ends the session with this hash, if there is one. */
  'console_session.end': { readonly input: { readonly hash: string }; readonly reply: undefined }
  /** Creates an account, or adds users to it. */
  'console_account.put': {
    readonly input: {
      readonly id: string
      readonly issuer: string
      readonly subject: string
      readonly users: AccountUsers
    }
    readonly reply: { readonly changed: boolean }
  }
}
/** Events of the organization about console sessions. `ended` deletes the session. */
export type ConsoleEvent =
  | (Event & {
      readonly type: 'console_session.opened'
      readonly id: string
      readonly session: ConsoleSessionState
    })
  | (Event & {
      readonly type: 'console_session.extended'
      readonly id: string
      readonly hash: string
      readonly grants: readonly ConsoleGrant[]
    })
  | (Event & { readonly type: 'console_session.used'; readonly id: string; readonly at: number })
  | (Event & {
      readonly type: 'console_session.ended'
      readonly id: string
      readonly reason: 'signed_out' | 'revoked' | 'replaced' | 'expired'
    })
  | (Event & {
      readonly type: 'console_account.changed'
      readonly id: string
      readonly issuer: string
      readonly subject: string
      readonly users: AccountUsers
    })
  | (Event & {
      readonly type: 'sign_in_link.created'
      /** Hash of the code. */
      readonly id: string
      readonly key_id: string
      /** Expiry in Unix milliseconds. */
      readonly expires_at: number
    })
  | (Event & { readonly type: 'sign_in_link.ended'; readonly id: string })
