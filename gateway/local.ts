/**
 * Queries that this gateway answers itself, from its directories: projects, keys, principals, roles, permissions. They are
 * complete there, and as current as the last answered change.
 */
import type { Api, RowName } from '../protocol/api.ts'
import type { ApiKey, PrincipalRecord } from '../protocol/api/access.ts'
import type { Project } from '../protocol/api/projects.ts'
import type { Input, Reply } from '../protocol/contract.ts'
import type { OrganizationDirectory, ProjectDirectory } from '../protocol/directory.ts'
import { isRefusal, refuse, type Refusal } from '../protocol/errors.ts'
import { own } from '../protocol/lookup.ts'
import type { Caller } from './authenticate.ts'
import { catalogOf, rolesOf } from './catalog.ts'
import { openCursor, sealCursor } from './cursor.ts'
import type { Directory } from './directory.ts'
import type { World } from './ports.ts'
import { soon, type Soon } from './soon.ts'

/** An admitted, authorized and validated query. */
interface LocalContext {
  readonly world: World
  readonly directory: Directory
  readonly caller: Caller
  /** Id of the project of the path; absent on organization rows. */
  readonly project?: string
  /** Path slots and query in one object. */
  readonly input: Readonly<Record<string, unknown>>
}
export type LocalQuery = (context: LocalContext) => Soon<unknown | Refusal>

const answer = <N extends RowName>(run: (context: LocalContext, input: Input<Api[N]>) => Soon<Reply<Api[N]> | Refusal>): LocalQuery =>
  (context) => run(context, context.input as Input<Api[N]>)
const organizationOf = <T>({ directory }: LocalContext, use: (known: OrganizationDirectory) => T): Soon<T | Refusal> =>
  soon(directory.organization(), (known) => (isRefusal(known) ? known : use(known)))
const projectOf = <T>({ directory, project = '' }: LocalContext, use: (known: ProjectDirectory) => T): Soon<T | Refusal> =>
  soon(directory.project(project), (known) => (isRefusal(known) ? known : use(known)))
const found = <T>(record: T | undefined): T | Refusal => record ?? refuse('not_found')

interface Dated { readonly id: string; readonly created_at: string }
interface Page<T> { items: T[]; has_more: boolean; next_cursor?: string }
const DEFAULT_LIMIT = 20

/** Of items in the list's order, the page after the cursor. `positionOf` is an item's sort key, `follows` tells whether an item lies behind a position. */
function pageOf<T, P>({ world, project, input }: LocalContext, route: RowName, items: readonly T[], positionOf: (item: T) => P, follows: (item: T, position: P) => boolean): Page<T> | Refusal {
  const { cursor, limit = DEFAULT_LIMIT } = input as { cursor?: string; limit?: number }
  const binding = { project: project ?? world.organization(), route, filters: input }
  const opened = cursor === undefined ? undefined : openCursor(world, binding, cursor)
  if (opened && isRefusal(opened)) return opened
  const rest = opened ? items.filter((item) => follows(item, opened.position as P)) : items
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  const more = rest.length > limit && last !== undefined
  return { items: page, has_more: more, ...(more && { next_cursor: sealCursor(world, binding, positionOf(last)) }) }
}
const before = (a: Dated, [created_at, id]: readonly [string, string]): boolean => a.created_at < created_at || (a.created_at === created_at && a.id < id)
const newestFirst = <T extends Dated>(records: readonly T[]): T[] => [...records].sort((a, b) => (before(a, [b.created_at, b.id]) ? 1 : -1))
const newestPage = <T extends Dated>(context: LocalContext, route: RowName, records: readonly T[]): Page<T> | Refusal =>
  pageOf(context, route, newestFirst(records), ({ created_at, id }) => [created_at, id] as const, before)

