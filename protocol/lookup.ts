/** Looking up a name that a client chose in a plain object. */

/** The own member of a map, so that `constructor` or `__proto__` in a path find nothing. */
export const getOwn = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined
