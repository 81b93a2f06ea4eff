/** Lookup in a plain object by a key that a client chose. */

/**
 * Returns the object's own property with this key; undefined for inherited names such as
 * `constructor` and `__proto__`.
 */
export const getOwn = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined
