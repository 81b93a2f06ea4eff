/**
 * Queries that the gateway answers itself, and the table of all such queries. This file has the
 * queries of projects, keys, principals, people, roles, permissions, event types and models. Most
 * are answered from the cached directories, which reflect every change that was acknowledged before
 * the query.
 */

import type { OrganizationDirectory, ProjectDirectory } from '../../protocol/access/directory.ts'
import type { Role } from '../../protocol/access/role-rows.ts'
import { allows, roleRecord } from '../../protocol/access/roles.ts'
import type { ApiKey, PrincipalRecord } from '../../protocol/access/rows.ts'
import { brandedPermission } from '../../protocol/access/schema.ts'
import { isPersonal } from '../../protocol/access/user-rows.ts'
import type { Api } from '../../protocol/api.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { eventCatalog } from '../../protocol/events/catalog.ts'
import { connectedBy } from '../../protocol/events/integrations.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Project } from '../../protocol/projects/rows.ts'
import type { Caller } from '../auth/authenticate.ts'
import { consoleQueries } from '../auth/console/rows.ts'
import { catalogOf, rolesOf } from '../auth/permission-catalog.ts'
import { blueprintQueries } from '../blueprints/queries.ts'
import { artifactQueries } from '../commands/artifacts/read.ts'
import { definitionQueries } from '../commands/definitions.ts'
import { memoryQueries } from '../commands/memory.ts'
import { preferenceQueries } from '../commands/preferences.ts'
import { hostQueries } from '../commands/repositories/hosts.ts'
import { resolverQueries } from '../commands/resolver/configure.ts'
import { secretQueries } from '../commands/webhooks.ts'
import {
  comesAfter,
  type LocalContext,
  type LocalQuery,
  localQuery,
  newestFirst,
  newestPage,
  organizationOf,
  orNotFound,
  pageOf,
  projectOf,
} from '../listing.ts'
import { logQueries } from '../logs/query.ts'
import { attachmentQueries } from '../sessions/attach.ts'
import { catalogQueries, entriesOf } from './action-catalog.ts'
import { environmentLogQueries } from './environment-logs.ts'
import { loopQueries } from './loop-triggers.ts'
import { clusterQueries } from './overview.ts'
import { manifestQueries } from './tool-manifest.ts'

const keyIn = (keys: readonly ApiKey[], id: string): ApiKey | undefined =>
  keys.find((key) => key.id === id)
/**
 * Functions that read keys from their actor. The last use of a key may be outdated in the cache,
 * because recording a use does not invalidate the cache. The keys are the API keys of the
 * organization or the project, or the tokens of one person.
 */
const keys = {
  organization: async <T>(
    { directory }: LocalContext,
    use: (keys: readonly ApiKey[]) => T,
  ): Promise<T | Refusal> => {
    const known = await directory.refreshOrganization()
    return isRefusal(known) ? known : use(Object.values(known.keys))
  },
  project: async <T>(
    { directory, project = '' }: LocalContext,
    use: (keys: readonly ApiKey[]) => T,
  ): Promise<T | Refusal> => {
    const known = await directory.refreshProject(project)
    return isRefusal(known)
      ? known
      : use(Object.values(known.keys).filter((key) => !isPersonal(key)))
  },
  person: async <T>(
    { directory, project = '' }: LocalContext,
    id: string,
    use: (keys: readonly ApiKey[]) => T,
  ): Promise<T | Refusal> => {
    const known = await directory.refreshProject(project)
    if (isRefusal(known)) return known
    return personIn(known, id)
      ? use(Object.values(known.keys).filter((key) => isPersonal(key) && key.principal_id === id))
      : refuse('not_found')
  },
}
const personIn = ({ principals }: ProjectDirectory, id: string): PrincipalRecord | undefined => {
  const person = getOwn(principals, id)
  return person?.kind === 'user' ? person : undefined
}

const credentialOf = ({ id, name, expires_at, last_used_at }: ApiKey, now: number) => ({
  id,
  status:
    (parseTimestamp(expires_at ?? '') ?? Infinity) > now
      ? ('active' as const)
      : ('expired' as const),
  label: name,
  ...(last_used_at !== undefined && { last_used_at }),
})

/**
 * Returns whether a project has a tag, given as `key` or as `key:value`. The key may itself contain
 * colons.
 */
