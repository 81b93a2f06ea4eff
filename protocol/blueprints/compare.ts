/**
 * Compares resource inputs with records, field by field. Fields that the input does not contain are
 * not compared. An empty value is equal to an absent field.
 */
import { isEmpty } from '../rules/json-object.ts'
import type { ResourceInput, ResourceTypeName } from './resources.ts'
import type { FieldDifference } from './schema.ts'
import type { InternalBinding } from './stored.ts'
import { type FieldFacts, memberOf, resourceFacts } from './types.ts'

/** A resource of the project as its owner stores it. */
export interface KnownResource {
  readonly type: ResourceTypeName
  readonly id: string
  /** Version of the record. A plan is valid only while the version is unchanged. */
  readonly updated_at: string
  /**
   * The record. For each input field that assigns resources (`FieldFacts.assigned`), it contains
   * their ids under the name of the field.
   */
  readonly record: Readonly<Record<string, unknown>>
  readonly binding?: InternalBinding
  /**
   * Whether the resource is a table without rows. More schema changes are allowed for an empty
   * table.
   */
  readonly is_empty?: boolean
}
/** Computes a hash of a text. The same text has the same hash in every process. */
export type Hash = (text: string) => string

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
/** Returns the value as JSON with sorted members, so that equal values yield equal texts. */
export const canonicalJson = (value: unknown): string => JSON.stringify(sorted(value)) ?? ''

/**
 * Returns the canonical form of a value; undefined if the value is equivalent to an absent field.
 */
export function formOf({ form, empty }: FieldFacts, value: unknown): unknown {
  const made = value === null || value === undefined || !form ? value : form(value)
  return made === null || made === undefined || isEmpty(made) || made === empty ? undefined : made
}
const masked = ({ mask }: FieldFacts, value: unknown): unknown =>
  mask && value !== undefined ? mask(value) : value

/** Returns the current value of an input field; undefined if the resource has no such value. */
export function presentValue(known: KnownResource, field: string): unknown {
  const facts = resourceFacts[known.type]
  const { kept, refers } = facts.fields[field] ?? {}
  if (kept) return known.binding?.kept?.[field]
  return known.record[refers?.list ? field : memberOf(facts, field)]
}

/** Returns the key under which `applied` stores the hash of a field's unmasked value. */
const secretName = (field: string): string => `${field}!`

/**
 * Returns the binding without the hashes of the secret values that `input` replaces. `input` is the
 * input of a command outside of the blueprint. Records contain only masked values, so a value
 * without a hash cannot be compared, and the next apply sets it again.
 */
export function withoutSecretsOf(
  binding: InternalBinding,
  input: Readonly<Record<string, unknown>>,
): InternalBinding {
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

/**
 * Returns the fields of an input that differ from the record, with the values before and after the
 * change.
 */
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
      canonicalJson(shownFrom) === canonicalJson(shownTo) &&
      (canonicalJson(shownTo) === canonicalJson(to) || secret === hash(canonicalJson(to)))
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

/** Returns the hashes of the values that an input sets, which are used to detect drift. */
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
        [field, hash(canonicalJson(shown))],
        ...(canonicalJson(shown) === canonicalJson(form)
          ? []
          : [[secretName(field), hash(canonicalJson(form))]]),
      ] as [string, string][]
    }),
  )
}

/**
 * Returns the hashes in `applied`, supplemented by the hashes of references that were symbolic in
 * the plan and have been resolved since.
 * @param references the values of the reference fields, with ids.
 */
export const withReferences = (
  applied: Readonly<Record<string, string>>,
  references: Readonly<Record<string, unknown>>,
  hash: Hash,
): Readonly<Record<string, string>> => ({
  ...applied,
  ...Object.fromEntries(
    Object.entries(references).map(([field, value]) => [field, hash(canonicalJson(value))]),
  ),
})

/** Returns the fields whose values differ from the values that the last apply set. */
export function driftOf(known: KnownResource, hash: Hash): FieldDifference[] {
  const { fields } = resourceFacts[known.type]
  return Object.entries(known.binding?.applied ?? {}).flatMap(
    ([field, applied]): FieldDifference[] => {
      const facts = fields[field]
      if (!facts) return []
      const value = masked(facts, formOf(facts, presentValue(known, field)))
      return hash(canonicalJson(value)) === applied
        ? []
        : [{ field, ...(value !== undefined && { to: value }) }]
    },
  )
}

/**
 * Returns the fields that the last apply set, that still have a value, and that the input omits.
 * Fields that an empty value cannot remove are not listed.
 */
export function omittedFields(
  known: KnownResource,
  wanted: Readonly<Record<string, unknown>>,
): string[] {
  const { fields, match } = resourceFacts[known.type]
  return Object.keys(known.binding?.applied ?? {}).filter((field) => {
    const facts = fields[field]
    return (
      facts &&
      !facts.immutable &&
      field !== match &&
      !Object.hasOwn(wanted, field) &&
      formOf(facts, presentValue(known, field)) !== undefined
    )
  })
}

/** Returns the fields of an input that are present and that `resourceFacts` lists for the type. */
export function configuredFields(
  type: ResourceTypeName,
  input: ResourceInput,
): Readonly<Record<string, unknown>> {
  const { fields } = resourceFacts[type]
  const value = (field: string): unknown => {
    const other = fields[field]?.emptyMeans
    return input[field] === '' && other !== undefined ? input[other] : input[field]
  }
  return Object.fromEntries(
    Object.keys(input)
      .filter((field) => Object.hasOwn(fields, field) && input[field] !== undefined)
      .map((field) => [field, value(field)]),
  )
}
