/**
 * Finds the e-mail recipients of an interaction: the active principals with an address that are
 * among its targets or have a target role.
 */

import type { ReachablePerson } from '../../../protocol/access/directory.ts'
import { systemRoleById } from '../../../protocol/access/schema.ts'
import { roleOf } from '../../../protocol/interactions/check.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ProjectState } from '../state.ts'

/**
 * Returns each recipient once. Principals that are targets themselves come before members of target
 * roles.
 */
export function reachOf(
  { principals, assignments, roles }: ProjectState,
  { targets }: { readonly targets: readonly string[] },
): ReachablePerson[] {
  const named = targets
    .filter((target) => roleOf(target) === undefined)
    .map((target) => ({ target, id: target }))
  const wanted = new Map(targets.map((target) => [roleOf(target), target]))
  const meant =
    wanted.size === (wanted.has(undefined) ? 1 : 0)
      ? []
      : Object.values(assignments).flatMap(({ principal_id: id, role_id }) => {
          const target =
            wanted.get(role_id) ??
            wanted.get(systemRoleById(role_id) ?? getOwn(roles, role_id)?.name)
          return target === undefined ? [] : [{ target, id }]
        })
  const found = new Map<string, ReachablePerson>()
  for (const { target, id } of [...named, ...meant]) {
    const principal = getOwn(principals, id)
    if (principal?.state === 'active' && principal.email && !found.has(id))
      found.set(id, { target, id, name: principal.name, email: principal.email })
  }
  return [...found.values()]
}
