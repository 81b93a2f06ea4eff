/** Members of objects whose names are chosen by users. */

/** Returns a member of an object, and undefined for the members of all objects, as `constructor`. */
export const own = <T>(of: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined
