/** Lookup in a plain object by a name that a client chose. */

/** The own member of a map; inherited names such as `constructor` or `__proto__` find nothing. */
export const getOwn = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined
