/**
 * Checks the principals and roles that interactions refer to, and the callers that answer
 * interactions, mostly against cached directories. The interaction's actor decides whether a caller
 * may answer it.
 */

import type { ProjectDirectory } from '../../protocol/access/directory.ts'
import { grantsOf, hasRole } from '../../protocol/access/roles.ts'
import {
  brandedPermission,
  systemRoleById,
  systemRoleId,
  systemRoleNames,
} from '../../protocol/access/schema.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { roleOf } from '../../protocol/interactions/check.ts'
import {
  type CallerRoles,
  type CreateInteraction,
  policyOf,
  runOf,
  targetsOf,
} from '../../protocol/interactions/rows.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { terminal } from '../../protocol/runs/schema.ts'
import type { Edge } from '../call.ts'
import type { Caller } from './authenticate.ts'
import { principalsNamed } from './principals.ts'

/**
 * Refuses ids that are neither the id of an active principal nor `role:` with the name or id of a
 * role. The role may be a system role or a role of the project.
 */
async function checkIds(
  { directory }: Edge,
  project: string,
  ids: readonly string[],
  field: string,
): Promise<Refusal | undefined> {
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  const unknown = ids.findIndex((id) => {
    const name = roleOf(id)
    return name !== undefined && !isRoleNamed(home, name)
  })
  if (unknown >= 0)
    return refuseFields({
      field: `${field}[${unknown}]`,
      message: 'there is no such role',
      actual: ids[unknown],
    })
  const parties = await principalsNamed(
    directory,
    project,
    ids,
    field,
    undefined,
    (id) => roleOf(id) !== undefined,
  )
  return isRefusal(parties) ? parties : undefined
}
const isRoleNamed = ({ roles }: ProjectDirectory, name: string): boolean =>
  hasRole(roles, name) ||
  Object.values(roles).some((role) => role.name === name) ||
  systemRoleNames.some((system) => system === name)

/**
 * Refuses an interaction that refers to an unknown role, a principal that is unknown or inactive,
 * or a run that does not exist or has ended.
 */
export async function checkPeople(
  edge: Edge,
  project: string,
  body: CreateInteraction,
): Promise<Refusal | undefined> {
  const reviewers = policyOf(body).review?.reviewer_user_ids ?? []
  const refused =
    (await checkIds(edge, project, targetsOf(body), 'target_user_ids')) ??
    (await checkIds(edge, project, reviewers, 'resolution_policy.review.reviewer_user_ids'))
  if (refused) return refused
  const run = runOf(body)
  if (!run) return undefined
  const record = await edge.world.ask({ project, kind: 'run', id: run.run_id }, 'get', {})
  if (isRefusal(record)) return record
  if (!record) return refuse('not_found', { run_id: run.run_id }, 'There is no such run.')
  return terminal.has(record.status)
    ? refuseFields({
        field: 'run_id',
        message: `the run is ${record.status}; it does not wait for an answer`,
        actual: run.run_id,
      })
    : undefined
}

/**
 * Refuses an answer by a key, or by a console session that was made from this key, if the scope role
 * of the key does not grant `interaction.respond`, even if the roles of its principal grant it.
 */
export async function checkScope(
  { directory, world }: Edge,
  project: string,
  { scope }: Pick<Caller, 'scope'>,
): Promise<Refusal | undefined> {
  if (scope.kind === 'organization' || scope.scope_role_id === undefined) return undefined
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  if (grantsOf(home.roles, scope.scope_role_id).includes('interaction.respond')) return undefined
  return refuse('permission_denied', {
    permission: brandedPermission('interaction.respond', world.settings.brand.toLowerCase()),
  })
}

/** Returns the roles that a caller currently holds. Each role is listed by id and by name. */
export async function rolesOf(
  { directory }: Pick<Edge, 'directory'>,
  project: string,
  { scope, principal }: Pick<Caller, 'scope' | 'principal'>,
): Promise<CallerRoles | Refusal> {
  if (scope.kind === 'organization') return { roles: [scope.role, systemRoleId(scope.role)] }
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  return {
    roles: (getOwn(home.principals, principal.id)?.role_ids ?? []).flatMap((id) => [
      id,
      systemRoleById(id) ?? getOwn(home.roles, id)?.name ?? id,
    ]),
  }
}

/**
 * Returns the texts by which an interaction can refer to a caller. They are the caller's id and,
 * for each role that the caller holds, `role:` with the id and `role:` with the name of the role.
 */
export async function namesOf(
  edge: Pick<Edge, 'directory'>,
  project: string,
  caller: Pick<Caller, 'scope' | 'principal'>,
): Promise<readonly string[] | Refusal> {
  const held = await rolesOf(edge, project, caller)
  return isRefusal(held) ? held : [caller.principal.id, ...held.roles.map((role) => `role:${role}`)]
}
