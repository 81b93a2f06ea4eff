/** Defines what a setting consists of: its default text, its description and its parser. */
import type { Parse } from './parse.ts'

export interface Setting<T> {
  /** The default text, or undefined when the setting may be absent. */
  readonly standard: string | undefined
  readonly description: string
  readonly parse: Parse<T>
}
export const setting = <T>(standard: string, parse: Parse<T>, description: string): Setting<T> => ({
  standard,
  parse,
  description,
})
export const optional = <T>(parse: Parse<T>, description: string): Setting<T | undefined> => ({
  standard: undefined,
  parse,
  description,
})
/** The values of the settings of a table, by name. */
export type ValuesOf<T> = { [N in keyof T]: T[N] extends Setting<infer V> ? V : never }
