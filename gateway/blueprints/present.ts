/**
 * Reads the current state on which the plan of a blueprint is based: bindings from the view, and
 * resources from their owners. A view answers only after it has applied everything committed before
 * the query, so the bindings of earlier applies are found.
 */
import { brandedPermission } from '../../protocol/access/schema.ts'
import type { Hash, KnownResource } from '../../protocol/blueprints/compare.ts'
import { requestedResources } from '../../protocol/blueprints/identify.ts'
import type { Present } from '../../protocol/blueprints/plan.ts'
import type { Reference, ResourceTypeName } from '../../protocol/blueprints/resources.ts'
import type { ApplyRequest } from '../../protocol/blueprints/schema.ts'
import {
  type Identity,
  type InternalBinding,
  identityOf,
  isSameIdentity,
} from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { isSystemToolkit } from '../../protocol/toolkits/schema.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { Edge } from '../call.ts'
import { concurrently } from '../timing.ts'
import { withoutHiddenChannels } from './hidden-channels.ts'

type Reading = Pick<Edge, 'world' | 'directory'>
/** Types whose resources are separate actors. */
const separateTypes = ['loop', 'table', 'channel', 'environment'] as const
type SeparateType = (typeof separateTypes)[number]
const isSeparate = (type: ResourceTypeName): type is SeparateType =>
  separateTypes.some((one) => one === type)

/** Returns the hash function for plans and bindings. Its hashes have 16 characters. */
export const hashIn =
  ({ world }: Pick<Reading, 'world'>): Hash =>
  (text) =>
    world.hash(text).slice(0, 16)

/** Number of bindings per page. */
const PAGE = 500
/** Number of project resources per query. */
const CHUNK = 100
/** Maximum number of concurrent queries. */
const MAX_CONCURRENT = 32

const parts = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )

/** Returns the bindings of a project, or of one of its blueprints. */
export async function bindingsOf(
  { world }: Pick<Reading, 'world'>,
  project: string,
  identity?: Identity,
): Promise<InternalBinding[] | Refusal> {
  const all: InternalBinding[] = []
  for (;;) {
    const after = all.at(-1)?.resource_id
    const page = await world.view(project, 'blueprint_bindings', {
      ...(identity && { identity }),
      ...(after !== undefined && { after }),
      limit: PAGE,
    })
    if (isRefusal(page)) return page
    all.push(...page.items)
    if (!page.more) return all
  }
}

/** Converts the permissions of a role to their branded form, as in the API. */
const branded = ({ world }: Reading, known: KnownResource): KnownResource =>
  known.type === 'role'
    ? {
        ...known,
        record: {
          ...known.record,
          permissions: (known.record['permissions'] as readonly string[]).map((permission) =>
            brandedPermission(permission, world.settings.brand.toLowerCase()),
          ),
        },
      }
    : known
async function fromProject(
  reading: Reading,
  project: string,
  ids: readonly string[],
  named: readonly (readonly [ResourceTypeName, string])[],
): Promise<KnownResource[] | Refusal> {
  const questions = [
    ...parts(ids, CHUNK).map((part) => ({ ids: part, named: [] })),
    ...parts(named, CHUNK).map((part) => ({ ids: [], named: part })),
  ]
  const answers = await concurrently(MAX_CONCURRENT, questions, (input) =>
    reading.world.ask({ project, kind: 'project', id: project }, 'resources', input),
  )
  const refused = answers.find(isRefusal)
  if (refused) return refused
  return answers.flatMap((answer) =>
    isRefusal(answer) ? [] : answer.map((known) => branded(reading, known)),
  )
}
async function projectResources(
  reading: Reading,
  project: string,
): Promise<KnownResource[] | Refusal> {
  const ids = await reading.world.ask({ project, kind: 'project', id: project }, 'resource_ids', {})
  return isRefusal(ids) ? ids : fromProject(reading, project, ids, [])
}
/** Reads resources that are separate actors. Resources that do not exist are omitted. */
async function fromOwners(
  { world }: Pick<Reading, 'world'>,
  project: string,
  wanted: readonly (readonly [SeparateType, string])[],
): Promise<KnownResource[] | Refusal> {
  const answers = await concurrently(MAX_CONCURRENT, wanted, ([kind, id]) =>
    world.ask({ project, kind, id }, 'resource', {}),
  )
  const refused = answers.find(isRefusal)
  if (refused) return refused
  return answers.flatMap((answer) => (answer === null || isRefusal(answer) ? [] : [answer]))
}
/**
 * Reads resources that are separate actors: looks up their ids in the view, and then reads each
 * resource from its owner.
 * @param names returns the names of the wanted resources of a type. Without it, all are read.
 */
async function separateResources(
  { world }: Pick<Reading, 'world'>,
  project: string,
  names?: (type: SeparateType) => readonly string[],
): Promise<KnownResource[] | Refusal> {
  const answers = await Promise.all(
    separateTypes.map(async (type) => {
      const wanted = names?.(type)
      if (wanted?.length === 0) return []
      const found = await world.view(project, 'resources_named', {
        type,
        ...(wanted && { names: wanted }),
      })
      return isRefusal(found)
        ? found
        : fromOwners(
            { world },
            project,
            found.ids.map((id) => [type, id] as const),
          )
    }),
  )
  return answers.find(isRefusal) ?? answers.flatMap((answer) => (isRefusal(answer) ? [] : answer))
}
/** Reads all resources of a project that a blueprint can describe, without secrets. */
export async function allResources(
  reading: Reading,
  project: string,
): Promise<KnownResource[] | Refusal> {
  const [ofProject, others] = await Promise.all([
    projectResources(reading, project),
    separateResources(reading, project),
  ])
  if (isRefusal(ofProject)) return ofProject
  return isRefusal(others) ? others : [...ofProject, ...others]
}
const unique = (resources: readonly KnownResource[]): KnownResource[] => [
  ...new Map(resources.map((one) => [one.id, one])).values(),
]

