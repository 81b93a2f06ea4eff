/**
 * Project keys. A key acts as its principal. A key that is created without a principal uses the
 * service principal with the key's name, or a new service principal with the role Editor.
 */

import type { RoleEvent } from '../../../protocol/access/role-rows.ts'
import { grantedBy, hasRole, refuseMissingPermission } from '../../../protocol/access/roles.ts'
import type {
  ApiKey,
  access,
  Holds,
  KeyEvent,
  KeyMaterial,
  PrincipalEvent,
  PrincipalWithoutRoles,
} from '../../../protocol/access/rows.ts'
import { systemRoleId } from '../../../protocol/access/schema.ts'
import { isPersonal } from '../../../protocol/access/user-rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input, Reply } from '../../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags } from '../../../protocol/naming.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  expiryOf,
  hasName,
  keyLimit,
  madeOf,
  principalLimit,
  refuseUsedKey,
} from '../../configuration.ts'
import type { ProjectOptions, ProjectState } from '../state.ts'
import { type NewPrincipal, newPrincipal, withName } from './principals.ts'
import { rolesOf } from './rights.ts'

type Rows = typeof access
type Create = Input<Rows['key.create']> & KeyMaterial & Holds
type Created = Reply<Rows['key.create']>

/**
 * Returns the principal that the key acts as: the principal that the request names, the service
 * principal with the key's name, or a new principal. Refuses a principal that is a person. Also
 * refuses an existing principal without roles, unless the request sets
 * `allow_unassigned_principal`.
 */
function holderOf(
  options: ProjectOptions,
  state: ProjectState,
  input: Create,
  cause: Cause,
):
  | {
      principal: PrincipalWithoutRoles
      role_ids: readonly string[]
      events: NewPrincipal['events']
    }
  | Refusal {
  const principal =
    input.principal_id === undefined
      ? withName(state, input.name)
      : getOwn(state.principals, input.principal_id)
  if (!principal && input.principal_id !== undefined)
    return refuseFields({
      field: 'principal_id',
      message: 'there is no such principal',
      actual: input.principal_id,
    })
  if (!principal)
    return (
      principalLimit(options, state.principals) ??
      newPrincipal(
        state,
        'service',
        { name: input.name, role_ids: [systemRoleId('Editor')] },
        cause,
      )
    )
  if (principal.kind === 'user')
    return refuseFields({
      field: 'principal_id',
      message: 'is a person; people sign in with personal tokens',
      actual: principal.id,
    })
  const role_ids = rolesOf(state, principal.id)
  return role_ids.length === 0 && !input.allow_unassigned_principal
    ? refuse('principal_has_no_roles', { principal_id: principal.id })
    : { principal, role_ids, events: [] }
}

/** Returns the record of a new key or personal token. */
export function keyRecord(
  prefix: 'key' | 'token',
  principal_id: string,
  input: Pick<Create, 'name' | 'key_prefix' | 'scope_role_id' | 'tags'>,
  expiry: { expires_at?: string },
  cause: Cause,
): ApiKey {
  const now = timestamp(cause.at)
  return {
    id: cause.mint(prefix),
    name: input.name,
    key_prefix: input.key_prefix,
    principal_id,
    ...(input.scope_role_id !== undefined && { scope_role_id: input.scope_role_id }),
    ...expiry,
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_at: now,
    updated_at: now,
  }
}

/**
 * Creates a project key. The project never receives the raw key. The gateway adds it to the reply.
 */
export function createKey(
  options: ProjectOptions,
  state: ProjectState,
  input: Create,
  cause: Cause,
): Decision<KeyEvent | PrincipalEvent | RoleEvent, Created> {
  const { brand } = options
  const faults = reservedTags(input.tags, brand)
  if (input.scope_role_id !== undefined && !hasRole(state.roles, input.scope_role_id))
    faults.push({
      field: 'scope_role_id',
      message: 'there is no such role',
      actual: input.scope_role_id,
    })
  if (faults.length > 0) return refuseFields(...faults)
  const expiry = expiryOf(input.expires_at, cause.at)
  if ('refused' in expiry) return expiry
  if (hasName(state.keys, input.name, (key) => !isPersonal(key)))
    return refuse('already_exists', { field: 'name', name: input.name })
  const spent = refuseUsedKey(state, input)
  if (spent) return spent
  const holder = holderOf(options, state, input, cause)
  if (isRefusal(holder)) return holder
  const full = keyLimit(options, state, holder.principal.id)
  if (full) return full
  const missing = refuseMissingPermission(
    input.holds,
    grantedBy(state.roles, holder.role_ids, input.scope_role_id),
    brand,
  )
  if (missing) return missing
  const key = keyRecord('key', holder.principal.id, input, expiry, cause)
  return { events: [...holder.events, madeOf(key, input)], reply: key as Created }
}

/**
 * Revokes a project key. Refuses with `not_found` if the id is that of a user's token, which
 * `revokeToken` revokes.
 */
export function revokeKey(
  state: ProjectState,
  input: Input<Rows['key.revoke']>,
  { at }: Cause,
): Decision<KeyEvent, undefined> {
  const key = getOwn(state.keys, input.id)?.key
  return key && !isPersonal(key)
    ? { events: [{ type: 'key.revoked', id: key.id, name: key.name, at }], reply: undefined }
    : refuse('not_found')
}
