/**
 * Organization keys.
 *
 * Invariants: names are unique among keys that are not revoked. The last valid Owner key cannot be
 * revoked. A caller cannot grant or revoke a role above their own.
 */

import type { ApiKey, access, KeyEvent, KeyMaterial } from '../../../protocol/access/rows.ts'
import {
  brandedPermission,
  type SystemRole,
  systemRoleNames,
  systemRoles,
} from '../../../protocol/access/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input, Reply } from '../../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags } from '../../../protocol/naming.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  expiryOf,
  hasName,
  isUnexpired,
  keyLimit,
  madeOf,
  refuseUsedKey,
} from '../../configuration.ts'
import type { OrganizationOptions, OrganizationState } from './state.ts'

type Rows = typeof access
type Created = Reply<Rows['key.create_organization']>

const rank = (role: SystemRole): number => systemRoleNames.indexOf(role)
/**
 * Refuses a caller whose key has a weaker role than `role`, or has become invalid since the request
 * was authenticated.
 */
function outranked(
  { keys }: OrganizationState,
  role: SystemRole,
  { credential, at }: Cause,
  brand: string,
): Refusal | undefined {
  const asking = credential && getOwn(keys, credential.id)?.key
  if (credential?.type === 'api_key' && !(asking && isUnexpired(asking, at)))
    return refuse('unauthorized')
  const own_role = asking?.org_role
  if (!own_role || rank(own_role) >= rank(role)) return undefined
  const missing = systemRoles[role].find(
    (permission) => !(systemRoles[own_role] as readonly string[]).includes(permission),
  )
  return refuse('permission_denied', {
    permission: brandedPermission(missing ?? 'organization.admin', brand.toLowerCase()),
  })
}

/** Returns the record of a new organization key, with a new principal. */
export function newKey(
  id: string,
  key_prefix: string,
  input: {
    name: string
    role: SystemRole
    tags?: Record<string, string> | undefined
    expires_at?: string
  },
  cause: Cause,
): ApiKey {
  const now = timestamp(cause.at)
  return {
    id,
    name: input.name,
    key_prefix,
    principal_id: cause.mint('principal'),
    org_role: input.role,
    ...(input.expires_at !== undefined && { expires_at: input.expires_at }),
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_at: now,
    updated_at: now,
  }
}

/**
 * Creates an organization key. The organization never receives the raw key. The gateway adds it to
 * the reply.
 */
export function createOrganizationKey(
  options: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['key.create_organization']> & KeyMaterial,
  cause: Cause,
): Decision<KeyEvent, Created> {
  const { brand } = options
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const expiry = expiryOf(input.expires_at, cause.at)
  if ('refused' in expiry) return expiry
  const role = input.role ?? 'Admin'
  const above = outranked(state, role, cause, brand)
  if (above) return above
  if (hasName(state.keys, input.name))
    return refuse('already_exists', { field: 'name', name: input.name })
  const refused = refuseUsedKey(state, input) ?? keyLimit(options, state)
  if (refused) return refused
  const key = newKey(
    cause.mint('key'),
    input.key_prefix,
    { name: input.name, role, tags: input.tags, ...expiry },
    cause,
  )
  return { events: [madeOf(key, input)], reply: key as Created }
}

/** Revokes an organization key, unless no valid Owner key would be left. */
export function revokeOrganizationKey(
  { brand }: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['key.revoke_organization']>,
  cause: Cause,
): Decision<KeyEvent, undefined> {
  const stored = getOwn(state.keys, input.id)
  if (!stored) return refuse('not_found')
  const above = outranked(state, stored.key.org_role ?? 'Viewer', cause, brand)
  if (above) return above
  const owners = Object.values(state.keys).filter(
    ({ key }) => key.org_role === 'Owner' && isUnexpired(key, cause.at),
  )
  if (owners.length === 1 && owners[0] === stored)
    return refuse(
      'conflict',
      { role: 'Owner' },
      'This is the last Owner key; create another one first.',
    )
  return {
    events: [{ type: 'key.revoked', id: stored.key.id, name: stored.key.name, at: cause.at }],
    reply: undefined,
  }
}
