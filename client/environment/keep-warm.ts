/**
 * Decides when an idle worker of an environment ends.
 *
 * Invariants:
 * K1. The worker is never released while a job runs or a terminal is open.
 * K2. The worker is released `idle_ms` after its last job or terminal has ended, or `first_ms`
 *     after its first registration if none has started.
 */
import type { Cancel, Clock } from '../worker/ports.ts'

/** The times after which an idle worker ends. */
export interface KeepWarm {
  /** Milliseconds after the last job or terminal has ended. */
  readonly idle_ms: number
  /** Milliseconds to wait for the first job. */
  readonly first_ms: number
}

/** Default idle time in milliseconds. */
const DEFAULT_IDLE_MS = 120_000
/**
 * Minimum times in milliseconds. `idle` leaves time for the next waiting job to arrive, and `first`
 * for the job for which the worker was started.
 */
const shortest = { idle: 1000, first: 30_000 } as const
const words: Readonly<Record<string, number>> = {
  '': DEFAULT_IDLE_MS,
  'on-demand': 0,
  ondemand: 0,
  forever: Number.POSITIVE_INFINITY,
  lifetime: Number.POSITIVE_INFINITY,
  always: Number.POSITIVE_INFINITY,
  true: Number.POSITIVE_INFINITY,
}
const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
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
  const time = words[text.toLowerCase()] ?? durationOf(text)
  if (time === undefined) return undefined
  const idle_ms = Math.max(time, shortest.idle)
  return { idle_ms, first_ms: Math.max(idle_ms, shortest.first) }
}
/** Parses a duration such as `90s` or `1h30m`. Returns milliseconds; undefined if it is invalid. */
function durationOf(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined
  let sum = 0
  for (const [, value, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    sum += Number(value) * (units[unit] ?? 0)
  return sum
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
