/** What the keywords of JSON Schema see of a check. Boundary: types and words; `validate.ts` does it. */
import type { FieldError } from '../../errors.ts'
import type { Budget } from '../expressions/values.ts'

/** Members and items that a schema has looked at, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Evaluated = Set<string | number>
/** A value under a schema, as a keyword sees it. */
export interface Check {
  readonly schema: Readonly<Record<string, unknown>>
  readonly value: unknown
  readonly budget: Budget
  readonly evaluated: Evaluated
  /** Report a fault of the value, or of a member of it. @returns false, which is what a failed keyword gives. */
  fail(message: string, more?: Omit<FieldError, 'field' | 'message'>, key?: string | number): false
  /** Check the same value under another schema. @param quiet whether its faults are not reported. */
  same(schema: unknown, quiet?: boolean): boolean
  /** Check a member or an item of the value. */
  inner(schema: unknown, key: string | number, value: unknown, quiet?: boolean): boolean
  /** Check the value under each schema; its faults are those of the schema that fits best when none does. */
  fitting(schemas: readonly unknown[], message: string): number
  /** The schema that a reference names. */
  resolve(reference: string): unknown
  /** Whether a pattern matches somewhere in a text. */
  matches(pattern: string, text: string): boolean
}

/** Whether the value of a check fits what its schema says under a keyword. */
export type Keyword = (check: Check, given: unknown) => boolean

/** The message for a member that is missing. */
export const REQUIRED = 'is required'
