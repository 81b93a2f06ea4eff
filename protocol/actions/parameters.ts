/** Schemas of the parameters of built-in actions. */
import type { JsonObject } from '../common.ts'

/** Returns the schema of an object with only these properties. */
export const object = (properties: JsonObject, required: readonly string[] = []): JsonObject => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})
/**
 * Returns the schema of a non-empty string.
 * @param maxLength maximum number of characters.
 * @param more additional keywords of the schema.
 */
export const text = (maxLength: number, more: JsonObject = {}): JsonObject => ({
  type: 'string',
  minLength: 1,
  maxLength,
  ...more,
})
