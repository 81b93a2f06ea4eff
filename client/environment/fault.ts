/** Expected failures of environment actions, and the parameters of a call. */
import type { Parameters } from '../worker/options.ts'

/** A failure that fails the job. Its name becomes the `error_type` of the job. */
export class ActionFault extends Error {
  /** @param type stable, in snake_case. */
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
 * Returns an optional text.
 * @throws ActionFault if it is not a text, or contains a NUL character.
 */
export function optionalText(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name]
  if (isAbsent(value)) return undefined
  if (typeof value !== 'string' || value.includes('\0'))
    throw invalid(name, 'a text without NUL characters')
  return value
}
/** Returns a text that may not be empty. @throws ActionFault if it is absent or empty. */
export function requiredText(parameters: Parameters, name: string): string {
  const value = optionalText(parameters, name)
  if (value === undefined || value === '') throw invalid(name, 'a text that is not empty')
  return value
}
/**
 * Returns a whole number; `standard` if it is absent.
 * @throws ActionFault unless it is at least `minimum`. A value above `maximum` becomes `maximum`.
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
/** Returns whether a flag is set. @throws ActionFault if it is not true or false. */
export function flag(parameters: Parameters, name: string): boolean {
  const value = parameters[name]
  if (isAbsent(value)) return false
  if (typeof value !== 'boolean') throw invalid(name, 'true or false')
  return value
}
/** Returns a map of texts; numbers and booleans become texts. @throws ActionFault for others. */
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
/** Returns one of the choices; the first if it is absent. @throws ActionFault for other values. */
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
