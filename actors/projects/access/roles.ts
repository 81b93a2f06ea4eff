/**
 * Custom roles and their assignments. Names never change and are unique among all roles of the
 * project, ignoring case. System roles cannot be changed.
 */

import type {
  Role,
  RoleAssignment,
  RoleEvent,
  roles as rows,
} from '../../../protocol/access/role-rows.ts'
import {
  type CustomRole,
  hasRole,
  hasRoleName,
  readPermissions,
  refuseMissingPermission,
  roleRecord,
} from '../../../protocol/access/roles.ts'
import type { Holds } from '../../../protocol/access/rows.ts'
import { systemRoleById, systemRoleId, systemRoleNames } from '../../../protocol/access/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags } from '../../../protocol/naming.ts'
import { refuseBeyondLimit } from '../../../protocol/projects/limits.ts'
import type { Cause, Decision } from '../../actor.ts'
import { changeOf } from '../../configuration.ts'
import type { ProjectOptions, ProjectState } from '../state.ts'
import { assignmentsOf, newAssignment, refuseMissingForRoles } from './rights.ts'

type Rows = typeof rows
type Decided<R> = Decision<RoleEvent, R>
/** Maximum number of roles of one principal. */
const MAX_ROLES_OF_ONE = 64

/**
 * Creates a role. Refuses the name of an existing role in any letter case, and permissions that the
 * caller lacks.
 */
export function createRole(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['role.create']> & Holds,
  cause: Cause,
): Decided<Role> {
  const { permissions, faults } = readPermissions(input.permissions, brand)
  const all = [...faults, ...reservedTags(input.tags, brand)]
  if (all.length > 0) return refuseFields(...all)
  if (hasRoleName(state.roles, input.name))
    return refuse('already_exists', { field: 'name', name: input.name })
  const full = refuseBeyondLimit('role', Object.keys(state.roles).length)
  if (full) return full
  const missing = refuseMissingPermission(input.holds, permissions, brand)
  if (missing) return missing
  const now = timestamp(cause.at)
  const role: CustomRole = {
    id: cause.mint('role'),
    name: input.name,
    permissions: [...permissions],
    ...(input.description && { description: input.description }),
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_at: now,
    updated_at: now,
  }
  return {
    events: [{ type: 'role.created', id: role.id, role }],
    reply: roleRecord(role, cause.self.id, brand),
  }
}

const customRole = ({ roles }: ProjectState, id: string): CustomRole | Refusal =>
  systemRoleById(id)
    ? refuse('forbidden', undefined, 'System roles cannot be changed.')
    : (getOwn(roles, id) ?? refuse('not_found'))

/**
 * Changes a role. `permissions` replaces its permissions. The caller must hold the added
 * permissions.
 */
export function updateRole(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['role.update']> & Holds,
  { at, self }: Cause,
): Decided<Role> {
  const role = customRole(state, input.id)
  if ('refused' in role) return role
  const { permissions, faults } = readPermissions(input.permissions ?? [], brand)
  const all = [...faults, ...reservedTags(input.tags, brand)]
  if (all.length > 0) return refuseFields(...all)
  const missing = refuseMissingPermission(
    input.holds,
    permissions.filter((permission) => !role.permissions.includes(permission)),
    brand,
  )
  if (missing) return missing
  const { description, tags } = input
  const kept = changeOf<CustomRole>(role, { description, tags }, at)
  // An empty list of permissions is a value and does not remove the field.
  const regranted =
    input.permissions !== undefined &&
    JSON.stringify(permissions) !== JSON.stringify(role.permissions)
  if (!kept && !regranted) return { events: [], reply: roleRecord(role, self.id, brand) }
  const next: CustomRole = {
    ...(kept?.next ?? role),
    ...(regranted && { permissions: [...permissions] }),
    updated_at: timestamp(at),
  }
  const changes = {
    ...kept?.changes,
    ...(regranted && {
      permissions: {
        from: roleRecord(role, self.id, brand).permissions,
        to: roleRecord(next, self.id, brand).permissions,
      },
    }),
  }
  return {
    events: [
      {
        type: 'role.updated',
        id: role.id,
        role: {
          ...kept?.patch,
          ...(regranted && { permissions: next.permissions }),
          updated_at: next.updated_at,
        },
        changes,
      },
    ],
    reply: roleRecord(next, self.id, brand),
  }
}

/**
 * Maximum number of assignments for which the deletion of a role emits separate events, because a
 * command emits at most 500 events. Any further assignments are deleted without an event of their
 * own.
 */
const MAX_ASSIGNMENTS_NAMED = 400

/**
 * Deletes a role with its assignments. A key with this scope role has no permissions afterwards.
 */
export function deleteRole(
  state: ProjectState,
  input: Input<Rows['role.delete']>,
): Decided<undefined> {
  const role = customRole(state, input.id)
  if ('refused' in role) return role
  const taken = Object.values(state.assignments)
    .filter(({ role_id }) => role_id === role.id)
    .slice(0, MAX_ASSIGNMENTS_NAMED)
  return {
    events: [
      ...taken.map(
        (assignment): RoleEvent => ({ type: 'assignment.deleted', id: assignment.id, assignment }),
      ),
      { type: 'role.deleted', id: role.id, name: role.name },
    ],
    reply: undefined,
  }
}

/** Assigns a role to a principal. Refuses roles with permissions that the caller lacks. */
export function assignRole(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['assignment.create']> & Holds,
  cause: Cause,
): Decided<RoleAssignment> {
  const { principal_id, role_name } = input
  const system = systemRoleNames.find((name) => name === role_name)
  const role_id =
    input.role_id ??
    (system
      ? systemRoleId(system)
      : Object.values(state.roles).find(({ name }) => name === role_name)?.id)
  const faults = [
    ...(getOwn(state.principals, principal_id)
      ? []
      : [{ field: 'principal_id', message: 'there is no such principal', actual: principal_id }]),
    ...(role_id !== undefined && hasRole(state.roles, role_id)
      ? []
      : [
          {
            field: role_name === undefined ? 'role_id' : 'role_name',
            message: 'there is no such role',
            actual: role_name ?? input.role_id,
          },
        ]),
  ]
  if (faults.length > 0 || role_id === undefined) return refuseFields(...faults)
  const before = assignmentsOf(state, principal_id)
  const same = before.find((assignment) => assignment.role_id === role_id)
  if (same) return refuse('already_exists', { id: same.id }, 'The principal already has this role.')
  if (before.length >= MAX_ROLES_OF_ONE)
    return refuse(
      'conflict',
      { limit: MAX_ROLES_OF_ONE },
      `A principal has at most ${MAX_ROLES_OF_ONE} roles.`,
    )
  const missing = refuseMissingForRoles(state, input.holds, [role_id], brand)
  if (missing) return missing
  const assignment = newAssignment(state, principal_id, role_id, cause)
  return {
    events: [{ type: 'assignment.created', id: assignment.id, assignment }],
    reply: assignment,
  }
}

/** Deletes an assignment, which removes its role from the principal. */
export function unassignRole(
  state: ProjectState,
  input: Input<Rows['assignment.delete']>,
): Decided<undefined> {
  const assignment = getOwn(state.assignments, input.id)
  return assignment
    ? { events: [{ type: 'assignment.deleted', id: assignment.id, assignment }], reply: undefined }
    : refuse('not_found')
}
