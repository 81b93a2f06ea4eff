/** The path of a member or an element of the document at a path, as faults name it: `spec.steps[0].config`. */
export const below = (path: string, key: string | number): string =>
  typeof key === 'number'
    ? `${path}[${key}]`
    : !/^[A-Za-z_$][\w$-]*$/.test(key)
      ? `${path}[${JSON.stringify(key)}]`
      : path === ''
        ? key
        : `${path}.${key}`
