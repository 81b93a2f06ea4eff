import { isJsonObject } from '../../../protocol/rules/json-object.ts'
/** Converts JSON objects to the text of form fields, and back. */

/** Parses a JSON object. Returns {} for empty text, undefined for text that is not an object. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
/** Returns an object as text; '' for an absent or empty one. */
export const objectText = (value: object | undefined): string =>
  value === undefined || Object.keys(value).length === 0 ? '' : JSON.stringify(value, undefined, 2)
