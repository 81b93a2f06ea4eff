import type { FieldError } from '../../errors.ts'

const IDENTIFIER = /^[A-Za-z_$][\w$-]*$/
/**
 * Returns the path of a property or an element in the notation of faults, such as
 * `spec.steps[0].config`.
 */
export const below = (path: string, key: string | number): string =>
  typeof key === 'number'
    ? `${path}[${key}]`
    : !IDENTIFIER.test(key)
      ? `${path}[${JSON.stringify(key)}]`
      : path === ''
        ? key
        : `${path}.${key}`

/**
 * Refuses names with line breaks. TypeBox does not check the values of such members against the
 * schema of a record, so they could have any type.
 */
export const lineBreakFaults = (members: object, path: string): FieldError[] =>
  Object.keys(members)
    .filter((name) => /[\n\r\u2028\u2029]/.test(name))
    .map((name) => ({
      field: below(path, name),
      message: 'must not have a line break in its name',
    }))
