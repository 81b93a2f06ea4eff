/**
 * Assembles the catalog of a project: its own actions, the organization's actions, its published
 * workflows, and the service's built-in actions. Actions and workflows are read from views, so
 * `readiness` reflects which workers are connected. The permissions of callers are not checked
 * here.
 */
import { type Builtin, builtins, isTableAction } from '../../protocol/actions/builtin.ts'
import type { OrganizationAction } from '../../protocol/actions/organization-rows.ts'
import type { Action, CatalogEntry } from '../../protocol/actions/rows.ts'
import type { JsonObject } from '../../protocol/common.ts'
import {
  type EnvironmentAction,
  environmentActions,
  isEnvironmentAction,
} from '../../protocol/environments/actions.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { ViewQueries } from '../../protocol/queries/views.ts'
import { type LocalQuery, localQuery } from '../listing.ts'
import type { World } from '../ports.ts'

type Asking = Pick<World, 'view' | 'organization' | 'settings'>
type Here = ViewQueries['callable']['reply']

const flags = (annotations: JsonObject = {}): CatalogEntry['annotations'] => ({
  idempotent: annotations['idempotent'] === true,
  destructive: annotations['destructive'] === true,
  read_only: annotations['read_only'] === true,
})
const riskOf = ({ destructive, read_only }: CatalogEntry['annotations']): CatalogEntry['risk'] =>
  destructive ? 'high' : read_only ? 'low' : 'medium'
const entry = (
  base: Pick<CatalogEntry, 'name' | 'definition_scope' | 'endpoint_kind'> & Partial<CatalogEntry>,
  annotations?: JsonObject,
): CatalogEntry => {
  const read = flags(annotations)
  return { source: 'custom', readiness: 'ready', risk: riskOf(read), annotations: read, ...base }
}
const described = ({
  title,
  description,
  input_schema,
  output_schema,
  endpoint_url,
}: Pick<Action, 'title' | 'description' | 'input_schema' | 'output_schema' | 'endpoint_url'>) => ({
  ...(title !== undefined && { title }),
  ...(description !== undefined && { description }),
  ...(input_schema && { input_schema }),
  ...(output_schema && { output_schema }),
  ...(endpoint_url !== undefined && { endpoint_url }),
})

function ofProject(action: Action, reachable: boolean): CatalogEntry {
  const { name, endpoint_kind, invocation_format, annotations } = action
  const unready = endpoint_kind === 'worker' && !reachable
  return entry(
    {
      name,
      definition_scope: 'project',
      endpoint_kind,
      ...described(action),
      ...(endpoint_kind === 'http' && { invocation_format }),
      ...(unready && {
        readiness: 'needs_setup' as const,
        readiness_reason: 'provider_unavailable' as const,
      }),
      execution:
        endpoint_kind === 'http'
          ? { supported_locations: ['managed'], default_location: 'managed' }
          : { supported_locations: ['worker'], default_location: 'worker' },
    },
    annotations,
  )
}
function ofOrganization(action: OrganizationAction): CatalogEntry {
  const { name, invocation_format, annotations, enabled, active_signing_version } = action
  const why = !enabled
    ? ('inactive' as const)
    : active_signing_version === undefined
      ? ('not_configured' as const)
      : undefined
  return entry(
    {
      name,
      definition_scope: 'organization',
      endpoint_kind: 'http',
      ...described(action),
      invocation_format,
      execution: { supported_locations: ['managed'], default_location: 'managed' },
      ...(why && { readiness: 'needs_setup' as const, readiness_reason: why }),
    },
    annotations,
  )
}
/**
 * Returns the catalog entry of an action that is executed in an environment.
 * @param ready whether the installation has a provider of environments.
 */
