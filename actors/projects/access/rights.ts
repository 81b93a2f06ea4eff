/**
 * Who has which role, and the rule that nobody hands out more than they have: whoever gives a role, makes one, or makes a
 * credential of a principal must hold every permission that comes with it. Taking away needs no more than the row asks for.
 */
import { brandedPermission, systemRoleById } from '../../../protocol/access/schema.ts'
import type { KeptPrincipal, PrincipalRecord } from '../../../protocol/access/rows.ts'
import type { RoleAssignment, RoleEvent } from '../../../protocol/access/role-rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import { refuse, type FieldError, type Refusal } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { allows, grantsOf, hasRole } from '../../../protocol/access/roles.ts'
import type { Cause } from '../../actor.ts'
import type { ProjectState } from '../state.ts'

type Known = Pick<ProjectState, 'roles' | 'assignments'>

/** The assignments of a principal, oldest first. */
export const assignmentsOf = (
  { assignments }: Pick<Known, 'assignments'>,
  principal_id: string,
): RoleAssignment[] =>
  Object.values(assignments).filter((assignment) => assignment.principal_id === principal_id)
/** The roles of a principal. */
export const rolesOf = (state: Pick<Known, 'assignments'>, principal_id: string): string[] =>
  assignmentsOf(state, principal_id).map(({ role_id }) => role_id)

/** A principal as clients see it. */
export const principalRecord = (
  principal: KeptPrincipal,
  role_ids: readonly string[],
): PrincipalRecord => ({ ...principal, ...(role_ids.length > 0 && { role_ids: [...role_ids] }) })

/** The name of a role. */
const roleName = ({ roles }: Pick<Known, 'roles'>, id: string): string =>
  systemRoleById(id) ?? getOwn(roles, id)?.name ?? id

/** Refuses a caller who lacks one of these permissions, naming it. @param brand header brand in any case. */
export function lacking(
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
        `Nobody hands out more than they have; ${brandedPermission(permission, brand.toLowerCase())} is missing.`,
      )
  return undefined
}
/** Refuses a caller who would give one of these roles without having what it grants. */
export const lackingForRoles = (
  { roles }: Pick<Known, 'roles'>,
  holds: readonly string[],
  role_ids: readonly string[],
  brand: string,
): Refusal | undefined =>
  lacking(
    holds,
    role_ids.flatMap((id) => grantsOf(roles, id)),
    brand,
  )

/** Faults of a list of roles in a request. */
export const roleFaults = (
  { roles }: Pick<Known, 'roles'>,
  role_ids: readonly string[] | undefined,
): FieldError[] =>
  (role_ids ?? []).flatMap((id, index) =>
    hasRole(roles, id)
      ? []
      : [{ field: `role_ids[${index}]`, message: 'there is no such role', actual: id }],
  )

/** A new assignment. */
export function assigned(
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
/** The outcome of a wish for exactly these roles: what is given and taken, which roles are new, and which there are then. */
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
        const assignment = assigned(state, principal_id, role_id, cause)
        return { type: 'assignment.created', id: assignment.id, assignment }
      }),
    ],
    added,
    role_ids: [...has.filter((id) => wish.includes(id)), ...added],
  }
}
