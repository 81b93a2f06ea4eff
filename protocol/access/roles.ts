/**
 * Computes the permissions that roles grant. A role is a set of permissions. A principal has the
 * union of the permissions of its roles. The scope role of a key may cap that union.
 *
 * Wildcards exist only for actions: `actions.execute.*` covers every action, and
 * `actions.execute.crm.*` covers the actions whose names begin with `crm.`. Permission ids in this
 * file and in stored data lack the brand prefix, such as `service.`.
 */

import { type FieldError, type Refusal, refuse } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import type { Role } from './role-rows.ts'
import {
  brandedPermission,
  organizationOnly,
  permissions,
  systemRoleById,
  systemRoleNames,
  systemRoles,
} from './schema.ts'

/** A custom role as its project stores it. */
export type CustomRole = Omit<Role, 'system_defined' | 'project_id'>
/** Custom roles by id. */
export type Roles = Readonly<Record<string, CustomRole>>

const ACTION = 'actions.execute.'
const ACTION_PERMISSION = /^actions\.execute\.(\*|[a-z0-9]+([._-][a-z0-9]+)*(\.\*)?)$/

/** Whether a set of permissions covers a permission, which may itself be a wildcard. */
export function allows(granted: ReadonlySet<string>, wanted: string): boolean {
  if (granted.has(wanted)) return true
  if (!wanted.startsWith(ACTION)) return false
  for (let end = ACTION.length; end > 0; end = wanted.indexOf('.', end) + 1)
    if (granted.has(`${wanted.slice(0, end)}*`)) return true
  return false
}

/**
 * Returns the permissions that one role grants inside a project. A deleted or unknown role grants
 * none.
 */
export function grantsOf(roles: Roles, id: string): readonly string[] {
  const system = systemRoleById(id)
  return system
    ? systemRoles[system].filter((permission) => !organizationOnly.has(permission))
    : (getOwn(roles, id)?.permissions ?? [])
}
/**
 * Returns the permissions that several roles grant together inside a project, capped by the
 * permissions of the scope role, if one is given.
 */
export function grantedBy(
  roles: Roles,
  role_ids: readonly string[],
  scope_role_id?: string,
): ReadonlySet<string> {
  const granted = new Set(role_ids.flatMap((id) => grantsOf(roles, id)))
  if (scope_role_id === undefined) return granted
  const cap = new Set(grantsOf(roles, scope_role_id))
  return new Set([
    ...[...granted].filter((permission) => allows(cap, permission)),
    ...[...cap].filter((permission) => allows(granted, permission)),
  ])
}
/** Whether a system role or a custom role of the project has this id. */
export const hasRole = (roles: Roles, id: string): boolean =>
  systemRoleById(id) !== undefined || Object.hasOwn(roles, id)

/** Whether a system role or a custom role of the project has this name, in any letter case. */
export const hasRoleName = (roles: Roles, name: string): boolean =>
  [...systemRoleNames, ...Object.values(roles).map((role) => role.name)].some(
    (one) => one.toLowerCase() === name.toLowerCase(),
  )

/**
 * Converts branded permission ids from a client to stored ids. Returns a fault for each id that a
 * custom role cannot contain.
 * @param brand header brand in any letter case. Without it, every brand is accepted.
 */
export function readPermissions(
  ids: readonly string[],
  brand?: string,
): { readonly permissions: readonly string[]; readonly faults: readonly FieldError[] } {
  const faults: FieldError[] = []
  const read = ids.map((id, index) => {
    const prefix =
      brand === undefined ? id.slice(0, id.indexOf('.') + 1) : `${brand.toLowerCase()}.`
    const bare = id.startsWith(prefix) ? id.slice(prefix.length) : id
    const known =
      prefix !== '' && id.startsWith(prefix) && !id.startsWith(ACTION)
        ? Object.hasOwn(permissions, bare) &&
          !bare.startsWith('actions.') &&
          !organizationOnly.has(bare)
        : ACTION_PERMISSION.test(id)
    if (!known)
      faults.push({
        field: `permissions[${index}]`,
        message: organizationOnly.has(bare)
          ? 'cannot be granted inside a project'
          : 'there is no such permission',
        actual: id,
      })
    return bare
  })
  return { permissions: [...new Set(read)], faults }
}

/**
 * Refuses a caller who does not have all of these permissions. The refusal contains the first
 * missing permission.
 * @param brand the configured brand, in any letter case.
 */
export function refuseMissingPermission(
  holds: readonly string[],
  wanted: Iterable<string>,
  brand: string,
): Refusal | undefined {
  const held = new Set(holds)
  for (const permission of wanted)
    if (!allows(held, permission))
      return refuse(
        'permission_denied',
        { permission: brandedPermission(permission, brand.toLowerCase()) },
        `You cannot grant permissions that you do not have; ` +
          `${brandedPermission(permission, brand.toLowerCase())} is missing.`,
      )
  return undefined
}
/**
 * Converts a stored custom role to the record that clients see.
 * @param brand header brand in any letter case.
 */
export const roleRecord = (
  { id, name, permissions: held, ...rest }: CustomRole,
  project_id: string,
  brand: string,
): Role => ({
  id,
  name,
  permissions: held.map((permission) => brandedPermission(permission, brand.toLowerCase())),
  system_defined: false,
  project_id,
  ...rest,
})
