/** Conditions of SQL statements, with the values of their parameters. */
import type { Value } from './store.ts'

/** A condition on the rows of a list, in SQL, and the values of its parameters. */
export type Condition = readonly [sql: string, ...values: Value[]]

/**
 * Returns one equality condition per column. A column whose value is undefined is not restricted.
 */
export const equalityConditions = (
  wanted: Readonly<Record<string, Value | undefined>>,
): Condition[] =>
  Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [[`${column} = ?`, value] as const],
  )

/** Returns the condition that an expression has one of the values. Without values, it is false. */
export const isOneOf = (expression: string, values: readonly Value[]): Condition => [
  `${expression} IN (${placeholders(values)})`,
  ...values,
]
/** Returns a placeholder for each value, separated by commas. */
export const placeholders = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

/**
 * Returns the condition that all conditions are true, and the values of its parameters. It is true
 * if there are no conditions.
 */
export const allOf = (
  conditions: readonly Condition[],
): { readonly sql: string; readonly values: readonly Value[] } => ({
  sql: conditions.map(([sql]) => sql).join(' AND ') || 'TRUE',
  values: conditions.flatMap(([, ...values]) => values),
})

/** A filter with one value, or with several of which one must match. */
export type Many = string | readonly string[]
/** Returns the distinct values of a filter; none for an absent filter. */
export const valuesOf = (filter: Many | undefined): readonly string[] =>
  filter === undefined ? [] : typeof filter === 'string' ? [filter] : [...new Set(filter)]
