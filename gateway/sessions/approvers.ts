/**
 * Determines the roles whose holders may approve a call to an action. These are the roles with the
 * permission to execute the action and at least one holder that is not an agent. Approvers are
 * identified by role, so that a change to a role's holders takes effect while an approval is
 * pending. The permissions of the principal that answers are checked in
 * actors/interactions/approval.ts.
 */

import type { OrganizationDirectory, ProjectDirectory } from '../../protocol/access/directory.ts'
import { allows, grantsOf } from '../../protocol/access/roles.ts'
import { systemRoleId, systemRoleNames, systemRoles } from '../../protocol/access/schema.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import type { Approver } from '../../protocol/sessions/turns/definition.ts'

/** Maximum number of targets of an interaction. */
const MAX_TARGETS = 100

/**
 * A role: its name as a target of interactions, the permissions that it grants, and the ids of the
 * principals that hold it.
 */
interface HeldRole {
  readonly target: string
  readonly granted: ReadonlySet<string>
  readonly holders: ReadonlySet<string>
}

/**
 * Returns the system roles and the project's roles with at least one active holder that is not an
 * agent. The principal of an organization key holds the key's role in every project.
 */
function heldRoles(
  home: ProjectDirectory,
  organization: OrganizationDirectory,
  now: number,
): readonly HeldRole[] {
  const holders = new Map<string, Set<string>>()
  const hold = (role: string, principal: string) => {
    const known = holders.get(role)
    if (known) known.add(principal)
    else holders.set(role, new Set([principal]))
  }
  for (const { id, kind, state, role_ids = [] } of Object.values(home.principals))
    if (state === 'active' && kind !== 'agent') for (const role of role_ids) hold(role, id)
  for (const { principal_id, org_role = 'Viewer', expires_at } of Object.values(organization.keys))
    if (expires_at === undefined || (parseTimestamp(expires_at) ?? 0) > now)
      hold(systemRoleId(org_role), principal_id)
  const system = systemRoleNames.map((name) => ({
    target: `role:${name}`,
    id: systemRoleId(name),
    grants: systemRoles[name] as readonly string[],
  }))
  const custom = Object.keys(home.roles).map((id) => ({
    target: `role:${id}`,
    id,
    grants: grantsOf(home.roles, id),
  }))
  return [...system, ...custom].flatMap(({ target, id, grants }) => {
    const found = holders.get(id)
    return found ? [{ target, granted: new Set(grants), holders: found }] : []
  })
}

/**
 * Returns a function that maps the name of an action to its approvers, at most `MAX_TARGETS`. If a
 * role has only one holder, `sole` is the id of this holder.
 * @param now Unix milliseconds. Organization keys that have expired by then are ignored.
 */
export function approversIn(
  home: ProjectDirectory,
  organization: OrganizationDirectory,
  now: number,
): (action: string) => readonly Approver[] {
  const roles = heldRoles(home, organization, now)
  return (action) =>
    roles
      .filter(({ granted }) => allows(granted, `actions.execute.${action}`))
      .slice(0, MAX_TARGETS)
      .map(({ target, holders }) => {
        const [only, ...others] = holders
        return { target, ...(only !== undefined && others.length === 0 && { sole: only }) }
      })
}
