/**
 * The subset of JSON Schema that is allowed for outputs of turns. It excludes references and some
 * other keywords that model providers may not accept. The rules for all schemas are in
 * `protocol/rules/json-schema/`.
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
 * Returns the faults of an output schema.
 * @param path path of the schema in the request.
 */
export const outputSchemaFaults = (schema: unknown, path: string): FieldError[] =>
  schemaFaults(schema, path, { refused })

/** Serializes a value as JSON with sorted property names, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`
}
