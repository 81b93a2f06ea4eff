/** Functions for form values: change members, find faults by path, convert dates and numbers. */

import { getOwn } from '../../protocol/lookup.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { below } from '../../protocol/rules/workflow-check/path.ts'
import type { FieldFault } from '../api/client.ts'
import type { Plan } from './plan.ts'

export type Members = Readonly<Record<string, unknown>>

/** Returns an object with a changed member. Undefined removes it. */
export function withMember(value: unknown, name: string, member: unknown): Members {
  const { [name]: _, ...rest } = isJsonObject(value) ? value : {}
  return member === undefined ? rest : { ...rest, [name]: member }
}

/** Whether a form can show a value completely. Otherwise, parts of it would be hidden or lost. */
export function canShow(plan: Plan, value: unknown): boolean {
  if (value === undefined) return true
  switch (plan.control) {
    case 'object':
      return (
        isJsonObject(value) &&
        Object.keys(value).every((name) => plan.members.some((one) => one.name === name)) &&
        plan.members.every(({ name, plan: member }) => canShow(member, getOwn(value, name)))
      )
    case 'list':
      return Array.isArray(value) && value.every((item) => canShow(plan.item, item))
    case 'choices':
      return Array.isArray(value)
    case 'json':
      return true
    default:
      return typeof value !== 'object' && value !== undefined
  }
}

/**
 * Returns the paths whose faults a form shows. An entry with `deep` includes all paths below its
 * path.
 */
function placesOf(
  plan: Plan,
  value: unknown,
  path: string,
): readonly { readonly path: string; readonly deep: boolean }[] {
  if (plan.control === 'object')
    return plan.members.flatMap(({ name, plan: member }) =>
      placesOf(member, isJsonObject(value) ? getOwn(value, name) : undefined, below(path, name)),
    )
  if (plan.control === 'list')
    return [
      { path, deep: false },
      ...(Array.isArray(value) ? value : []).flatMap((item, index) =>
        placesOf(plan.item, item, below(path, index)),
      ),
    ]
  return [{ path, deep: plan.control === 'json' || plan.control === 'choices' }]
}
const isBelow = (field: string, path: string): boolean =>
  path === '' || field.startsWith(`${path}.`) || field.startsWith(`${path}[`)

/** Returns the faults that no control of the form shows. */
export function unshownFaults(
  faults: readonly FieldFault[],
  plan: Plan,
  value: unknown,
): readonly FieldFault[] {
  if (faults.length === 0) return faults
  const places = placesOf(plan, value, '')
  return faults.filter(
    ({ field }) =>
      !places.some(({ path, deep }) => path === field || (deep && isBelow(field, path))),
  )
}
/** Returns the joined messages of the faults at a path; undefined if the path has no faults. */
export function faultAt(
  faults: readonly FieldFault[],
  path: string,
  deep = false,
): string | undefined {
  const found = faults.filter(({ field }) => field === path || (deep && isBelow(field, path)))
  return found.length === 0 ? undefined : found.map(({ message }) => message).join('; ')
}

const isEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
/** Returns the members of `edits` that differ from the stored values. */
export const changesOf = <T extends object>(edits: Partial<T>, stored: T): Partial<T> =>
  Object.fromEntries(
    Object.entries(edits).filter(([name, value]) => !isEqual(value, (stored as Members)[name])),
  ) as Partial<T>
/**
 * Returns the names of the edited fields whose stored values have changed since the person began to
 * edit them, and differ from the edited values.
 */
export const conflictsOf = (changes: Members, bases: Members, stored: Members): readonly string[] =>
  Object.keys(changes).filter(
    (name) => !isEqual(stored[name], bases[name]) && !isEqual(stored[name], changes[name]),
  )

/** Returns the names that occur more than once. Empty names are not compared. */
export const repeatedNames = (names: readonly string[]): ReadonlySet<string> =>
  new Set(names.filter((name, index) => name !== '' && names.indexOf(name) !== index))

/** Converts an RFC 3339 time to the format of `datetime-local`. Returns '' if it is not a time. */
export function localTime(value: string): string {
  const at = new Date(value)
  if (Number.isNaN(at.getTime())) return ''
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`
}
/** Converts a local time to RFC 3339. Returns undefined if it is empty or not a time. */
export function utcTime(local: string): string | undefined {
  const at = new Date(local)
  return local === '' || Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}
/**
 * Parses an entered number. Returns undefined if the text is empty. Other text is returned trimmed,
 * and the schema check refuses it.
 */
export function numberOf(text: string): number | string | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  const value = Number(trimmed)
  return Number.isFinite(value) ? value : trimmed
}

/** The declared inputs of a workflow or loop. */
export type Declared = Readonly<
  Record<
    string,
    {
      readonly type?: string
      readonly description?: string
      readonly required?: boolean
      readonly default?: unknown
    }
  >
>
/** Whether a workflow or loop declares any inputs. */
export const isDeclared = (declared: Declared | undefined): boolean =>
  Object.keys(declared ?? {}).length > 0
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array']
/**
 * Returns the JSON Schema of declared inputs. A declared type that JSON Schema lacks is omitted.
 */
export function schemaOfDeclared(declared: Declared | undefined): Members {
  const entries = Object.entries(declared ?? {})
  return {
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, { type, description, default: initial }]) => [
        name,
        {
          ...(type !== undefined && TYPES.includes(type) && { type }),
          ...(description !== undefined && { description }),
          ...(initial !== undefined && { default: initial }),
        },
      ]),
    ),
    required: entries.flatMap(([name, rule]) =>
      rule.required && rule.default === undefined ? [name] : [],
    ),
  }
}
