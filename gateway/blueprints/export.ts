/**
 * Exports a project, or one of its blueprints, as a blueprint. Applying the export to the same,
 * unchanged project changes nothing. Bound resources keep the keys of their bindings. Other keys
 * are derived from names.
 */
import { formOf, type KnownResource, presentValue } from '../../protocol/blueprints/compare.ts'
import {
  type ResourceInput,
  type ResourceTypeName,
  resourceSchemas,
} from '../../protocol/blueprints/resources.ts'
import type { Export } from '../../protocol/blueprints/schema.ts'
import {
  type Identity,
  type InternalBinding,
  identityOf,
  isSameIdentity,
} from '../../protocol/blueprints/stored.ts'
import { resourceFacts, typesInOrder } from '../../protocol/blueprints/types.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { slug } from '../../protocol/naming.ts'
import type { LocalContext } from '../listing.ts'
import { withoutHiddenChannels } from './hidden-channels.ts'
import { allResources, bindingsOf, boundResources } from './present.ts'

/**
 * Assigns unique keys to the resources of one type. The same resources always get the same keys.
 */
function keysOf(resources: readonly KnownResource[], identity: Identity | undefined) {
  const keys = new Map<string, string>()
  const taken = new Set<string>()
  for (const { id, binding } of resources)
    if (binding && identity && isSameIdentity(binding, identity)) {
      keys.set(id, binding.key)
      taken.add(binding.key)
    }
  const rest = resources
    .filter(({ id }) => !keys.has(id))
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : a.id < b.id ? -1 : 1))
  for (const one of rest) {
    const base = slug(nameOf(one)) || one.type
    let key = base
    for (let n = 2; taken.has(key); n++) key = `${base}-${n}`
    taken.add(key)
    keys.set(one.id, key)
  }
  return keys
}
const nameOf = ({ type, record }: KnownResource): string =>
  String(record[resourceFacts[type].match] ?? '')

/**
 * Returns the input of a resource. References to resources outside of the export use ids.
 * @param isGone returns whether a referenced resource was deleted. Such a reference is omitted.
 */
function inputOf(
  known: KnownResource,
  key: string,
  keyOf: (type: ResourceTypeName, id: string) => string | undefined,
  isGone: (type: ResourceTypeName, id: string) => boolean,
): ResourceInput {
  const { fields } = resourceFacts[known.type]
  const { required = [] }: { readonly required?: readonly string[] } = resourceSchemas[known.type]
  const input: Record<string, unknown> = { key, name: known.record['name'] }
  for (const [field, facts] of Object.entries(fields)) {
    const present = presentValue(known, field)
    // Required fields, and the type of an action, are written even when they have default values.
    const isWritten = present !== undefined && (field === 'type' || required.includes(field))
    const value = formOf(facts, present) ?? (isWritten ? present : undefined)
    if (value === undefined) continue
    const { refers } = facts
    const shown = facts.mask ? facts.mask(value) : value
    const reference = (id: string) => {
      const other = refers && keyOf(refers.type, id)
      return other === undefined ? { id } : { key: other }
    }
    if (refers && !refers.list && isGone(refers.type, shown as string)) continue
    input[field] = refers?.list
      ? (shown as readonly string[]).map(reference)
      : refers
        ? reference(shown as string)
        : shown
  }
  return input as ResourceInput
}

/**
 * Exports the resources of a project, or of the blueprint with the given identity, without private
 * channels that the caller may not see.
 */
export async function exportResources(
  { world, directory, caller, project = '' }: LocalContext,
  { namespace, blueprint_key }: Identity,
): Promise<Export | Refusal> {
  const reading = { world, directory }
  const isPart = namespace !== undefined || blueprint_key !== undefined
  const identity = identityOf({
    ...(namespace !== undefined && { namespace }),
    ...(blueprint_key !== undefined && { blueprint_key }),
  })
  const bindings = await bindingsOf(reading, project, isPart ? identity : undefined)
  if (isRefusal(bindings)) return bindings
  const configuration = await directory.project(project)
  if (isRefusal(configuration)) return configuration
  const { agents } = configuration
  const found = isPart
    ? await boundResources(reading, project, bindings)
    : await allResources(reading, project)
  if (isRefusal(found)) return found
  const resources = await withoutHiddenChannels(world, project, caller, found)
  if (isRefusal(resources)) return resources
  const byType = new Map<ResourceTypeName, KnownResource[]>()
  for (const one of resources) {
    const list = byType.get(one.type)
    if (list) list.push(one)
    else byType.set(one.type, [one])
  }
  const own = isPart ? identity : theOnly(bindings)
  const keys = new Map([...byType].map(([type, list]) => [type, keysOf(list, own)] as const))
  const version = bindings.find((binding) => own && isSameIdentity(binding, own))?.blueprint_version
  return {
    ...own,
    ...(version !== undefined && { blueprint_version: version }),
    resources: Object.fromEntries(
      typesInOrder.flatMap((type) => {
        const list = byType.get(type) ?? []
        const inputs = list
          .map((one) =>
            inputOf(
              one,
              keys.get(type)?.get(one.id) ?? '',
              (other, id) => keys.get(other)?.get(id),
              // A loop keeps the id of its agent after the agent is deleted. Such a reference is
              // omitted.
              (other, id) => other === 'agent' && getOwn(agents, id) === undefined,
            ),
          )
          .sort((a, b) => (a.key < b.key ? -1 : 1))
        return inputs.length > 0 ? [[resourceFacts[type].array, inputs]] : []
      }),
    ) as Export['resources'],
  }
}
/**
 * Returns the identity of the project's blueprint if the project has exactly one, otherwise
 * undefined.
 */
function theOnly(bindings: readonly InternalBinding[]): Identity | undefined {
  const first = bindings[0]
  return first && bindings.every((binding) => isSameIdentity(binding, first))
    ? identityOf(first)
    : undefined
}
