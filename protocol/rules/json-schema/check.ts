/**
 * The interface between the validator and the keywords of JSON Schema. This file contains only
 * types and a shared message; `validate.ts` implements the validator.
 */
import type { FieldError } from '../../errors.ts'
import type { Budget } from '../expressions/values.ts'

/**
 * Property names and indices of a value that a schema has evaluated, for `unevaluatedProperties`
 * and `unevaluatedItems`.
 */
export type Evaluated = Set<string | number>
/** The validation of one value against one schema. */
export interface Check {
  readonly schema: Readonly<Record<string, unknown>>
  readonly value: unknown
  readonly budget: Budget
  readonly evaluated: Evaluated
  /**
   * Reports an error in the value, or in its property or item `key`.
   * @returns false, so that a keyword can end with `return fail(…)`.
   */
  fail(message: string, more?: Omit<FieldError, 'field' | 'message'>, key?: string | number): false
  /**
   * Whether the value also validates against another schema.
   * @param quiet suppresses the errors.
   */
  same(schema: unknown, quiet?: boolean): boolean
  /**
   * Whether a property or an item of the value fits a schema.
   * @param quiet suppresses the errors.
   */
  inner(schema: unknown, key: string | number, value: unknown, quiet?: boolean): boolean
  /**
   * Returns the number of schemas that the value fits. If the value fits none, reports the errors
   * of the schema that best explains the mismatch, or `message` if none explains it.
   */
  fitting(schemas: readonly unknown[], message: string): number
  /** Resolves a reference to its schema. */
  resolve(reference: string): unknown
  /** Whether a pattern matches anywhere in a string. */
  matches(pattern: string, text: string): boolean
}

/** Whether the value satisfies one keyword. `given` is the value of the keyword in the schema. */
export type Keyword = (check: Check, given: unknown) => boolean

/** The message for a missing property. */
export const REQUIRED = 'is required'