const hasTag = ({ tags = {} }: Project, term: string): boolean =>
  Object.hasOwn(tags, term) ||
  Object.entries(tags).some(([key, value]) => `${key}:${value}` === term)
function projectFilter(
  { scope, permissions }: Caller,
  { search, tag }: Input<Api['project.list']>,
): (project: OrganizationDirectory['projects'][string]) => boolean {
  const needle = search?.toLowerCase() ?? ''
  const terms = (tag ?? []).map((term) => term.trim()).filter((term) => term !== '')
  return (project) =>
    !project.deleted &&
    (scope.kind === 'organization' ||
      (scope.project_id === project.id && allows(permissions, 'project.view'))) &&
    [project.name, project.handle, project.description ?? ''].some((text) =>
      text.toLowerCase().includes(needle),
    ) &&
    terms.every((term) => hasTag(project, term))
}
const isVisible = ({ state }: PrincipalRecord, disabled: boolean | undefined): boolean =>
  state === 'active' || (state === 'disabled' && disabled === true)
/**
 * Returns whether a principal is listed. Without `kind`, people are not listed, because some
 * clients do not support principals of the kind `user`.
 */
const isListed = (
  principal: PrincipalRecord,
  { kind, include_disabled }: Input<Api['principal.list']>,
): boolean =>
  (kind === undefined ? principal.kind !== 'user' : principal.kind === kind) &&
  isVisible(principal, include_disabled)
const liveProject = (known: OrganizationDirectory, id = ''): Project | undefined => {
  const project = getOwn(known.projects, id)
  return project?.deleted ? undefined : project
}

/**
 * Calls `use` with all roles: the system roles, weakest first, then the roles of the project,
 * newest first. `rank` returns the position of a system role. The roles of the project share the
 * last rank.
 */
async function everyRole<T>(
  context: LocalContext,
  use: (roles: readonly Role[], rank: (role: Role) => number) => T,
): Promise<T | Refusal> {
  const { brand } = context.world.settings
  const [organization, home] = await Promise.all([
    organizationOf(context, (known) => liveProject(known, context.project)),
    projectOf(context, ({ id, roles }) =>
      Object.values(roles).map((role) => roleRecord(role, id, brand)),
    ),
  ])
  if (!organization) return refuse('not_found')
  if (isRefusal(organization)) return organization
  if (isRefusal(home)) return home
  const system = rolesOf(organization, brand.toLowerCase())
  const rank = ({ id, system_defined }: Role): number =>
    system_defined ? system.findIndex((role) => role.id === id) : system.length
  return use([...system, ...newestFirst(home)], rank)
}

