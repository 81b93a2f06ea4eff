/**
 * The users of people who sign in with OpenID Connect.
 *
 * Invariants:
 * I1. An identity belongs to at most one user and is never moved to another user.
 * I2. A sign-in replaces only the roles that earlier sign-ins assigned. Roles that an administrator
 *     assigned stay, and a disabled user stays disabled.
 */
import { type IdentityCommands, SIGN_IN_PRINCIPAL } from '../../../protocol/access/identity.ts'
import type { RoleEvent } from '../../../protocol/access/role-rows.ts'
import { grantsOf, hasRole } from '../../../protocol/access/roles.ts'
import type { PrincipalEvent, PrincipalWithoutRoles } from '../../../protocol/access/rows.ts'
import { systemRoleId, systemRoleNames } from '../../../protocol/access/schema.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Cause, Decision } from '../../actor.ts'
import { principalLimit } from '../../configuration.ts'
import type { ProjectOptions, ProjectState } from '../state.ts'
import { changePrincipal, newPrincipal } from './principals.ts'
import { assignmentsOf } from './rights.ts'

type SignIn = IdentityCommands['person.sign_in']

/** Returns the id of the role with this name or id, or undefined if there is no such role. */
function roleNamed({ roles }: ProjectState, text: string): string | undefined {
  if (hasRole(roles, text)) return text
  const system = systemRoleNames.find((name) => name === text)
  return system ? systemRoleId(system) : Object.values(roles).find(({ name }) => name === text)?.id
}

function userOf(
  { principals }: ProjectState,
  { identity: { issuer, subject }, email }: SignIn['input'],
): PrincipalWithoutRoles | undefined {
  const users = Object.values(principals).filter(({ kind }) => kind === 'user')
  return (
    users.find(({ identity }) => identity?.issuer === issuer && identity.subject === subject) ??
    users.find((user) => !user.identity && email !== undefined && hasAddress(user, email))
  )
}
const hasAddress = ({ email }: PrincipalWithoutRoles, address: string): boolean =>
  email?.toLowerCase() === address.toLowerCase()

/**
 * Creates or updates the user of a person who signs in. A person without any known role gets no new
 * user.
 */
export function signInPerson(
  options: ProjectOptions,
  state: ProjectState,
  input: SignIn['input'],
  cause: Cause,
): Decision<PrincipalEvent | RoleEvent, SignIn['reply']> {
  const { identity, name } = input
  const wish = [...new Set(input.roles)].map((text) => ({ text, id: roleNamed(state, text) }))
  const unknown = wish.flatMap(({ text, id }) => (id === undefined ? [text] : []))
  const wished = [...new Set(wish.flatMap(({ id }) => id ?? []))]
  const user = userOf(state, input)
  const taken = Object.values(state.principals).some(
    (other) => other !== user && input.email !== undefined && hasAddress(other, input.email),
  )
  const email = taken ? undefined : input.email
  if (!user) {
    if (wished.length === 0) return { events: [], reply: { changed: false, unknown } }
    const full = principalLimit(options, state.principals)
    if (full) return full
    const fields = { name, identity, ...(email !== undefined && { email }), role_ids: wished }
    const { principal, events } = newPrincipal(state, 'user', fields, cause)
    return {
      events,
      reply: {
        user: { id: principal.id, active: true, roles: wished.length },
        changed: true,
        unknown,
      },
    }
  }
  const manual = assignmentsOf(state, user.id)
    .filter(({ granted_by }) => granted_by !== SIGN_IN_PRINCIPAL)
    .map(({ role_id }) => role_id)
  const role_ids = [...new Set([...manual, ...wished])]
  const decision = changePrincipal(
    state,
    user,
    { name, email, identity, role_ids },
    // No caller grants the added roles: they follow from the operator's settings. To pass the check
    // of the caller's permissions, `holds` contains the permissions of all roles that the user
    // gets.
    { holds: role_ids.flatMap((id) => grantsOf(state.roles, id)), brand: options.brand },
    cause,
  )
  if (isRefusal(decision)) return decision
  const events = decision.events as readonly (PrincipalEvent | RoleEvent)[]
  return {
    events,
    reply: {
      user: { id: user.id, active: user.state === 'active', roles: role_ids.length },
      changed: events.length > 0,
      unknown,
    },
  }
}
