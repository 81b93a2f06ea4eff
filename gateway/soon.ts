/** Answers that are mostly known at once. A promise costs more than most of what the edge does for a request. */

/** A value, or a promise of it when somebody has to be asked first. */
export type Soon<T> = T | Promise<T>

/** Go on with a value: in this turn when it is known. */
export const soon = <T, U>(value: Soon<T>, then: (value: T) => Soon<U>): Soon<U> =>
  value instanceof Promise ? value.then(then) : then(value)
