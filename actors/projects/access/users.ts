/**
 * Users and their personal tokens. An e-mail address belongs to at most one user of the project.
 * Its letter case is ignored.
 */

import type { RoleEvent } from '../../../protocol/access/role-rows.ts'
import { grantedBy, refuseMissingPermission } from '../../../protocol/access/roles.ts'
import type {
  ApiKey,
  Holds,
  KeyEvent,
  KeyMaterial,
  PrincipalEvent,
  PrincipalRecord,
  PrincipalWithoutRoles,
} from '../../../protocol/access/rows.ts'
import { isPersonal, type users } from '../../../protocol/access/user-rows.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { Input, Reply } from '../../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags } from '../../../protocol/naming.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  expiryOf,
  isUnexpired,
  keyLimit,
  madeOf,
  principalLimit,
  refuseUsedKey,
} from '../../configuration.ts'
import type { ProjectOptions, ProjectState } from '../state.ts'
import { keyRecord } from './keys.ts'
import { changePrincipal, deletePrincipal, newPrincipal, principalFaults } from './principals.ts'
import { principalRecord, refuseMissingForRoles, rolesOf } from './rights.ts'

type Rows = typeof users
type Decided<R> = Decision<PrincipalEvent | RoleEvent | KeyEvent, R>
/** Maximum number of tokens of one user. */
const MAX_TOKENS = 50

const personOf = ({ principals }: ProjectState, id: string): PrincipalWithoutRoles | Refusal => {
  const person = getOwn(principals, id)
  return person?.kind === 'user' ? person : refuse('not_found')
}
/** Refuses an address that another principal has. */
function taken(
  { principals }: ProjectState,
  email: string | undefined,
  self?: string,
): Refusal | undefined {
  const other =
    email &&
    Object.values(principals).find(
      (principal) =>
        principal.id !== self && principal.email?.toLowerCase() === email.toLowerCase(),
    )
  return other
    ? refuse(
        'already_exists',
        { field: 'email', email, user_id: other.id },
        'A user with this e-mail address already exists.',
      )
    : undefined
}

/** Adds a user, with their roles in the same commit. */
export function createUser(
  options: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['user.create']> & Holds,
  cause: Cause,
): Decided<PrincipalRecord> {
  const { brand } = options
  const faults = principalFaults(state, input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const refused =
    taken(state, input.email) ??
    refuseMissingForRoles(state, input.holds, input.role_ids ?? [], brand) ??
    principalLimit(options, state.principals)
  if (refused) return refused
  const { principal, events, role_ids } = newPrincipal(state, 'user', input, cause)
  return { events, reply: principalRecord(principal, role_ids) }
}

/** Changes a user; `role_ids` replaces their roles. */
export function updateUser(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['user.update']> & Holds,
  cause: Cause,
): Decided<PrincipalRecord> {
  const person = personOf(state, input.id)
  if ('refused' in person) return person
  const faults = principalFaults(state, input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { name, email, description, state: status, metadata, role_ids, tags, holds } = input
  return (
    taken(state, email, person.id) ??
    changePrincipal(
      state,
      person,
      { name, email, description, state: status, metadata, role_ids, tags },
      { holds, brand },
      cause,
    )
  )
}

/** Archives a user and revokes their tokens. */
export function deleteUser(
  state: ProjectState,
  input: Input<Rows['user.delete']>,
  cause: Cause,
): Decided<undefined> {
  const person = personOf(state, input.id)
  return 'refused' in person ? person : deletePrincipal(state, input, cause)
}

const tokensOf = ({ keys }: ProjectState, person: string): ApiKey[] =>
  Object.values(keys)
    .map(({ key }) => key)
    .filter((key) => isPersonal(key) && key.principal_id === person)

/**
 * Creates a token for a user. The project never receives the raw token. The gateway adds it to the
 * reply.
 */
export function createToken(
  options: ProjectOptions,
  state: ProjectState,
  input: Omit<Input<Rows['token.create']>, 'project'> & KeyMaterial & Holds,
  cause: Cause,
): Decided<Reply<Rows['token.create']>> {
  const { brand } = options
  const person = personOf(state, input.id)
  if ('refused' in person) return person
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const expiry = expiryOf(input.expires_at, cause.at)
  if ('refused' in expiry) return expiry
  const before = tokensOf(state, person.id)
  if (before.some(({ name }) => name === input.name))
    return refuse('already_exists', { field: 'name', name: input.name })
  const spent = refuseUsedKey(state, input)
  if (spent) return spent
  if (before.length >= MAX_TOKENS)
    return refuse(
      'conflict',
      { limit: MAX_TOKENS },
      `A person has at most ${MAX_TOKENS} tokens; revoke one first.`,
    )
  const missing =
    keyLimit(options, state) ??
    refuseMissingPermission(input.holds, grantedBy(state.roles, rolesOf(state, person.id)), brand)
  if (missing) return missing
  const key = keyRecord('token', person.id, input, expiry, cause)
  return { events: [madeOf(key, input)], reply: key as Reply<Rows['token.create']> }
}

/** Revokes a token of a user. Refuses with `not_found` if the user has no such token. */
export function revokeToken(
  state: ProjectState,
  input: Pick<Input<Rows['token.revoke']>, 'id' | 'token'>,
  { at }: Cause,
): Decided<undefined> {
  const token = tokensOf(state, input.id).find(({ id }) => id === input.token)
  return token
    ? { events: [{ type: 'key.revoked', id: token.id, name: token.name, at }], reply: undefined }
    : refuse('not_found')
}

/**
 * Data that the gateway adds to a request with a console session. `until`: the time at which the
 * session's key or token expires or, if the session has neither, the time at which the session
 * expires.
 */
export interface TokenLimit {
  readonly until?: string
}
/** Creates a token for the caller. The new token must not outlive the credential of the request. */
export function createOwnToken(
  options: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['me.create_token']> & KeyMaterial & Holds & TokenLimit,
  cause: Cause,
): Decided<Reply<Rows['token.create']>> {
  if (cause.principal.type !== 'user')
    return refuse('not_found', undefined, 'Only people have personal tokens.')
  const byKey = cause.credential && cause.credential.type !== 'console_session'
  const made_with = cause.credential && getOwn(state.keys, cause.credential.id)?.key
  // The token may have been revoked, or have expired, since the request was authenticated.
  if (byKey && !(made_with && isUnexpired(made_with, cause.at))) return refuse('unauthorized')
  const until = byKey ? made_with?.expires_at : input.until
  const wish = input.expires_at === undefined ? undefined : parseTimestamp(input.expires_at)
  if (until !== undefined && (wish === undefined || wish > (parseTimestamp(until) ?? 0)))
    return refuseFields({
      field: 'expires_at',
      message: `must not be later than ${until}, when the credential of this request expires`,
      actual: input.expires_at ?? null,
    })
  return createToken(options, state, { ...input, id: cause.principal.id }, cause)
}
/** Revokes one of the caller's own tokens. */
export const revokeOwnToken = (
  state: ProjectState,
  { token }: Input<Rows['me.revoke_token']>,
  cause: Cause,
): Decided<undefined> => revokeToken(state, { id: cause.principal.id, token }, cause)