const ofEnvironment = (
  name: string,
  { title, description, input_schema, annotations, risk }: EnvironmentAction,
  ready: boolean,
): CatalogEntry => ({
  ...entry(
    {
      name,
      definition_scope: 'platform',
      endpoint_kind: 'worker',
      title,
      description,
      input_schema,
      execution: { supported_locations: ['environment'], default_location: 'environment' },
      ...(!ready && {
        readiness: 'needs_setup' as const,
        readiness_reason: 'not_configured' as const,
      }),
    },
    annotations,
  ),
  risk,
  source: 'platform',
})
const ofService = ({
  name,
  title,
  description,
  input_schema,
  annotations,
}: Builtin): CatalogEntry => ({
  ...entry(
    {
      name,
      definition_scope: 'platform',
      endpoint_kind: 'builtin',
      title,
      description,
      input_schema,
      execution: { supported_locations: ['managed'], default_location: 'managed' },
    },
    annotations,
  ),
  source: 'platform',
})
/** Maps the type names in the declared input of a workflow to JSON Schema types. */
const types: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  integer: 'integer',
  int: 'integer',
  boolean: 'boolean',
  bool: 'boolean',
  object: 'object',
  array: 'array',
  list: 'array',
}
function ofWorkflow({
  handle,
  name,
  description,
  input = {},
}: Here['workflows'][number]): CatalogEntry {
  const fields = Object.entries(input)
  const properties = Object.fromEntries(
    fields.map(([field, { type, description: about, default: standard }]) => {
      const known = type === undefined ? undefined : types[type]
      return [
        field,
        {
          ...(known !== undefined && { type: known }),
          ...(about !== undefined && { description: about }),
          ...(standard !== undefined && { default: standard }),
        },
      ]
    }),
  )
  const required = fields.filter(([, { required }]) => required === true).map(([field]) => field)
  return entry({
    name: `workflow.${handle}`,
    definition_scope: 'project',
    endpoint_kind: 'builtin',
    title: name,
    ...(description !== undefined && { description }),
    input_schema: { type: 'object', properties, ...(required.length > 0 && { required }) },
    execution: { supported_locations: ['managed'], default_location: 'managed' },
  })
}

/**
 * Returns the catalog entries sorted by name. An action of the project replaces an action of the
 * organization with the same name, and both replace a built-in action.
 * @param name limits the entries to this name. Without it, all entries are returned.
 */
export async function entriesOf(
  world: Asking,
  project: string,
  name?: string,
): Promise<readonly CatalogEntry[] | Refusal> {
  const wanted = name === undefined ? {} : { name }
  const [here, shared] = (await Promise.all([
    world.view(project, 'callable', wanted),
    world.view(world.organization(), 'shared_actions', wanted),
  ])) as [Here | Refusal, ViewQueries['shared_actions']['reply'] | Refusal]
  if (isRefusal(here)) return here
  if (isRefusal(shared)) return shared
  const entries = new Map<string, CatalogEntry>()
  for (const one of builtins(world.settings.brand.toLowerCase()))
    if (name === undefined || name === one.name) entries.set(one.name, ofService(one))
  const hasProvider = (world.settings.environments?.providers.length ?? 0) > 0
  for (const [one, action] of Object.entries(environmentActions))
    if (name === undefined || name === one)
      entries.set(one, ofEnvironment(one, action, hasProvider))
  for (const action of shared.items) entries.set(action.name, ofOrganization(action))
  for (const { action, reachable } of here.actions)
    entries.set(action.name, ofProject(action, reachable))
  for (const workflow of here.workflows)
    entries.set(`workflow.${workflow.handle}`, ofWorkflow(workflow))
  return [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
/** Returns the catalog entry with the given name. Refused with `not_found` when no entry has it. */
export async function findEntry(
  world: Asking,
  project: string,
  name: string,
): Promise<CatalogEntry | Refusal> {
  const entries = await entriesOf(world, project, name)
  return isRefusal(entries)
    ? entries
    : (entries.find((one) => one.name === name) ??
        refuse(
          'not_found',
          { action_name: name },
          'There is no such action in the catalog. ' +
            'An action of workers is in the catalog after it was created with endpoint_kind worker.',
        ))
}

/**
 * Returns a phrase that states who can call a built-in action.
 * @param brand lower-case brand.
 */
export const callersOf = (name: string, brand: string): string =>
  isTableAction(brand, name) || isEnvironmentAction(name) ? 'agents and steps' : 'agents'
/**
 * Returns an entry for the API. The description of a built-in action states who can call the
 * action, because `readiness` does not show this.
 */
const publishedEntry = (
  entry: CatalogEntry,
  { settings }: Pick<World, 'settings'>,
): CatalogEntry =>
  entry.source === 'platform'
    ? {
        ...entry,
        description: `${entry.description} Only ${callersOf(entry.name, settings.brand.toLowerCase())} call this.`,
      }
    : entry

/** Handlers of the query rows, by row name. */
export const catalogQueries: Readonly<Record<string, LocalQuery>> = {
  'catalog.actions': localQuery<'catalog.actions'>(async ({ world, project = '' }) => {
    const entries = await entriesOf(world, project)
    return isRefusal(entries)
      ? entries
      : { items: entries.map((entry) => publishedEntry(entry, world)) }
  }),
  'catalog.action': localQuery<'catalog.action'>(
    async ({ world, project = '' }, { action_name }) => {
      const found = await findEntry(world, project, action_name)
      return isRefusal(found) ? found : publishedEntry(found, world)
    },
  ),
}
