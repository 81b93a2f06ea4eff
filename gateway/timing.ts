/**
 * Helpers for waiting, repetition and concurrency. The clock is passed in, so that tests can
 * control the time. All times are in milliseconds.
 */

/** Schedules functions. The function that `later` returns cancels the call. */
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
 * Returns the back-off after a failure: `first`, doubled for each of the `failures` consecutive
 * failures before it, but at most `last`.
 */
export const backoffMs = (
  failures: number,
  { first, last }: { readonly first: number; readonly last: number },
): number => Math.min(last, first * 2 ** failures)

/**
 * Runs a task for each item, at most `limit` at a time. Returns the results in the order of the
 * items.
 */
export async function concurrently<T, R>(
  limit: number,
  items: readonly T[],
  run: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length)
  const queue = items.entries()
  await Promise.all(
    Array.from({ length: Math.min(limit, items.length) }, async () => {
      for (const [index, item] of queue) results[index] = await run(item, index)
    }),
  )
  return results
}

/** The work that began between two calls of `WorkInProgress.settled`. */
interface Period {
  open: number
  /** Called when no work of the period is open. Set after the end of the period. */
  done: (() => void) | undefined
}

/** Counts work in progress. Unlike a set of promises, it needs no memory for each of them. */
export class WorkInProgress {
  #period: Period = { open: 0, done: undefined }
  /** The promises of the earlier periods. */
  readonly #earlier: Promise<void>[] = []

  /** Adds a promise, which is in progress until it settles. Returns the promise. */
  add<T>(promise: Promise<T>): Promise<T> {
    const period = this.#period
    const end = () => {
      if (--period.open === 0) period.done?.()
    }
    period.open++
    promise.then(end, end)
    return promise
  }
  /** Resolves when the promises that were added before this call have settled. */
  async settled(): Promise<void> {
    const period = this.#period
    this.#period = { open: 0, done: undefined }
    if (period.open > 0)
      this.#earlier.push(
        new Promise((resolve) => {
          period.done = resolve
        }),
      )
    await Promise.all(this.#earlier)
  }
}
