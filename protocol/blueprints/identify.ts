/**
 * Matches requested resources with existing ones: by binding, otherwise by name.
 *
 * Invariant: a resource that is bound to another blueprint is never a match.
 */
import { type Refusal, refuse, refuseFields } from '../errors.ts'
import type { KnownResource } from './compare.ts'
import type { Requested } from './conflicts.ts'
import { placeOf } from './references.ts'
import type { ResourceInput } from './resources.ts'
import type { ApplyRequest } from './schema.ts'
import { type Identity, type InternalBinding, isSameIdentity } from './stored.ts'
import { resourceFacts, typesInOrder } from './types.ts'

interface Identifiable {
  readonly bindings: readonly InternalBinding[]
  readonly resources: readonly KnownResource[]
}
/** The match of a requested resource; `known` is absent if no existing resource matches. */
export interface Found {
  readonly known?: KnownResource
  /** `known` has no binding yet, so the blueprint adopts it. */
  readonly adopts?: true
}

/** Returns the resources of a request in the order in which they are applied, with their paths. */
export const requestedResources = ({ resources }: ApplyRequest): Requested[] =>
  typesInOrder.flatMap((type) => {
    const { array } = resourceFacts[type]
    return ((resources[array] ?? []) as readonly ResourceInput[]).map((input, index) => ({
      type,
      input,
      field: `resources.${array}[${index}]`,
    }))
  })

/**
 * Refuses a request in which two resources of one type have the same key or the same unique name.
 */
export function refuseDuplicates(requested: readonly Requested[]): Refusal | undefined {
  const seen = new Map<string, string>()
  for (const { type, input, field } of requested) {
    const { adopt, match } = resourceFacts[type]
    const name = input[match]
    for (const [member, value] of [
      ['key', input.key],
      ...(adopt === 'unique' && name !== undefined ? [[match, name] as const] : []),
    ] as const) {
      const text = `${type} ${member} ${String(value)}`
      const first = seen.get(text)
      if (first !== undefined)
        return refuseFields({
          field: `${field}.${member}`,
          message: `is already the ${member} of ${first}`,
          actual: value,
        })
      seen.set(text, field)
    }
  }
  return undefined
}

/**
 * Finds the existing resource that matches a requested one. Refused if the name is ambiguous, or if
 * names are unique and the resource with this name already has a binding.
 * @param keys `placeOf` of each resource of the request.
 */
export function identify(
  { type, input, field }: Requested,
  identity: Identity,
  { bindings, resources }: Identifiable,
  keys: ReadonlySet<string>,
): Found | Refusal {
  const boundAs = (key: string): KnownResource | undefined => {
    const binding = bindings.find(
      (one) => one.resource_type === type && one.key === key && isSameIdentity(one, identity),
    )
    return binding && resources.find(({ id }) => id === binding.resource_id)
  }
  const { moved_from } = input
  const known =
    boundAs(input.key) ??
    (moved_from !== undefined && !keys.has(placeOf(type, moved_from))
      ? boundAs(moved_from)
      : undefined)
  if (known) return { known }
  const { adopt, match } = resourceFacts[type]
  if (adopt === 'never' || input[match] === undefined) return {}
  const matches = resources.filter((one) => one.type === type && one.record[match] === input[match])
  const free = matches.filter(({ binding }) => binding === undefined)
  if (free.length > 1)
    return refuse('blueprint_ambiguous_name', {
      resource_type: type,
      key: input.key,
      field,
      resource_ids: free.map(({ id }) => id).slice(0, 20),
    })
  const other = matches.find(({ binding }) => binding !== undefined)
  if (adopt === 'unique' && other?.binding) {
    const { namespace, blueprint_key, key } = other.binding
    return refuse(
      'blueprint_owned_elsewhere',
      {
        resource_type: type,
        key: input.key,
        resource_id: other.id,
        field,
        owner: {
          key,
          ...(namespace !== undefined && { namespace }),
          ...(blueprint_key !== undefined && { blueprint_key }),
        },
      },
      isSameIdentity(other.binding, identity)
        ? `The resource is bound to this blueprint under the key ${key}; name that key in moved_from.`
        : undefined,
    )
  }
  return free[0] ? { known: free[0], adopts: true } : {}
}
