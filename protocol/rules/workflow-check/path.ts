/**
 * Returns the path of a property or an element in the notation of faults, such as
 * `spec.steps[0].config`.
 */
export const below = (path: string, key: string | number): string =>
  typeof key === 'number'
    ? `${path}[${key}]`
    : !/^[A-Za-z_$][\w$-]*$/.test(key)
      ? `${path}[${JSON.stringify(key)}]`
      : path === ''
        ? key
        : `${path}.${key}`
