/**
 * Resolution of an interaction's targets. A project can resolve its own active principals, and
 * roles by id or name.
 */

import { hasRole } from '../../../protocol/access/roles.ts'
import { systemRoleNames } from '../../../protocol/access/schema.ts'
import { roleOf } from '../../../protocol/interactions/check.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ProjectState } from '../state.ts'

/**
 * Returns the targets that the project cannot resolve, including those that are principals of
 * organization keys.
 */
export function unknownTargets(
  { principals, roles }: Pick<ProjectState, 'principals' | 'roles'>,
  { targets }: { readonly targets: readonly string[] },
): string[] {
  const names = new Set<string>([
    ...systemRoleNames,
    ...Object.values(roles).map(({ name }) => name),
  ])
  return targets.filter((target) => {
    const role = roleOf(target)
    return role === undefined
      ? getOwn(principals, target)?.state !== 'active'
      : !hasRole(roles, role) && !names.has(role)
  })
}
