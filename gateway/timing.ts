/**
 * Helpers for waiting and repetition. The clock is passed in, so that tests can control the time.
 * All times are in milliseconds.
 */

/** The part of a clock that calls a function later; the returned function cancels the call. */
interface Timer {
  later(ms: number, run: () => void): () => void
}

/** Resolves after `ms` milliseconds. */
export const sleep = (clock: Timer, ms: number): Promise<void> =>
  new Promise((resolve) => clock.later(ms, resolve))

/** Calls `run` after each interval until the returned function is called. */
export function every(clock: Timer, intervalMs: number, run: () => void): () => void {
  const tick = () => {
    // Scheduled first, so that `run` can end the repetition.
    cancel = clock.later(intervalMs, tick)
    run()
  }
  let cancel = clock.later(intervalMs, tick)
  return () => cancel()
}

/**
 * Returns the result of a promise, or undefined when it has not settled after `limitMs`
 * milliseconds.
 */
export async function atMost<T>(
  clock: Timer,
  limitMs: number,
  promise: Promise<T>,
): Promise<T | undefined> {
  let cancel = () => {}
  const late = new Promise<undefined>((resolve) => {
    cancel = clock.later(limitMs, () => resolve(undefined))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    cancel()
  }
}

/**
 * Returns the back-off after a number of consecutive failures: `first`, doubled for each failure,
 * but at most `last`.
 */
export const backoffMs = (
  failures: number,
  { first, last }: { readonly first: number; readonly last: number },
): number => Math.min(last, first * 2 ** failures)
