/**
 * Collects the faults of a structured text: syntax errors, faults of the parsed value, and faults
 * that the service has reported.
 */
import type { FieldFault } from '../api/client.ts'
import { type Language, type Located, locate, type TextFault } from './located.ts'

/**
 * A check of a parsed value, which is undefined for a text of white space. Paths of faults are
 * relative to the value, such as `steps[0].id`.
 */
export type ValueCheck = (value: unknown) => readonly FieldFault[]
/** A fault with its position in the text. `field` is '' for syntax errors. */
export interface ShownFault extends TextFault {
  readonly field: string
}

/**
 * Converts the path of a request field to a path relative to the value at `root`. Returns undefined
 * for a field outside of this value.
 */
const withoutRoot = (field: string, root: string): string | undefined =>
  root === ''
    ? field
    : field === root
      ? ''
      : field.startsWith(`${root}.`)
        ? field.slice(root.length + 1)
        : field.startsWith(`${root}[`)
          ? field.slice(root.length)
          : undefined

/**
 * Returns the faults of a request that belong to the value at `root`, with paths relative to it.
 */
export const faultsBelow = (faults: readonly FieldFault[], root: string): FieldFault[] =>
  faults.flatMap(({ field, message }) => {
    const path = withoutRoot(field, root)
    return path === undefined ? [] : [{ field: path, message }]
  })

/**
 * Returns the faults of a text.
 * @param given faults that the service has reported, with paths relative to the value.
 */
export function faultsOfText(
  text: string,
  language: Language,
  check: ValueCheck | undefined,
  given: readonly FieldFault[] = [],
): readonly ShownFault[] {
  const read: Located =
    text.trim() === ''
      ? { value: undefined, rangeOf: () => ({ from: 0, to: 0 }) }
      : locate(text, language)
  if ('fault' in read) return [{ ...read.fault, field: '' }]
  const { value, rangeOf } = read
  const own = check?.(value) ?? []
  const known = new Set(own.map(({ field, message }) => `${field} ${message}`))
  return [...own, ...given.filter(({ field, message }) => !known.has(`${field} ${message}`))].map(
    ({ field, message }) => ({ field, message, ...rangeOf(field) }),
  )
}
