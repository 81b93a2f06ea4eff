/** Reads JSON that a person has typed. This module needs no browser. */
import { isJsonObject } from '../../../../../protocol/rules/json-object.ts'
import { actionText as text } from './text.ts'

/** A parsed object, or the reason why the text is not an object. */
export type Typed =
  | { readonly value: Readonly<Record<string, unknown>>; readonly fault?: undefined }
  | { readonly value?: undefined; readonly fault: string }

/** Reads a JSON object. An empty text is an empty object. */
export function readObject(typed: string): Typed {
  if (typed.trim() === '') return { value: {} }
  let value: unknown
  try {
    value = JSON.parse(typed)
  } catch (error) {
    return { fault: text.invalidJson(error instanceof Error ? error.message : String(error)) }
  }
  return isJsonObject(value) ? { value } : { fault: text.notObject }
}
/** Returns an object as indented text; `{}` for an absent object. */
export const writeObject = (value: unknown): string => JSON.stringify(value ?? {}, undefined, 2)

/**
 * Reads the text of a field as a value of a declared type. An empty text gives undefined. A text
 * that is not a valid number or JSON is returned unchanged.
 */
export function readValue(type: string | undefined, typed: string): unknown {
  if (typed === '') return undefined
  if (type === 'number' || type === 'integer')
    return Number.isNaN(Number(typed)) ? typed : Number(typed)
  if (type === 'boolean') return typed === 'true'
  if (type === 'string') return typed
  try {
    return JSON.parse(typed)
  } catch {
    return typed
  }
}
/** Returns a value as the text of a field of a declared type. */
export const writeValue = (type: string | undefined, value: unknown): string =>
  value === undefined
    ? ''
    : typeof value === 'string' && type !== 'object' && type !== 'array'
      ? value
      : JSON.stringify(value)
