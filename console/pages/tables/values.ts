/** Column values as texts that people read and edit. The functions are pure. */
import { textOf, valueIn } from '../../../client/cli/tables/columns.ts'
import type { Column, ColumnType } from '../../../protocol/tables/schema.ts'
import { tablesText } from './text.ts'

/** Maximum number of characters of a value that a cell shows. */
const MAX_SHOWN = 200

/** Returns the text of a value for a cell; '' for a value that is missing. */
export function shownText(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
/** Returns the text with which a value is edited. `typedValue` converts the text back. */
export const editedText = (value: unknown, type: ColumnType): string =>
  typeof value === 'object' && value !== null
    ? JSON.stringify(value, undefined, 2)
    : (textOf(value, type) ?? '')

/** Returns whether a value is edited in a multi-line field. */
export const isLong = (value: unknown, type: ColumnType): boolean =>
  type === 'object' ||
  type === 'array' ||
  (typeof value === 'object' && value !== null) ||
  (typeof value === 'string' && (value.length > MAX_SHOWN || value.includes('\n')))

/** The value that a person has typed, or the reason why the text is invalid. */
export type Typed = { readonly value: unknown } | { readonly fault: string }
/**
 * Parses what a person typed as a value of the column's type. An empty text is null, or a fault if
 * the column is required.
 */
export function typedValue(
  text: string,
  { type, required }: Pick<Column, 'type' | 'required'>,
): Typed {
  if (text === '') return required ? { fault: tablesText.isRequired } : { value: null }
  const value = valueIn(type === 'string' ? text : text.trim(), type)
  return value === undefined || value === null ? { fault: tablesText.mustBe(type) } : { value }
}

/** Returns the width of a column in pixels, by its type. */
export const widthOf = (type: ColumnType): number =>
  ({ boolean: 110, number: 130, date: 190, string: 220, object: 260, array: 220, any: 220 })[type]
