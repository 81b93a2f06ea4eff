/** Project keys. A key signs in as its principal; without one it gets a principal of its own name with the role Editor. */
import { systemRoleById, systemRoleId } from '../../protocol/access.ts'
import type { access, ApiKey, KeyEvent, KeyMaterial, PrincipalEvent, PrincipalRecord } from '../../protocol/api/access.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import { isRefusal, refuse, refuseFields, type Refusal } from '../../protocol/errors.ts'
import { own } from '../../protocol/lookup.ts'
import { reservedTags } from '../../protocol/naming.ts'
import type { Cause, Decision } from '../actor.ts'
import { expiryOf, hasName } from '../configuration.ts'
import { bornPrincipal, withName } from './principals.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof access
type Create = Input<Rows['key.create']> & KeyMaterial
type Created = Reply<Rows['key.create']>

/** The principal the key signs in as: the given one, one of the key's name, or a new one (`fresh`). */
function holderOf(state: ProjectState, input: Create, cause: Cause): { principal: PrincipalRecord; fresh?: true } | Refusal {
  const given = input.principal_id === undefined ? withName(state, input.name) : own(state.principals, input.principal_id)
  if (!given && input.principal_id !== undefined) return refuseFields({ field: 'principal_id', message: 'there is no such principal', actual: input.principal_id })
  if (!given) return { principal: bornPrincipal(state, { name: input.name, role_ids: [systemRoleId('Editor')] }, cause), fresh: true }
  if (!given.role_ids?.length && !input.allow_unassigned_principal) return refuse('principal_has_no_roles', { principal_id: given.id })
  return { principal: given }
}

/** Create a project key. The raw key never comes here: the edge adds it to the reply. */
export function createKey({ brand }: ProjectOptions, state: ProjectState, input: Create, cause: Cause): Decision<KeyEvent | PrincipalEvent, Created> {
  const faults = reservedTags(input.tags, brand)
  if (input.scope_role_id !== undefined && !systemRoleById(input.scope_role_id)) faults.push({ field: 'scope_role_id', message: 'there is no such role', actual: input.scope_role_id })
  if (faults.length > 0) return refuseFields(...faults)
  const expiry = expiryOf(input.expires_at, cause.at)
  if ('refused' in expiry) return expiry
  if (hasName(state.keys, input.name)) return refuse('already_exists', { field: 'name', name: input.name })
  const holder = holderOf(state, input, cause)
  if (isRefusal(holder)) return holder
  const { principal } = holder
  const now = timestamp(cause.at)
  const key: ApiKey = {
    id: cause.mint('key'), name: input.name, key_prefix: input.key_prefix, principal_id: principal.id,
    ...(input.scope_role_id !== undefined && { scope_role_id: input.scope_role_id }),
    ...expiry,
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_at: now, updated_at: now,
  }
  return {
    events: [
      ...(holder.fresh ? [{ type: 'principal.created', id: principal.id, principal } as const] : []),
      { type: 'key.created', id: key.id, key, hash: input.hash },
    ],
    reply: key as Created,
  }
}

/** Revoke a project key. */
export function revokeKey(state: ProjectState, input: Input<Rows['key.revoke']>, { at }: Cause): Decision<KeyEvent, undefined> {
  const stored = own(state.keys, input.id)
  return stored ? { events: [{ type: 'key.revoked', id: stored.key.id, name: stored.key.name, at }], reply: undefined } : refuse('not_found')
}
