/**
 * Describes who is signed in: the session, the rights that it has in the organization and in each
 * project, and the ways of signing in.
 */
import type { ConsoleIdentity } from '../../../protocol/access/console-session.ts'
import { brandedPermission } from '../../../protocol/access/schema.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Edge } from '../../call.ts'
import type { World } from '../../ports.ts'
import { concurrently } from '../../timing.ts'
import type { Caller } from '../authenticate.ts'
import { ownOrigin } from './cookies.ts'
import { shownSession } from './rows.ts'
import { rightsOf } from './sessions.ts'

/** Maximum number of projects that are listed for a session. */
const MAX_PROJECTS = 500
/** Maximum number of projects whose directories are read concurrently. */
const MAX_CONCURRENT = 8
export const OIDC_START = '/auth/oidc/start'

const somebody = ({ principal: { id, type, name } }: Caller) => ({
  id,
  kind: type === 'service_account' ? ('service' as const) : type,
  name: name ?? id,
})
const permissionsOf = ({ settings }: Pick<World, 'settings'>, { permissions }: Caller) =>
  [...permissions].map((permission) => brandedPermission(permission, settings.brand.toLowerCase()))

const waysOf = ({ settings, provider }: World, host: string | undefined) => ({
  available: ownOrigin(settings, host) !== undefined,
  credential: true,
  ...(provider && { oidc: { name: provider.name, start_path: OIDC_START } }),
})

/**
 * Returns the identity for a request without a session. It contains only the ways of signing in.
 */
export const anonymousIdentity = (world: World, host: string | undefined): ConsoleIdentity => ({
  signed_in: false,
  ways: waysOf(world, host),
})

/**
 * Describes a session: who is signed in, and the rights in the organization and its projects.
 * @param hash hash of the session's cookie.
 */
export async function identityOf(
  { world, directory, authentication }: Edge,
  hash: string,
  host: string | undefined,
): Promise<ConsoleIdentity | Refusal> {
  const sessions = authentication.console
  const found = await sessions.session(hash)
  if (isRefusal(found)) return found
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const caller = await sessions.find(hash, {})
  if (isRefusal(caller)) return caller
  const administers = caller.scope.kind === 'organization' ? caller : undefined
  const own = new Set(rightsOf(found).flatMap(({ project_id }) => project_id ?? []))
  const open = Object.values(known.projects)
    .filter(({ id, deleted }) => !deleted && (administers !== undefined || own.has(id)))
    .sort((a, b) => a.name.localeCompare(b.name))
  const listed = await concurrently(
    MAX_CONCURRENT,
    open.slice(0, MAX_PROJECTS),
    async (project) => {
      const { id, handle, name } = project
      const there = own.has(id) ? await sessions.find(hash, { project: id }) : administers
      if (!there || isRefusal(there)) return there
      const enters = there.scope.kind === 'organization' || there.scope.project_id === id
      return enters
        ? { id, handle, name, principal: somebody(there), permissions: permissionsOf(world, there) }
        : undefined
    },
  )
  const refused = listed.find((one) => one !== undefined && isRefusal(one))
  if (refused && isRefusal(refused)) return refused
  const projects = listed.flatMap((one) => (one && !isRefusal(one) ? [one] : []))
  const person = projects.find(({ principal }) => principal.kind === 'user')?.principal
  const { session } = found
  return {
    signed_in: true,
    ways: waysOf(world, host),
    display_name: (person ?? somebody(caller)).name,
    session: shownSession(session, session.id),
    ...(administers && {
      organization: {
        principal: somebody(administers),
        role: administers.scope.kind === 'organization' ? administers.scope.role : '',
        permissions: permissionsOf(world, administers),
      },
    }),
    projects,
    ...(open.length > MAX_PROJECTS && { more_projects: true }),
  }
}
