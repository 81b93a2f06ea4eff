/**
 * Comparison of resource inputs with records, field by field. A field that the input does not
 * contain is not compared. An empty value means that the record does not have the field.
 */
import type { ResourceInput, ResourceTypeName } from './resources.ts'
import type { FieldDifference } from './schema.ts'
import type { StoredBinding } from './stored.ts'
import { type FieldFacts, memberOf, resourceFacts } from './types.ts'

/** A resource of the project as its owner stores it. */
export interface KnownResource {
  readonly type: ResourceTypeName
  readonly id: string
  /** Version of the record: the plan holds only while it is the same. */
  readonly updated_at: string
  /** The record, with the ids of assigned resources under the names of the fields of the input. */
  readonly record: Readonly<Record<string, unknown>>
  readonly binding?: StoredBinding
  /** Whether a table has no rows, so that its schema can change more freely. */
  readonly is_empty?: boolean
}
/** Computes a hash of a text; the same text has the same hash in every process. */
export type Hash = (text: string) => string

const isBlank = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([, member]) => member !== undefined)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, member]) => [name, sorted(member)]),
        )
      : value
/** A JSON text that is equal for equal values, whatever the order of their members. */
export const canonical = (value: unknown): string => JSON.stringify(sorted(value)) ?? ''

/** Returns the canonical form of a value; undefined if it means the same as an absent field. */
export function formOf({ form, empty }: FieldFacts, value: unknown): unknown {
  const made = value === null || value === undefined || !form ? value : form(value)
  return made === null || made === undefined || isBlank(made) || made === empty ? undefined : made
}
const masked = ({ mask }: FieldFacts, value: unknown): unknown =>
  mask && value !== undefined ? mask(value) : value

/** The value that a record has for a field of the input. */
export function presentValue(known: KnownResource, field: string): unknown {
  const facts = resourceFacts[known.type]
  const { kept, refers } = facts.fields[field] ?? {}
  if (kept) return known.binding?.kept?.[field]
  return known.record[refers?.list ? field : memberOf(facts, field)]
}

/** Name in `applied` of the hash of a value with its secret parts. */
const secretName = (field: string): string => `${field}!`

/**
 * The binding without the hashes of the secret values that a command sets outside of the blueprint:
 * the next apply cannot compare them with the masked values of the record, so it sets them again.
 */
export function withoutSecretsOf(
  binding: StoredBinding,
  input: Readonly<Record<string, unknown>>,
): StoredBinding {
  const facts = resourceFacts[binding.resource_type]
  const replaced = new Set(
    Object.keys(facts.fields)
      .filter((field) => input[memberOf(facts, field)] !== undefined)
      .map(secretName),
  )
  const hashes = Object.entries(binding.applied ?? {})
  const left = hashes.filter(([name]) => !replaced.has(name))
  return left.length === hashes.length ? binding : { ...binding, applied: Object.fromEntries(left) }
}

/** The fields of an input that differ from the record, with their values before and after. */
export function differencesOf(
  type: ResourceTypeName,
  wanted: Readonly<Record<string, unknown>>,
  known: KnownResource | undefined,
  hash: Hash,
): FieldDifference[] {
  const { fields } = resourceFacts[type]
  return Object.entries(wanted).flatMap(([field, value]): FieldDifference[] => {
    const facts = fields[field]
    if (!facts) return []
    const to = formOf(facts, value)
    const present = known && presentValue(known, field)
    const from = formOf(facts, facts.align ? facts.align(value, present) : present)
    const [shownFrom, shownTo] = [masked(facts, from), masked(facts, to)]
    const secret = known?.binding?.applied?.[secretName(field)]
    const isSame =
      canonical(shownFrom) === canonical(shownTo) &&
      (canonical(shownTo) === canonical(to) || secret === hash(canonical(to)))
    return isSame
      ? []
      : [
          {
            field,
            ...(shownFrom !== undefined && { from: shownFrom }),
            ...(shownTo !== undefined && { to: shownTo }),
          },
        ]
  })
}

/** The hashes of the values that an input sets, for the detection of drift. */
export function appliedHashes(
  type: ResourceTypeName,
  wanted: Readonly<Record<string, unknown>>,
  hash: Hash,
): Readonly<Record<string, string>> {
  const { fields } = resourceFacts[type]
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([field, value]) => {
      const facts = fields[field]
      if (!facts || facts.kept) return []
      const form = formOf(facts, value)
      const shown = masked(facts, form)
      return [
        [field, hash(canonical(shown))],
        ...(canonical(shown) === canonical(form)
          ? []
          : [[secretName(field), hash(canonical(form))]]),
      ] as [string, string][]
    }),
  )
}

/**
 * The hashes of an input whose symbolic references have been resolved since the plan.
 * @param references the values of the reference fields, with ids.
 */
export const withReferences = (
  applied: Readonly<Record<string, string>>,
  references: Readonly<Record<string, unknown>>,
  hash: Hash,
): Readonly<Record<string, string>> => ({
  ...applied,
  ...Object.fromEntries(
    Object.entries(references).map(([field, value]) => [field, hash(canonical(value))]),
  ),
})

/** The fields whose values differ from those that the last apply set. */
export function driftOf(known: KnownResource, hash: Hash): FieldDifference[] {
  const { fields } = resourceFacts[known.type]
  return Object.entries(known.binding?.applied ?? {}).flatMap(
    ([field, applied]): FieldDifference[] => {
      const facts = fields[field]
      if (!facts) return []
      const value = masked(facts, formOf(facts, presentValue(known, field)))
      return hash(canonical(value)) === applied
        ? []
        : [{ field, ...(value !== undefined && { to: value }) }]
    },
  )
}

/** The configured fields of an input: those that the type of the resource has. */
export const configured = (
  type: ResourceTypeName,
  input: ResourceInput,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(input).filter(
      ([field, value]) => value !== undefined && Object.hasOwn(resourceFacts[type].fields, field),
    ),
  )
