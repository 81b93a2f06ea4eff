/**
 * Values that are usually available synchronously. A promise costs more than most of the gateway's
 * work for a request.
 */

/** A value, or a promise of it when another component has to be asked first. */
export type MaybePromise<T> = T | Promise<T>

/** Continues with a value: synchronously when it is not a promise. */
export const andThen = <T, U>(
  value: MaybePromise<T>,
  then: (value: T) => MaybePromise<U>,
): MaybePromise<U> => (value instanceof Promise ? value.then(then) : then(value))
