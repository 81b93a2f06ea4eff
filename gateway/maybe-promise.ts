/** Answers that are mostly known at once. A promise costs more than most of what the edge does for a request. */

/** A value, or a promise of it when somebody has to be asked first. */
export type MaybePromise<T> = T | Promise<T>

/** Go on with a value: in this turn when it is known. */
export const andThen = <T, U>(
  value: MaybePromise<T>,
  then: (value: T) => MaybePromise<U>,
): MaybePromise<U> => (value instanceof Promise ? value.then(then) : then(value))
