/**
 * The subset of JSON Schema that is allowed for outputs of turns. It excludes references, so that
 * every model provider accepts it. All schemas use the same engine, `protocol/rules/json-schema/`.
 */
import type { JsonObject } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { schemaFaults } from '../rules/json-schema/schema.ts'

const refused: ReadonlySet<string> = new Set([
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  '$defs',
  'definitions',
  'if',
  'then',
  'else',
  'const',
  'patternProperties',
  'prefixItems',
])
const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Returns the validation errors of an output schema.
 * @param path position of the schema in the request.
 */
export const outputSchemaFaults = (schema: unknown, path: string): FieldError[] =>
  schemaFaults(schema, path, { refused })

/** Serialises a value as JSON with sorted members, so that equal values have equal strings. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`
}
