/**
 * Checks that are made before anything is written. They detect changes that the owner of a resource
 * would refuse: changes to immutable fields, and names that are taken.
 */
import { type Refusal, refuse } from '../errors.ts'
import { type KnownResource, presentValue } from './compare.ts'
import type { ResourceInput, ResourceTypeName } from './resources.ts'
import { resourceFacts } from './types.ts'

/** A resource of a request, and its path in the request. */
export interface Requested {
  readonly type: ResourceTypeName
  readonly input: ResourceInput
  readonly field: string
}
/**
 * Returns the path of the first change that the resource type does not allow; undefined if all
 * changes are allowed.
 */
export function fixedField(
  type: ResourceTypeName,
  wanted: Readonly<Record<string, unknown>>,
  known: KnownResource,
  differences: readonly { readonly field: string }[],
): string | undefined {
  for (const { field } of differences) {
    const { immutable, fixed } = resourceFacts[type].fields[field] ?? {}
    if (immutable) return field
    const [fault] =
      fixed?.(presentValue(known, field), wanted[field], known.is_empty === true) ?? []
    if (fault) return fault.field
  }
  return undefined
}

/**
 * Refuses to rename a resource to a name that another resource has. This applies even if the
 * request also renames the other resource, because the commands of one tier can be executed in any
 * order.
 */
export function renamedToTaken(
  requested: readonly Requested[],
  found: readonly { readonly known?: KnownResource }[],
  resources: readonly KnownResource[],
): Refusal | undefined {
  for (const [index, { type, input, field }] of requested.entries()) {
    const { adopt, match, fields } = resourceFacts[type]
    const known = found[index]?.known
    const name = input[match]
    if (!known || adopt !== 'unique' || fields[match]?.immutable || name === undefined) continue
    const other = resources.find((one) => one.type === type && one.record[match] === name)
    if (other && other.id !== known.id)
      return refuse('already_exists', {
        resource_type: type,
        key: input.key,
        resource_id: other.id,
        field: `${field}.${match}`,
        [match]: name,
      })
  }
  return undefined
}
