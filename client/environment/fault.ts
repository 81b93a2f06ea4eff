/** Defines the expected failures of environment actions, and reads the parameters of calls. */
import type { Parameters } from '../worker/options.ts'

/** An expected failure of a job. The name of the error becomes the `error_type` of the job. */
export class ActionFault extends Error {
  /** @param type stable error type in snake_case. */
  constructor(type: string, message: string) {
    super(message)
    this.name = type
  }
}
const invalid = (name: string, expected: string) =>
  new ActionFault('invalid_parameters', `${name} must be ${expected}`)
const isAbsent = (value: unknown): value is null | undefined =>
  value === undefined || value === null

/**
 * Returns an optional string parameter; undefined if it is absent.
 * @throws ActionFault if the value is not a string or contains a NUL character.
 */
export function optionalText(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name]
  if (isAbsent(value)) return undefined
  if (typeof value !== 'string' || value.includes('\0'))
    throw invalid(name, 'a text without NUL characters')
  return value
}
/**
 * Returns a required, non-empty string parameter.
 * @throws ActionFault if the value is absent, empty or invalid.
 */
export function requiredText(parameters: Parameters, name: string): string {
  const value = optionalText(parameters, name)
  if (value === undefined || value === '') throw invalid(name, 'a text that is not empty')
  return value
}
/**
 * Returns an integer parameter, limited to `maximum`; `standard` if it is absent.
 * @throws ActionFault if the value is not an integer of at least `minimum`.
 */
export function wholeNumber(
  parameters: Parameters,
  name: string,
  { standard, minimum = 1, maximum }: { standard: number; minimum?: number; maximum: number },
): number {
  const value = parameters[name]
  if (isAbsent(value)) return standard
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < minimum)
    throw invalid(name, `a whole number of at least ${minimum}`)
  return Math.min(value, maximum)
}
/**
 * Returns a boolean parameter; false if it is absent.
 * @throws ActionFault if the value is not a boolean.
 */
export function flag(parameters: Parameters, name: string): boolean {
  const value = parameters[name]
  if (isAbsent(value)) return false
  if (typeof value !== 'boolean') throw invalid(name, 'true or false')
  return value
}
/**
 * Returns a map of strings. Numbers and booleans are converted to strings.
 * @throws ActionFault for values of other types.
 */
export function textMap(parameters: Parameters, name: string): Readonly<Record<string, string>> {
  const value = parameters[name]
  if (isAbsent(value)) return {}
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(name, 'an object of texts')
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      if (!['string', 'number', 'boolean'].includes(typeof one) || `${key}${one}`.includes('\0'))
        throw invalid(`${name}.${key}`, 'a text without NUL characters')
      return [key, String(one)]
    }),
  )
}
/**
 * Returns one of the choices; the first if the parameter is absent.
 * @throws ActionFault for other values.
 */
export function choice<T extends string>(
  parameters: Parameters,
  name: string,
  choices: readonly [T, ...T[]],
): T {
  const value = optionalText(parameters, name) ?? choices[0]
  const found = choices.find((one) => one === value)
  if (found === undefined) throw invalid(name, `one of ${choices.join(', ')}`)
  return found
}