const keyIn = (keys: Readonly<Record<string, ApiKey>>, id: string): ApiKey | undefined => Object.values(keys).find((key) => key.id === id)
const keys = {
  organization: async <T>({ directory }: LocalContext, use: (keys: Readonly<Record<string, ApiKey>>) => T): Promise<T | Refusal> => {
    const known = await directory.refreshOrganization()
    return isRefusal(known) ? known : use(known.keys)
  },
  project: async <T>({ directory, project = '' }: LocalContext, use: (keys: Readonly<Record<string, ApiKey>>) => T): Promise<T | Refusal> => {
    const known = await directory.refreshProject(project)
    return isRefusal(known) ? known : use(known.keys)
  },
}

/** Whether a project has a tag: `key`, or `key:value` where the key may itself contain colons. */
const tagged = ({ tags = {} }: Project, term: string): boolean =>
  Object.hasOwn(tags, term) || Object.entries(tags).some(([key, value]) => `${key}:${value}` === term)
function projectFilter({ scope }: Caller, { search, tag }: Input<Api['project.list']>): (project: OrganizationDirectory['projects'][string]) => boolean {
  const needle = search?.toLowerCase() ?? ''
  const terms = (tag ?? '').split(',').map((term) => term.trim()).filter((term) => term !== '')
  return (project) => !project.deleted
    && (scope.kind === 'organization' || scope.project_id === project.id)
    && [project.name, project.handle, project.description ?? ''].some((text) => text.toLowerCase().includes(needle))
    && terms.every((term) => tagged(project, term))
}
const listed = ({ kind, state }: PrincipalRecord, input: Input<Api['principal.list']>): boolean =>
  (input.kind === undefined || kind === input.kind) && (state === 'active' || (state === 'disabled' && input.include_disabled === true))
const live = (known: OrganizationDirectory, id = ''): Project | undefined => {
  const project = own(known.projects, id)
  return project?.deleted ? undefined : project
}

/** By row name; rows that are a form of one of these (`as`) are answered by it. */
export const localQueries: Readonly<Record<string, LocalQuery>> = {
  'project.list': answer<'project.list'>((context, input) => organizationOf(context, ({ projects }) => newestPage<Project>(context, 'project.list', Object.values(projects).filter(projectFilter(context.caller, input))))),
  'project.get': answer<'project.get'>((context) => organizationOf(context, (known) => found(live(known, context.project)))),
  'project.capabilities': answer<'project.capabilities'>(async ({ caller: { permissions } }) => ({ can_manage_project: permissions.has('project.admin'), can_manage_access: permissions.has('access.manage') })),

  'key.list_organization': answer<'key.list_organization'>((context) => keys.organization(context, (all) => newestPage(context, 'key.list_organization', Object.values(all)))),
  'key.get_organization': answer<'key.get_organization'>((context, { id }) => keys.organization(context, (all) => found(keyIn(all, id)))),
  'key.list': answer<'key.list'>((context) => keys.project(context, (all) => newestPage(context, 'key.list', Object.values(all)))),
  'key.get': answer<'key.get'>((context, { id }) => keys.project(context, (all) => found(keyIn(all, id)))),

  'principal.list': answer<'principal.list'>((context, input) => projectOf(context, ({ principals }) => ({
    items: newestFirst(Object.values(principals).filter((principal) => listed(principal, input))).slice(0, input.limit ?? DEFAULT_LIMIT),
  }))),
  'principal.get': answer<'principal.get'>((context, { id }) => projectOf(context, ({ principals }) => found(own(principals, id)))),

  'role.list': answer<'role.list'>((context) => organizationOf(context, (known) => {
    const project = live(known, context.project)
    if (!project) return refuse('not_found')
    const roles = rolesOf(project, context.world.settings.brand.toLowerCase())
    const place = (id: string) => roles.findIndex((role) => role.id === id)
    return pageOf(context, 'role.list', roles, ({ id }) => id, ({ id }, last) => place(id) > place(last))
  })),
  'role.get': answer<'role.get'>((context, { id }) => organizationOf(context, (known) => {
    const project = live(known, context.project)
    return found(project && rolesOf(project, context.world.settings.brand.toLowerCase()).find((role) => role.id === id))
  })),
  'permission.list': answer<'permission.list'>(async ({ world }) => catalogOf(world.settings.brand.toLowerCase())),
}
