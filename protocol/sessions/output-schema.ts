/**
 * The part of JSON Schema that outputs of turns are held to: it refers to nothing, so that every model provider takes it.
 * The engine is that of all schemas, `protocol/json-schema/`.
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

/** Faults of the schema of an output. @param path where it stands in the request. */
export const outputSchemaFaults = (schema: unknown, path: string): FieldError[] =>
  schemaFaults(schema, path, { refused })

/** JSON whose members are in order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`
}
