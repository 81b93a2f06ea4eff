/**
 * The subset of JSON Schema that is allowed for outputs of turns. It excludes references and some
 * other keywords that model providers may not accept. The rules for all schemas are in
 * `protocol/rules/json-schema/`.
 */
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
/**
 * Returns the faults of an output schema.
 * @param path path of the schema in the request.
 */
export const outputSchemaFaults = (schema: unknown, path: string): FieldError[] =>
  schemaFaults(schema, path, { refused })
