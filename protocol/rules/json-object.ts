/** Tests for values that were read as JSON. */
import type { JsonObject } from '../common.ts'

/** Whether a value is a JSON object: neither null nor a list. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Whether a value is an empty text, list or object. */
export const isEmpty = (value: unknown): boolean =>
  value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
