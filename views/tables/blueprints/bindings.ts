/** Stores and lists the bindings of resources to blueprints, and finds resources by name. */
import {
  type BoundEvent,
  type Identity,
  type InternalBinding,
  identityOf,
} from '../../../protocol/blueprints/stored.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { EnvironmentEvent } from '../../../protocol/environments/events.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { placeholders } from '../../conditions.ts'
import type { Store } from '../../store.ts'

/** Encodes an identity as unambiguous text: neither namespace nor key contains a line break. */
const textOf = (identity: Identity): string => {
  const { namespace = '', blueprint_key = '' } = identityOf(identity)
  return `${namespace}\n${blueprint_key}`
}

/** The event of a destroyed environment. It also removes the environment's binding. */
type EnvironmentDestroyed = Extract<EnvironmentEvent, { type: 'environment.destroyed' }>
/** Stores and deletes bindings according to an entry of an actor that owns resources. */
export function applyBindings(store: Store, { entry }: PlacedEntry): void {
  for (const event of entry.events as readonly (BoundEvent | EnvironmentDestroyed)[])
    if (event.type === 'blueprint.bound') {
      const { binding } = event
      store.run(
        'INSERT OR REPLACE INTO blueprint_bindings (resource, project, blueprint, record) VALUES (?, ?, ?, ?)',
        binding.resource_id,
        store.numberOf(entry.project),
        textOf(binding),
        JSON.stringify(binding),
      )
    } else if (event.type === 'blueprint.unbound')
      store.run('DELETE FROM blueprint_bindings WHERE resource = ?', event.resource_id)
    else if (event.type === 'environment.destroyed')
      store.run('DELETE FROM blueprint_bindings WHERE resource = ?', entry.id)
}

type Query<N extends keyof ViewQueries> = ViewQueries[N]
/** Returns a page of bindings, ordered by resource id. */
export function bindingPage(
  store: Store,
  project: number,
  { identity, after = '', limit }: Query<'blueprint_bindings'>['input'],
): Query<'blueprint_bindings'>['reply'] {
  const rows = store.all<{ record: string }>(
    `SELECT record FROM blueprint_bindings
     WHERE project = ?${identity ? ' AND blueprint = ?' : ''} AND resource > ?
     ORDER BY resource LIMIT ?`,
    project,
    ...(identity ? [textOf(identity)] : []),
    after,
    limit + 1,
  )
  return {
    items: rows.slice(0, limit).map(({ record }) => JSON.parse(record) as InternalBinding),
    more: rows.length > limit,
  }
}

/** Maximum number of names in one statement. */
const MAX_NAMES = 500
const sources = {
  loop: { table: 'loops', name: 'name', only: '' },
  table: { table: 'tables', name: 'name', only: '' },
  channel: {
    table: 'channels',
    name: "json_extract(record, '$.name')",
    only: " AND kind = 'channel'",
  },
  environment: {
    table: 'environments',
    name: "json_extract(record, '$.name')",
    only: " AND json_extract(record, '$.mode') = 'manual' AND json_extract(record, '$.status') <> 'destroyed'",
  },
} as const
/**
 * Returns the ids of the resources of a type that have one of the names. Without names, returns the
 * ids of all resources of the type.
 */
export function resourcesNamed(
  store: Store,
  project: number,
  { type, names }: Query<'resources_named'>['input'],
): Query<'resources_named'>['reply'] {
  const { table, name, only } = sources[type]
  const find = (more: string, values: readonly string[]): string[] =>
    store
      .all<{ id: string }>(
        `SELECT id FROM ${table} WHERE project = ?${only}${more} ORDER BY id`,
        project,
        ...values,
      )
      .map(({ id }) => id)
  if (!names) return { ids: find('', []) }
  const ids: string[] = []
  for (let from = 0; from < names.length; from += MAX_NAMES) {
    const part = names.slice(from, from + MAX_NAMES)
    ids.push(...find(` AND ${name} IN (${placeholders(part)})`, part))
  }
  return { ids }
}
