/**
 * Authorization: which projects a caller may enter, and which rows it may call. Access to single
 * sessions is checked in `../sessions/visibility.ts`.
 */

import type { OrganizationDirectory } from '../../protocol/access/directory.ts'
import { allows } from '../../protocol/access/roles.ts'
import { brandedPermission, type Permission } from '../../protocol/access/schema.ts'
import type { Row } from '../../protocol/contract.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Project } from '../../protocol/projects/rows.ts'
import type { Caller } from './authenticate.ts'

const NOT_FOR_WORKERS = 'The worker of an environment may not do this.'

/**
 * Returns `permission_denied` for a caller that may not call a row, otherwise undefined. The worker
 * of an environment may call only rows that explicitly allow it. If the path of such a row contains
 * an environment, this must be the worker's own environment.
 * @param slots decoded slots of the path.
 */
export function authorizeRow(
  brand: string,
  { permission, environment }: Pick<Row['shape'], 'permission' | 'environment'>,
  caller: Caller,
  slots: Readonly<Record<string, string>>,
): Refusal | undefined {
  if (!caller.environment) return authorize(brand, permission, caller, slots['action_name'])
  const isOwn = (slots['environment_id'] ?? caller.environment.id) === caller.environment.id
  return environment && isOwn ? undefined : refuse('permission_denied', undefined, NOT_FOR_WORKERS)
}

/**
 * Returns `permission_denied` if the caller lacks the permission, otherwise undefined. The worker
 * of an environment has no permissions.
 * @param brand the brand of the installation, in any letter case.
 * @param action name of the action in the path, if any. For rows that need `actions.execute.*`, the
 * permission to execute this action is sufficient.
 */
export function authorize(
  brand: string,
  permission: Permission | 'authenticated',
  { permissions, environment }: Caller,
  action?: string,
): Refusal | undefined {
  if (permission === 'authenticated')
    return environment && refuse('permission_denied', undefined, NOT_FOR_WORKERS)
  if (allows(permissions, permission)) return undefined
  const wanted =
    permission === 'actions.execute.*' && action !== undefined
      ? `actions.execute.${action}`
      : permission
  if (allows(permissions, wanted)) return undefined
  return refuse('permission_denied', { permission: brandedPermission(wanted, brand.toLowerCase()) })
}

/**
 * Returns `forbidden` for a caller whose key is pinned to another project, or was presented with
 * the handle of another project. Otherwise returns undefined.
 */
function admit({ scope, proof }: Caller, project: Project): Refusal | undefined {
  if (scope.kind === 'project' && scope.project_id !== project.id)
    return refuse('forbidden', undefined, 'This key belongs to another project.')
  if (proof.handle !== undefined && proof.handle !== project.handle)
    return refuse('forbidden', undefined, 'This key contains the handle of another project.')
  return undefined
}

/**
 * Returns the project with the given handle or id. Returns `not_found` if no such project exists,
 * and `forbidden` if the caller may not enter the project.
 * @param history whether to return a deleted project as well. Its records stay readable.
 */
export function enterProject(
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
