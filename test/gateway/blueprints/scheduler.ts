/** Runs several gateways of a world concurrently, in an order that a test determines. */
import { settleAll } from '../../support/memory.ts'
import type { Step, Store } from './world.ts'

/** Milliseconds by which the time advances when no gateway has a waiting call. */
const TICK_MS = 50
/** The maximum number of rounds of one race. */
const MAX_ROUNDS = 20_000

/**
 * Lets the gateways proceed one call at a time. `choose` picks the next of the waiting calls.
 * @returns the results of the tasks, in their order.
 */
export async function race<T>(
  store: Store,
  choose: (count: number) => number,
  ...tasks: ((step: Step) => Promise<T>)[]
): Promise<T[]> {
  const waiting: (() => void)[] = []
  const step: Step = (name) =>
    name === 'timer' ? undefined : new Promise<void>((go) => void waiting.push(go))
  let left = tasks.length
  const results = tasks.map((task) => task(step).finally(() => void left--))
  // Prevents unhandled rejections. A failure is thrown when the results are awaited below.
  for (const result of results) result.catch(() => {})
  for (let round = 0; left > 0; round++) {
    if (round > MAX_ROUNDS) throw new Error('the race does not end')
    await settleAll()
    const [next] = waiting.splice(choose(waiting.length), 1)
    if (next) next()
    else if (left > 0) await store.clock.advance(TICK_MS)
  }
  return Promise.all(results)
}
/** Returns a `choose` function for `race` that uses these numbers in turn. */
export const choicesOf = (numbers: readonly number[]) => {
  let next = 0
  return (count: number): number =>
    count === 0 ? 0 : (numbers[next++ % numbers.length] ?? 0) % count
}
