/**
 * The declared inputs and configuration of a workflow: checks of their types and defaults, and the
 * application of defaults.
 */
import type { FieldError } from '../../errors.ts'
import { getOwn } from '../../lookup.ts'
import { typeName } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'
import { below, lineBreakFaults } from './path.ts'

/** Declarations by name, as in a spec's `input` and `config`. */
export type Declarations = Readonly<
  Record<
    string,
    { readonly type?: string; readonly required?: boolean; readonly default?: unknown }
  >
>

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  object: isJsonObject,
  array: Array.isArray,
}
/**
 * Returns the fault of a value that does not fit a declared type. Only six types are checked. A
 * value of any other declared type is accepted.
 */
function mismatch(type: string | undefined, value: unknown, field: string): FieldError[] {
  const fits = type !== undefined && Object.hasOwn(types, type) ? types[type] : undefined
  return !fits || fits(value)
    ? []
    : [
        {
          field,
          message: `must be of type ${type}, not ${typeName(value)}`,
          expected: type,
          actual: value,
        },
      ]
}

/**
 * Checks the inputs or the configuration of a new run, and adds defaults. Undeclared names are
 * accepted. Null counts as missing if the value is required, and is otherwise accepted.
 * @param path path of the values in the request, such as `input`.
 */
export function applyDefaults(
  declared: Declarations | undefined,
  given: Readonly<Record<string, unknown>> | undefined,
  path: string,
): { readonly values: Record<string, unknown> } | { readonly faults: FieldError[] } {
  const values = given ?? {}
  const missing = (name: string) => !Object.hasOwn(values, name) || values[name] === undefined
  const entries = Object.entries(declared ?? {})
  const faults = entries.flatMap(([name, rule]): FieldError[] => {
    const field = below(path, name)
    const value = missing(name) ? rule.default : values[name]
    if ((value ?? null) === null) return rule.required ? [{ field, message: 'is required' }] : []
    return missing(name) ? [] : mismatch(rule.type, value, field)
  })
  if (faults.length > 0) return { faults }
  const defaults = entries
    .filter(([name, rule]) => missing(name) && rule.default !== undefined)
    .map(([name, rule]): [string, unknown] => [name, rule.default])
  return { values: Object.fromEntries([...Object.entries(values), ...defaults]) }
}

/**
 * Returns the faults of values that may be overridden later: those of another type than declared.
 * @param path path of the values in the request.
 */
export const checkOverridable = (
  declared: Declarations,
  given: Readonly<Record<string, unknown>>,
  path: string,
): FieldError[] =>
  Object.entries(declared).flatMap(([name, { type }]) => {
    const value = getOwn(given, name) ?? null
    return value === null ? [] : mismatch(type, value, below(path, name))
  })

/** Returns an error for each invalid name, or for each default of another type than declared. */
export function checkDeclared(declared: Declarations, path: string): FieldError[] {
  const invalid = lineBreakFaults(declared, path)
  if (invalid.length > 0) return invalid
  return Object.entries(declared).flatMap(([name, rule]) =>
    (rule.default ?? null) === null
      ? []
      : mismatch(rule.type, rule.default, below(below(path, name), 'default')),
  )
}
