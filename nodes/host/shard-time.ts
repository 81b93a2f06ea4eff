/**
 * The time of a shard's decisions. It follows the system clock, but does not follow small steps
 * back, such as those of NTP, so that times are in order within a shard.
 */
import type { Clock } from './ports.ts'

/** A change of the system clock by more than this number of milliseconds is followed at once. */
const STEP_MS = 5000
/** Assumed maximum difference between the speeds of the system clock and the monotonic clock. */
const MAX_DRIFT = 0.1

export class ShardTime {
  readonly #clock: Pick<Clock, 'now' | 'elapsed'>
  #at = 0
  /** The times of both clocks at the last call of `advance`. */
  #last: { readonly now: number; readonly elapsed: number } | undefined

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#clock = clock
  }
  /** The time of the current batch in Unix milliseconds. */
  get at(): number {
    return this.#at
  }
  /**
   * Sets `at` to the current time.
   * @returns whether the system clock was set, forward or back, since the last call. The monotonic
   *   clock tells such a step from a pause. It stops while the machine is suspended, so a resumed
   *   machine counts as a step forward.
   */
  advance(): boolean {
    const [now, elapsed] = [this.#clock.now(), this.#clock.elapsed()]
    const { now: before, elapsed: since } = this.#last ?? { now, elapsed }
    this.#last = { now, elapsed }
    const passed = elapsed - since
    const isSet =
      Math.abs(now - before - passed) > STEP_MS + passed * MAX_DRIFT || now < this.#at - STEP_MS
    this.#at = isSet ? now : Math.max(this.#at, now)
    return isSet
  }
}