/** The handlers of the queries, by operation name. A handler answers all rows of its operation. */
export const localQueries: Readonly<Record<string, LocalQuery>> = {
  'project.list': localQuery<'project.list'>((context, input) =>
    organizationOf(context, ({ projects }) =>
      newestPage<Project>(
        context,
        'project.list',
        Object.values(projects).filter(projectFilter(context.caller, input)),
      ),
    ),
  ),
  'project.get': localQuery<'project.get'>((context) =>
    organizationOf(context, (known) => orNotFound(liveProject(known, context.project))),
  ),
  'project.capabilities': localQuery<'project.capabilities'>(
    async ({ caller: { permissions } }) => ({
      can_manage_project: permissions.has('project.admin'),
      can_manage_access: permissions.has('access.manage'),
    }),
  ),

  'key.list_organization': localQuery<'key.list_organization'>((context) =>
    keys.organization(context, (all) =>
      newestPage(context, 'key.list_organization', Object.values(all)),
    ),
  ),
  'key.get_organization': localQuery<'key.get_organization'>((context, { id }) =>
    keys.organization(context, (all) => orNotFound(keyIn(all, id))),
  ),
  'key.list': localQuery<'key.list'>((context) =>
    keys.project(context, (all) => newestPage(context, 'key.list', Object.values(all))),
  ),
  'key.get': localQuery<'key.get'>((context, { id }) =>
    keys.project(context, (all) => orNotFound(keyIn(all, id))),
  ),

  'principal.list': localQuery<'principal.list'>((context, { include, ...input }) =>
    projectOf(context, ({ principals }) => {
      const page = newestPage<PrincipalRecord>(
        { ...context, input },
        'principal.list',
        Object.values(principals).filter((principal) => isListed(principal, input)),
      )
      const paged = isRefusal(page) || include !== undefined || input.cursor !== undefined
      return paged ? page : { items: page.items }
    }),
  ),
  'principal.get': localQuery<'principal.get'>((context, { id }) =>
    projectOf(context, ({ principals }) => orNotFound(getOwn(principals, id))),
  ),

  'user.list': localQuery<'user.list'>((context, { include_disabled }) =>
    projectOf(context, ({ principals }) =>
      newestPage(
        context,
        'user.list',
        Object.values(principals).filter(
          (one) => one.kind === 'user' && isVisible(one, include_disabled),
        ),
      ),
    ),
  ),
  'user.get': localQuery<'user.get'>((context, { id }) =>
    projectOf(context, (known) => orNotFound(personIn(known, id))),
  ),
  'token.list': localQuery<'token.list'>((context, { id }) =>
    keys.person(context, id, (all) => newestPage(context, 'token.list', all)),
  ),

  'me.get': localQuery<'me.get'>(
    async ({ caller: { principal, credential, permissions }, world }) => ({
      principal: {
        id: principal.id,
        kind: principal.type === 'service_account' ? 'service' : principal.type,
        name: principal.name ?? principal.id,
      },
      credential: {
        id: credential.id,
        type:
          credential.type === 'cli_token' || credential.type === 'console_session'
            ? credential.type
            : 'api_key',
        name: credential.name ?? credential.id,
      },
      permissions: [...permissions].map((permission) =>
        brandedPermission(permission, world.settings.brand.toLowerCase()),
      ),
    }),
  ),
  'me.list_tokens': localQuery<'me.list_tokens'>((context) =>
    keys.person(context, context.caller.principal.id, (all) =>
      newestPage(context, 'me.list_tokens', all),
    ),
  ),

  'cli_credential.list': localQuery<'cli_credential.list'>((context) =>
    keys.person(context, context.caller.principal.id, (all) => {
      const page = newestPage(context, 'cli_credential.list', all)
      return isRefusal(page)
        ? page
        : { ...page, items: page.items.map((token) => credentialOf(token, context.world.now())) }
    }),
  ),

  'role.list': localQuery<'role.list'>((context) =>
    everyRole(context, (roles, rank) => {
      type Position = readonly [rank: number, created_at: string, id: string]
      const positionOf = (role: Role): Position => [rank(role), role.created_at, role.id]
      return pageOf(
        context,
        'role.list',
        roles,
        positionOf,
        (role, [last, created_at, id]) =>
          rank(role) > last || (rank(role) === last && comesAfter(role, [created_at, id])),
      )
    }),
  ),
  'role.get': localQuery<'role.get'>((context, { id }) =>
    everyRole(context, (roles) => orNotFound(roles.find((role) => role.id === id))),
  ),
  'assignment.list': localQuery<'assignment.list'>((context, { principal_id, role_id }) =>
    projectOf(context, ({ assignments }) => ({
      items: newestFirst(
        assignments.filter(
          (one) =>
            (principal_id === undefined || one.principal_id === principal_id) &&
            (role_id === undefined || one.role_id === role_id),
        ),
      ),
    })),
  ),
  ...catalogQueries,
  ...secretQueries,
  ...hostQueries,
  ...resolverQueries,
  ...blueprintQueries,
  ...consoleQueries,
  'permission.list': localQuery<'permission.list'>(async ({ world, project = '' }) => {
    const entries = await entriesOf(world, project)
    if (isRefusal(entries)) return entries
    return catalogOf(world.settings.brand.toLowerCase(), entries)
  }),
  'catalog.events': localQuery<'catalog.events'>(async ({ world, project = '' }) => {
    const found = await world.ask({ project, kind: 'project', id: project }, 'secrets', {})
    if (isRefusal(found)) return found
    return eventCatalog(
      world.settings.inbound_mail === true,
      connectedBy(found.map(({ name }) => name)),
    )
  }),
  'catalog.models': localQuery<'catalog.models'>(
    async ({
      world: {
        settings: { models },
      },
    }) => ({
      default_model: models.default_model,
      items: models.providers.map(({ models: all, ...provider }) => ({
        ...provider,
        models: all.map(({ max_effort: _, price: _1, reads: _2, ...model }) => model),
      })),
    }),
  ),
  ...definitionQueries,
  ...loopQueries,
  ...clusterQueries,
  ...environmentLogQueries,
  ...memoryQueries,
  ...preferenceQueries,
  ...manifestQueries,
  ...attachmentQueries,
  ...artifactQueries,
  ...logQueries,
}