/** Reads the resources of the given bindings. Resources that do not exist are omitted. */
export async function boundResources(
  reading: Reading,
  project: string,
  bindings: readonly InternalBinding[],
): Promise<KnownResource[] | Refusal> {
  const ofProject = bindings.flatMap(({ resource_type, resource_id }) =>
    isSeparate(resource_type) ? [] : [resource_id],
  )
  const others = bindings.flatMap(({ resource_type, resource_id }) =>
    isSeparate(resource_type) ? [[resource_type, resource_id] as const] : [],
  )
  const [first, second] = await Promise.all([
    fromProject(reading, project, ofProject, []),
    fromOwners(reading, project, others),
  ])
  if (isRefusal(first)) return first
  return isRefusal(second) ? second : [...first, ...second]
}

/** Returns the secrets that a request refers to, in the form of resources. */
async function secretsOf(
  { world }: Reading,
  project: string,
  named: readonly (readonly [ResourceTypeName, string])[],
): Promise<KnownResource[] | Refusal> {
  const names = new Set(named.flatMap(([type, name]) => (type === 'secret' ? [name] : [])))
  if (names.size === 0) return []
  const found = await world.ask({ project, kind: 'project', id: project }, 'secrets', {})
  if (isRefusal(found)) return found
  return found
    .filter(({ name }) => names.has(name))
    .map(({ name }) => ({ type: 'secret', id: name, updated_at: '', record: { name } }))
}

/**
 * Replaces the view's bindings of the given resources with the bindings that were read from their
 * owners. The view and the owners are read at different times, so a resource that was bound in
 * between would otherwise have a binding that is missing from the list.
 */
const reconciled = (
  bindings: readonly InternalBinding[],
  resources: readonly KnownResource[],
): InternalBinding[] => {
  const read = new Set(resources.map(({ id }) => id))
  return [
    ...bindings.filter(({ resource_id }) => !read.has(resource_id)),
    ...resources.flatMap(({ binding }) => binding ?? []),
  ].sort((a, b) => (a.resource_id < b.resource_id ? -1 : 1))
}

/** Returns the resource ids that a request refers to. */
const referredIds = (request: ApplyRequest): string[] =>
  requestedResources(request).flatMap(({ type, input }) =>
    Object.entries(resourceFacts[type].fields).flatMap(([field, { refers }]) => {
      const value = input[field]
      if (!refers || value === undefined) return []
      return ((refers.list ? value : [value]) as readonly Reference[]).flatMap(({ id }) =>
        id === undefined ? [] : [id],
      )
    }),
  )

/**
 * Reads everything that the plan of a request depends on. Private channels of other blueprints, or
 * of none, are omitted if the caller may not see them, so they are neither described nor adopted.
 */
export async function presentOf(
  reading: Reading,
  project: string,
  request: ApplyRequest,
  caller: Caller,
): Promise<Present | Refusal> {
  const { directory } = reading
  const identity = identityOf(request)
  const named = requestedResources(request).flatMap(({ type, input }) => {
    const { adopt, match } = resourceFacts[type]
    const name = input[match]
    return adopt === 'never' || name === undefined ? [] : [[type, String(name)] as const]
  })
  const referred = referredIds(request)
  const [bindings, byName, secrets, organization, owned] = await Promise.all([
    bindingsOf(reading, project),
    fromProject(
      reading,
      project,
      referred,
      named.filter(([type]) => !isSeparate(type) && type !== 'secret'),
    ),
    secretsOf(reading, project, named),
    directory.organization(),
    separateResources(reading, project, (type) =>
      named.flatMap(([one, name]) => (one === type ? [name] : [])),
    ),
  ])
  if (isRefusal(bindings)) return bindings
  if (isRefusal(byName)) return byName
  if (isRefusal(secrets)) return secrets
  if (isRefusal(organization)) return organization
  if (isRefusal(owned)) return owned
  const bound = await boundResources(
    reading,
    project,
    bindings.filter((binding) => isSameIdentity(binding, identity)),
  )
  if (isRefusal(bound)) return bound
  const isBound = ({ binding }: KnownResource): boolean =>
    binding !== undefined && isSameIdentity(binding, identity)
  const others = await withoutHiddenChannels(
    reading.world,
    project,
    caller,
    owned.filter((one) => !isBound(one)),
  )
  if (isRefusal(others)) return others
  const resources = unique([...byName, ...secrets, ...owned.filter(isBound), ...others, ...bound])
  const types = new Map(resources.map(({ id, type }) => [id, type]))
  return {
    bindings: reconciled(bindings, resources),
    resources,
    exists: (type, id) =>
      types.get(id) === type ||
      (type === 'toolkit' && isSystemToolkit(id)) ||
      (type === 'skill' && getOwn(organization.skills, id) !== undefined),
    hash: hashIn(reading),
  }
}
