/**
 * The views of all resources, and the data derived from their definitions: the functions that apply
 * entries of each kind, the tables of a file, and the queries by name.
 */
import { api } from '../protocol/api.ts'
import type { Row } from '../protocol/contract.ts'
import { type Kind, kinds } from '../protocol/entry.ts'
import type { ViewQueryName } from '../protocol/queries/views.ts'
import type { Arm, Queries, QueryContext, Upkeep, ViewDefinition } from './define-view.ts'
import { access } from './tables/access/view.ts'
import { actions } from './tables/actions/view.ts'
import { agents } from './tables/agents/view.ts'
import { artifacts } from './tables/artifacts/view.ts'
import { blueprints } from './tables/blueprints/view.ts'
import { changes } from './tables/changes/view.ts'
import { channels } from './tables/channels/view.ts'
import { environments } from './tables/environments/view.ts'
import { events } from './tables/events/view.ts'
import { interactions } from './tables/interactions/view.ts'
import { jobs } from './tables/jobs/view.ts'
import { loops } from './tables/loops/view.ts'
import { memory } from './tables/memory/view.ts'
import { overview } from './tables/overview/view.ts'
import { runs } from './tables/runs/view.ts'
import { sessions } from './tables/sessions/view.ts'
import { tableVectors } from './tables/tables/vectors/view.ts'
import { dataTables } from './tables/tables/view.ts'
import { usage } from './tables/usage/view.ts'
import { webhooks } from './tables/webhooks/view.ts'
import { workers } from './tables/workers/view.ts'
import { workflows } from './tables/workflows/view.ts'

/** If several views apply entries of the same kind, they do so in this order. */
const views = [
  access,
  workflows,
  agents,
  actions,
  webhooks,
  runs,
  overview,
  jobs,
  workers,
  interactions,
  channels,
  loops,
  events,
  memory,
  sessions,
  usage,
  artifacts,
  environments,
  dataTables,
  tableVectors,
  blueprints,
  changes,
]

/** The statements that create the tables of all views. */
export const tables = views.map((view) => view.tables).join('')

/** The upkeep of all views. */
export const upkeeps: readonly Upkeep[] = views.flatMap(
  (view: ViewDefinition<never>) => view.upkeep ?? [],
)

const armsByKind: ReadonlyMap<string, readonly Arm[]> = new Map(
  kinds.map((kind) => [kind, views.flatMap((view) => view.kinds[kind] ?? [])]),
)
const none: readonly Arm[] = []
/**
 * Returns the functions that apply entries of a kind; an empty list if the kind is unknown to this
 * release.
 */
export const armsOf = (kind: string): readonly Arm[] => armsByKind.get(kind) ?? none

const gathersKind = (view: ViewDefinition<never>, kind: Kind): boolean =>
  view.kinds[kind] === undefined || view.gathers?.includes(kind) === true
/**
 * Kinds whose entries change only the caches and append-only rows of `Store`. Entries of other
 * kinds may be written to the tables immediately.
 */
export const bufferedKinds: ReadonlySet<string> = new Set<string>(
  kinds.filter((kind) => views.every((view) => gathersKind(view, kind))),
)

type NameOf<V> = V extends { readonly queries: infer Q } ? keyof Q & ViewQueryName : never
/**
 * Returns the queries of all definitions, by name.
 * @throws an error if two definitions have a query of the same name.
 */
function queriesOf<V extends ViewDefinition<never>>(views: readonly V[]): Queries<NameOf<V>> {
  const found = new Map<string, unknown>()
  for (const [name, query] of views.flatMap((view) => Object.entries(view.queries))) {
    if (found.has(name)) throw new Error(`two views answer the query ${name}`)
    found.set(name, query)
  }
  return Object.fromEntries(found) as Queries<NameOf<V>>
}
/** The compiler reports an error here if no view answers a query of `ViewQueries`. */
const queries: Queries = queriesOf(views)

/**
 * Returns the query with this name; undefined if this release has no such query. An API row whose
 * `shape.as` refers to another row uses that row's query.
 */
export function queryOf(
  name: string,
): ((asked: QueryContext, input: unknown) => unknown) | undefined {
  const row = Object.hasOwn(api, name) ? (api as Readonly<Record<string, Row>>)[name] : undefined
  const key = row?.shape.as ?? name
  return Object.hasOwn(queries, key)
    ? (queries[key as keyof typeof queries] as (asked: QueryContext, input: unknown) => unknown)
    : undefined
}
