/**
 * References between the resources of blueprints. A reference to a resource that the same request
 * creates is symbolic (`=type/key`) until the id of the resource is known.
 */
import { type FieldError, type Refusal, refuse, refuseFields } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import type { Reference, ResourceTypeName } from './resources.ts'
import { type Identity, type InternalBinding, isSameIdentity } from './stored.ts'

/** Returns the text `type/key`, which identifies a resource within its blueprint. */
export const placeOf = (type: ResourceTypeName, key: string): string => `${type}/${key}`
const symbol = (place: string): string => `=${place}`
/** Whether the value of a reference field is a symbolic reference. */
export const isSymbol = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith('=')
/** Whether the value of a reference field is or contains a symbolic reference. */
export const hasSymbol = (value: unknown): boolean =>
  Array.isArray(value) ? value.some(isSymbol) : isSymbol(value)
/** Replaces the symbolic references in the value of a reference field with ids. */
export function resolveReferences(value: unknown, ids: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((member) => resolveReferences(member, ids))
  if (!isSymbol(value)) return value
  return getOwn(ids, value.slice(1)) ?? value
}

/** The resources to which a reference can refer. */
export interface Referable {
  readonly identity: Identity
  /** Ids of the resources of the request, by `placeOf`; undefined for resources to be created. */
  readonly requested: ReadonlyMap<string, string | undefined>
  /** All bindings of the project. */
  readonly bindings: readonly InternalBinding[]
  readonly exists: (type: ResourceTypeName, id: string) => boolean
}

/**
 * Returns the id, possibly symbolic, of the resource to which a reference refers. Refused with
 * `not_found` when there is no such resource, with `blueprint_ambiguous_name` when several
 * blueprints have the key, and with `bad_request` unless the reference has exactly one of its three
 * forms.
 * @param field path of the reference in the request.
 */
export function idOf(
  { id, key, blueprint_ref }: Reference,
  type: ResourceTypeName,
  field: string,
  { identity, requested, bindings, exists }: Referable,
): string | Refusal {
  const missing = (details: object): Refusal =>
    refuse(
      'not_found',
      { resource_type: type, field, ...details },
      `There is no such ${type}; see details.`,
    )
  if ([id, key, blueprint_ref].filter((form) => form !== undefined).length !== 1)
    return refuseFields({
      field,
      message: 'give exactly one of id, key and blueprint_ref',
    } satisfies FieldError)
  if (id !== undefined) return exists(type, id) ? id : missing({ id })
  const sameType = bindings.filter(({ resource_type }) => resource_type === type)
  if (key !== undefined) {
    const place = placeOf(type, key)
    if (requested.has(place)) return requested.get(place) ?? symbol(place)
    const bound = sameType.find(
      (binding) => binding.key === key && isSameIdentity(binding, identity),
    )
    return bound?.resource_id ?? missing({ key })
  }
  const { namespace = '', key: other = '' } = blueprint_ref ?? {}
  const found = sameType.filter(
    (binding) => binding.key === other && (binding.namespace ?? '') === namespace,
  )
  if (found.length > 1)
    return refuse(
      'blueprint_ambiguous_name',
      { resource_type: type, key: other, field },
      'Several blueprints of this namespace have the key; refer to the resource by its id.',
    )
  return found[0]?.resource_id ?? missing({ blueprint_ref })
}
