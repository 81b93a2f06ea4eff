/**
 * Copies of objects that gain properties.
 *
 * In V8 of Node.js 20, the copy that `{ ...base }` makes has a hidden class without transitions. Each
 * property that is added to such a copy, in the same literal or later, creates a new hidden class. An
 * addition then takes about 1 µs instead of 30 ns, and properties of the object are read slowly,
 * because its class is new everywhere. (Measured, bench/HISTORY.md.) `Object.assign` shares classes.
 *
 * Code that runs for each run, step or message therefore uses `extended` instead of a leading spread,
 * unless the copy only changes properties that the object already has.
 */

/**
 * Returns a copy of `base` with the properties of `more`, which replace equal names. Missing objects
 * are empty. The names come from the program: an object that has a property named `__proto__` of its
 * own would lose it.
 */
export const extended = <A extends object, B extends object>(
  base: A | undefined,
  more?: B | false | undefined,
): A & B => Object.assign({} as A & B, base, more)
