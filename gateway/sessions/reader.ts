/**
 * Checks whether a principal other than the caller of the request may read a source event, for
 * example the last editor of a trigger or a webhook. The check for callers is in `visibility.ts`.
 */

import {
  activePrincipal,
  hasExpired,
  type OrganizationDirectory,
  type ProjectDirectory,
} from '../../protocol/access/directory.ts'
import { grantedBy } from '../../protocol/access/roles.ts'
import { systemRoles } from '../../protocol/access/schema.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Restriction } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Directory } from '../directory.ts'
import type { World } from '../ports.ts'

/** Returns the organization without its expired keys, which grant nothing. */
const withoutExpired = (
  organization: OrganizationDirectory,
  now: number,
): OrganizationDirectory => ({
  ...organization,
  keys: Object.fromEntries(
    Object.entries(organization.keys).filter(([, key]) => !hasExpired(key, now)),
  ),
})
/**
 * Returns whether a principal has `project.admin`, through its roles or the role of its
 * organization key.
 */
const isAdmin = (home: ProjectDirectory, { keys }: OrganizationDirectory, id: string): boolean =>
  grantedBy(home.roles, getOwn(home.principals, id)?.role_ids ?? []).has('project.admin') ||
  Object.values(keys).some(
    ({ principal_id, org_role = 'Viewer' }) =>
      principal_id === id && (systemRoles[org_role] as readonly string[]).includes('project.admin'),
  )

/**
 * Returns whether a principal is active and may currently read an event with a restriction. Returns
 * false if the session of the restriction does not exist, and a refusal if a directory or the view
 * cannot be read.
 */
export async function mayReadEvent(
  {
    world,
    directory,
  }: { readonly world: Pick<World, 'view' | 'now'>; readonly directory: Directory },
  project: string,
  { private_session: session_id, private_owner }: Restriction,
  principal_id: string,
): Promise<boolean | Refusal> {
  if ((private_owner ?? principal_id) !== principal_id) return false
  const [home, known] = await Promise.all([directory.project(project), directory.organization()])
  if (isRefusal(home)) return home
  if (isRefusal(known)) return known
  const organization = withoutExpired(known, world.now())
  if (!activePrincipal(home, organization, principal_id)) return false
  if (session_id === undefined) return true
  const found = await world.view(project, 'session_access', {
    of: { session_id },
    viewer: { id: principal_id, admin: isAdmin(home, organization, principal_id) },
  })
  return isRefusal(found) ? found : found.known && !found.closed
}
