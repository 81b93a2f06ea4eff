/** Access to objects whose member names are chosen by users. */

/** Returns an own member of an object; undefined for inherited members, such as `constructor`. */
export const own = <T>(of: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined
