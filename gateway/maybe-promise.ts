/**
 * Helpers for values that are usually available synchronously, so that most requests avoid the cost
 * of promises.
 */

/** A value, or a promise of it when the value is not available yet. */
export type MaybePromise<T> = T | Promise<T>

/**
 * Calls `then` with the value: synchronously when it is not a promise, otherwise after it resolves.
 */
export const andThen = <T, U>(
  value: MaybePromise<T>,
  then: (value: T) => MaybePromise<U>,
): MaybePromise<U> => (value instanceof Promise ? value.then(then) : then(value))
