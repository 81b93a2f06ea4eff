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
