/**
 * Assignments of roles, and the rule against privilege escalation. To grant, create or extend a
 * role, or to create a credential for a principal, a caller must hold every permission that is
 * granted in this way. The e-mail address of a user is such a credential, because a person can sign
 * in with it. Removing access requires only the permission of the row.
 */

import type { RoleAssignment, RoleEvent } from '../../../protocol/access/role-rows.ts'
import { grantsOf, hasRole, refuseMissingPermission } from '../../../protocol/access/roles.ts'
import type { PrincipalRecord, PrincipalWithoutRoles } from '../../../protocol/access/rows.ts'
import { systemRoleById } from '../../../protocol/access/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { FieldError, Refusal } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Cause } from '../../actor.ts'
import type { ProjectState } from '../state.ts'

type Known = Pick<ProjectState, 'roles' | 'assignments'>

/** Returns the assignments of a principal, oldest first. */
export const assignmentsOf = (
  { assignments }: Pick<Known, 'assignments'>,
  principal_id: string,
): RoleAssignment[] =>
  Object.values(assignments).filter((assignment) => assignment.principal_id === principal_id)
/** Returns the role ids of a principal. */
export const rolesOf = (state: Pick<Known, 'assignments'>, principal_id: string): string[] =>
  assignmentsOf(state, principal_id).map(({ role_id }) => role_id)

/** Returns the API record of a principal. */
export const principalRecord = (
  principal: PrincipalWithoutRoles,
  role_ids: readonly string[],
): PrincipalRecord => ({ ...principal, ...(role_ids.length > 0 && { role_ids: [...role_ids] }) })

const roleName = ({ roles }: Pick<Known, 'roles'>, id: string): string =>
  systemRoleById(id) ?? getOwn(roles, id)?.name ?? id

/** Refuses a caller who lacks a permission of one of the roles to be granted. */
export const refuseMissingForRoles = (
  { roles }: Pick<Known, 'roles'>,
  holds: readonly string[],
  role_ids: readonly string[],
  brand: string,
): Refusal | undefined =>
  refuseMissingPermission(
    holds,
    role_ids.flatMap((id) => grantsOf(roles, id)),
    brand,
  )

/** Returns a field error for each requested role id that does not exist. */
export const roleFaults = (
  { roles }: Pick<Known, 'roles'>,
  role_ids: readonly string[] | undefined,
): FieldError[] =>
  (role_ids ?? []).flatMap((id, index) =>
    hasRole(roles, id)
      ? []
      : [{ field: `role_ids[${index}]`, message: 'there is no such role', actual: id }],
  )

/** Returns the record of a new assignment. */
export function newAssignment(
  state: Pick<Known, 'roles'>,
  principal_id: string,
  role_id: string,
  cause: Cause,
): RoleAssignment {
  return {
    id: cause.mint('assignment'),
    principal_id,
    role_id,
    role_name: roleName(state, role_id),
    created_at: timestamp(cause.at),
    granted_by: cause.principal.id,
  }
}
/**
 * Replaces the roles of a principal: returns the assignments to create and delete, the added roles,
 * and the resulting roles.
 */
export function reassign(
  state: Known,
  principal_id: string,
  wish: readonly string[] | undefined,
  cause: Cause,
): {
  readonly events: readonly RoleEvent[]
  readonly added: readonly string[]
  readonly role_ids: readonly string[]
} {
  const before = assignmentsOf(state, principal_id)
  const has = before.map(({ role_id }) => role_id)
  if (wish === undefined) return { events: [], added: [], role_ids: has }
  const added = wish.filter((id) => !has.includes(id))
  return {
    events: [
      ...before
        .filter(({ role_id }) => !wish.includes(role_id))
        .map(
          (assignment): RoleEvent => ({
            type: 'assignment.deleted',
            id: assignment.id,
            assignment,
          }),
        ),
      ...added.map((role_id): RoleEvent => {
        const assignment = newAssignment(state, principal_id, role_id, cause)
        return { type: 'assignment.created', id: assignment.id, assignment }
      }),
    ],
    added,
    role_ids: [...has.filter((id) => wish.includes(id)), ...added],
  }
}
