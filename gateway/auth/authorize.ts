/** Authorization: which projects a caller may enter, and which rows it may call. */

import type { OrganizationDirectory } from '../../protocol/access/directory.ts'
import { allows } from '../../protocol/access/roles.ts'
import { brandedPermission, type Permission } from '../../protocol/access/schema.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Project } from '../../protocol/projects/rows.ts'
import type { Caller } from './authenticate.ts'

/**
 * Refuses a caller that lacks the permission of a row.
 * @param brand header brand in any letter case.
 * @param action the action that the path names; the permission to execute it is sufficient.
 */
export function authorize(
  brand: string,
  permission: Permission | 'authenticated',
  { permissions }: Caller,
  action?: string,
): Refusal | undefined {
  if (permission === 'authenticated' || allows(permissions, permission)) return undefined
  const wanted =
    permission === 'actions.execute.*' && action !== undefined
      ? `actions.execute.${action}`
      : permission
  if (allows(permissions, wanted)) return undefined
  return refuse('permission_denied', { permission: brandedPermission(wanted, brand.toLowerCase()) })
}

/**
 * Refuses a caller whose key is pinned to another project, or was presented with another project's
 * handle.
 */
function admit({ scope, proof }: Caller, project: Project): Refusal | undefined {
  if (scope.kind === 'project' && scope.project_id !== project.id)
    return refuse('forbidden', undefined, 'This key belongs to another project.')
  if (proof.handle !== undefined && proof.handle !== project.handle)
    return refuse('forbidden', undefined, 'This key contains the handle of another project.')
  return undefined
}

/**
 * The project that a path names, by handle or by id: `not_found` when there is none, `forbidden`
 * when it is closed to the caller.
 * @param history also finds a deleted project, whose records stay readable.
 */
export function enter(
  caller: Caller,
  known: OrganizationDirectory,
  name: string,
  history = false,
): Project | Refusal {
  const project = getOwn(known.projects, getOwn(known.handles, name) ?? name)
  if (!project || (project.deleted && !history))
    return refuse('not_found', undefined, 'There is no such project.')
  return admit(caller, project) ?? project
}
