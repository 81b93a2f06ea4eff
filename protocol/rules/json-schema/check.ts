/**
 * The context of one validation, as the keywords of JSON Schema see it. Types and shared messages
 * only; `validate.ts` implements it.
 */
import type { FieldError } from '../../errors.ts'
import type { Budget } from '../expressions/values.ts'

/**
 * Members and items that a schema has evaluated, for `unevaluatedProperties` and
 * `unevaluatedItems`.
 */
export type Evaluated = Set<string | number>
/** The validation of one value against one schema. */
export interface Check {
  readonly schema: Readonly<Record<string, unknown>>
  readonly value: unknown
  readonly budget: Budget
  readonly evaluated: Evaluated
  /**
   * Reports an error of the value, or of a member of it.
   * @returns false, so that a keyword can return the call.
   */
  fail(message: string, more?: Omit<FieldError, 'field' | 'message'>, key?: string | number): false
  /**
   * Checks the same value against another schema.
   * @param quiet suppresses the errors.
   */
  same(schema: unknown, quiet?: boolean): boolean
  /** Checks a member or an item of the value. */
  inner(schema: unknown, key: string | number, value: unknown, quiet?: boolean): boolean
  /**
   * Counts the schemas that the value fits. If it fits none, the errors of the closest schema are
   * reported, else `message`.
   */
  fitting(schemas: readonly unknown[], message: string): number
  /** Resolves a reference to its schema. */
  resolve(reference: string): unknown
  /** Whether a pattern matches anywhere in a string. */
  matches(pattern: string, text: string): boolean
}

/** Checks the value against one keyword. `given` is the keyword's value in the schema. */
export type Keyword = (check: Check, given: unknown) => boolean

/** The message for a missing member. */
export const REQUIRED = 'is required'
