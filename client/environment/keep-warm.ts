/**
 * Decides when an idle worker of an environment ends.
 *
 * Invariants:
 * K1. The worker is never released while a job runs or a terminal is open.
 * K2. The worker is released `idle_ms` after its last job or terminal has ended, or `first_ms`
 *     after its first registration if none has started.
 */
import { keepWarmMs } from '../../protocol/environments/keep-warm.ts'
import type { Cancel, Clock } from '../worker/ports.ts'

/** The times after which an idle worker ends. */
export interface KeepWarm {
  /** Milliseconds after the last job or terminal has ended. */
  readonly idle_ms: number
  /** Milliseconds to wait for the first job. */
  readonly first_ms: number
}

/**
 * Minimum times in milliseconds. `idle` leaves time for the next waiting job to arrive, and `first`
 * for the job for which the worker was started.
 */
const shortest = { idle: 1000, first: 30_000 } as const

/**
 * Maximum delay of a timer in milliseconds, about 24 days. A worker with a longer keep-warm time
 * never ends by itself.
 */
const MAX_TIMER = 2 ** 31 - 1

/**
 * Parses a keep-warm time, and raises times below the minimum (`shortest`). Returns undefined if
 * the time is invalid.
 */
export function keepWarmOf(text = ''): KeepWarm | undefined {
  const time = keepWarmMs(text)
  if (time === undefined) return undefined
  const idle_ms = Math.max(time, shortest.idle)
  return { idle_ms, first_ms: Math.max(idle_ms, shortest.first) }
}

export class IdleTimer {
  readonly #clock: Clock
  readonly #times: KeepWarm
  readonly #release: () => void
  #running = 0
  #registered = false
  #cancel: Cancel = () => {}

  /** @param release called when the worker has been idle for the given time. */
  constructor(clock: Clock, times: KeepWarm, release: () => void) {
    this.#clock = clock
    this.#times = times
    this.#release = release
  }
  /**
   * Starts the timer after the first registration, unless a job is running or a terminal is open.
   * Later registrations have no effect.
   */
  registered(): void {
    if (this.#registered) return
    this.#registered = true
    if (this.#running === 0) this.#wait(this.#times.first_ms)
  }
  started(): void {
    this.#running++
    this.#cancel()
  }
  ended(): void {
    this.#running--
    if (this.#running === 0) this.#wait(this.#times.idle_ms)
  }
  /** Stops the timer. Called when the worker ends for another reason. */
  stop(): void {
    this.#cancel()
  }

  #wait(ms: number): void {
    this.#cancel()
    if (ms <= MAX_TIMER) this.#cancel = this.#clock.after(ms, this.#release)
  }
}
