/**
 * Conflicts that the owner of a resource would refuse, found before anything is written: fields that
 * cannot change, and names that other resources have.
 */
import { type Refusal, refuse } from '../errors.ts'
import { type KnownResource, presentValue } from './compare.ts'
import type { ResourceInput, ResourceTypeName } from './resources.ts'
import { resourceFacts } from './types.ts'

/** A resource of a request, with its path there. */
export interface Requested {
  readonly type: ResourceTypeName
  readonly input: ResourceInput
  readonly field: string
}
/** The path of the first field that differs and cannot change, or cannot change in this way. */
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

/** Refuses a new name of an existing resource that another resource has and keeps. */
export function renamedToTaken(
  requested: readonly Requested[],
  found: readonly { readonly known?: KnownResource }[],
  resources: readonly KnownResource[],
): Refusal | undefined {
  const isRenamed = ({ type, input }: Requested, known: KnownResource): boolean => {
    const { match } = resourceFacts[type]
    return input[match] !== undefined && known.record[match] !== input[match]
  }
  const leaving = new Set(
    requested.flatMap((one, index) => {
      const known = found[index]?.known
      return known && isRenamed(one, known) ? [known.id] : []
    }),
  )
  for (const [index, one] of requested.entries()) {
    const { type, input, field } = one
    const { adopt, match, fields } = resourceFacts[type]
    const known = found[index]?.known
    if (!known || adopt !== 'unique' || fields[match]?.immutable || !isRenamed(one, known)) continue
    const other = resources.find(
      ({ type: same, id, record }) =>
        same === type && id !== known.id && record[match] === input[match] && !leaving.has(id),
    )
    if (other)
      return refuse('already_exists', {
        resource_type: type,
        key: input.key,
        resource_id: other.id,
        field: `${field}.${match}`,
        [match]: input[match],
      })
  }
  return undefined
}
