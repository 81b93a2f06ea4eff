/**
 * Measures every system under the same load. Each system is measured several times, alternating
 * with the others, and the medians are computed. Times are in milliseconds.
 */
import { cpuSeconds, type ProcessIds } from './processes.ts'

/** Options of a benchmark. */
export interface Terms {
  /** Number of runs per row. The table shows their medians. */
  readonly times: number
  /** Whether to reduce the work, for a quick trial of a benchmark. */
  readonly quick: boolean
  /** The size of the measured data, for a benchmark with a choice of sizes. */
  readonly size?: number
  /** Folder for CPU profiles of the server. Without it, none are written. */
  readonly profile?: string
  /** Commit to compare this tree with, in benchmarks that compare trees. */
  readonly against?: string
  /** Name of the scenario to measure, for the benchmark `cost`. */
  readonly scenario?: string
  /** Number of work items per round. */
  readonly runs?: number
  /** Whether roles are separate processes. */
  readonly roles?: boolean
  /** Duration of the longest part in seconds, for benchmarks whose duration can be chosen. */
  readonly seconds?: number
  /** Whether the processor time is attributed to modules. */
  readonly attribute?: boolean
  /** Reports one line of progress. */
  say(line: string): void
}
/** Figures of one run by name; NaN if a figure is missing. */
export type Figures = Readonly<Record<string, number>>
/** Results of a load. `cpu_*` is the CPU time per work item in milliseconds. */
export interface Loaded extends Figures {
  readonly throughput: number
  readonly busy_p50: number
  readonly busy_p99: number
  /**
   * Latency of a work item in milliseconds, without other items in flight: until it is executed
   * (`executed_*`), and until its end is known (`done_*`).
   */
  readonly executed_p50: number
  readonly executed_p99: number
  readonly done_p50: number
  readonly done_p99: number
  readonly cpu_server: number
  readonly cpu_store: number
  readonly cpu_load: number
}
/**
 * Processes one work item. Resolves when the end of the item is known. The result is the time at
 * which the item was executed (`performance.now()`), or undefined if that time is unknown.
 */
export type Work = (name: string) => Promise<number | undefined>
/**
 * Numbers of work items: `warm` before the measurement, `count` with `concurrency` in flight,
 * and `idle` one at a time, after `idle` others that are not measured.
 */
export interface Amount {
  readonly warm: number
  readonly count: number
  readonly idle: number
  readonly concurrency: number
}

const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)
/**
 * Returns a quantile of the values; NaN if there are no values.
 * @param sorted the values in ascending order.
 * @param share 0 to 1.
 */
const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
/** Returns a quantile of values in any order; `share` is 0 to 1. */
export const percentile = (values: readonly number[], share: number): number =>
  at(ascending(values), share)
/** Returns the middle value, or the mean of the two middle values for an even count. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? at(sorted, 0.5)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}
/** Resolves after `ms` milliseconds. */
export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/**
 * Milliseconds without any progress after which a load is aborted, because work must have been
 * lost.
 */
const STALL_TIMEOUT_MS = 60_000

/**
 * Processes `count` work items, up to `concurrency` of them at the same time.
 * @returns the duration of each item.
 * @throws Error if no item has ended for a minute, and any error that an item throws.
 */
export async function inFlight(
  concurrency: number,
  count: number,
  item: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = []
  let next = 0
  let seen = -1
  let watch: NodeJS.Timeout | undefined
  const stalled = new Promise<never>((_, failed) => {
    watch = setInterval(() => {
      if (times.length === seen)
        failed(
          new Error(
            `nothing has ended for ${STALL_TIMEOUT_MS / 1000} s: ${seen} of ${count} have, ` +
              `${Math.min(concurrency, count - seen)} are in flight`,
          ),
        )
      seen = times.length
    }, STALL_TIMEOUT_MS)
  })
  const chains = Array.from({ length: concurrency }, async () => {
    for (let i = next++; i < count; i = next++) {
      const from = performance.now()
      await item(i)
      times.push(performance.now() - from)
    }
  })
  await Promise.race([Promise.all(chains), stalled]).finally(() => clearInterval(watch))
  return times
}

/**
 * Starts work items at a fixed rate, regardless of whether earlier ones have ended.
 * @returns the duration of each item, measured from its intended start, so that the delay of a
 * late start is included.
 */
export async function atRate(
  perSecond: number,
  count: number,
  item: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = []
  const started = performance.now()
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const intended = started + (i * 1000) / perSecond
      await pause(intended - performance.now())
      await item(i)
      times.push(performance.now() - intended)
    }),
  )
  return times
}

/**
 * Performs the work and measures its cost. Returns the result, the duration in seconds, and a
 * function that returns the CPU seconds used by the processes of a role (NaN for a role without
 * processes).
 * @param processes returns the process ids by role. It is called before and after the work, because
 * servers may start additional processes in between.
 */
export async function costOf<T>(
  processes: () => ProcessIds,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly seconds: number; cpu(who: keyof ProcessIds): number }> {
  const before = cpuSeconds(processes())
  const started = performance.now()
  const result = await work()
  const seconds = (performance.now() - started) / 1000
  const after = cpuSeconds(processes())
  return { result, seconds, cpu: (who) => (after[who] ?? Number.NaN) - (before[who] ?? Number.NaN) }
}
/** Returns the CPU milliseconds that each role used per work item. */
export const cpuOfEach = (cpu: (who: keyof ProcessIds) => number, items: number) => ({
  server: (cpu('server') * 1e3) / items,
  store: (cpu('store') * 1e3) / items,
  load: (cpu('load') * 1e3) / items,
})
/** Returns the median and the 99th percentile of times as figures `<name> p50` and `<name> p99`. */
export const spread = (name: string, times: readonly number[]): Figures => ({
  [`${name} p50`]: percentile(times, 0.5),
  [`${name} p99`]: percentile(times, 0.99),
})

/**
 * Processes `count` work items one at a time, with pauses of 2 ms.
 * @returns for each item, the times until it was executed, if known, and until its end was known.
 */
async function oneAtATime(
  work: Work,
  count: number,
  name: string,
): Promise<{ readonly executed: readonly number[]; readonly done: readonly number[] }> {
  const executed: number[] = []
  const done: number[] = []
  for (let i = 0; i < count; i++) {
    const from = performance.now()
    const time = await work(`${name}-${i}`)
    done.push(performance.now() - from)
    if (time !== undefined) executed.push(time - from)
    await pause(2)
  }
  return { executed, done }
}

/**
 * Warms up, then processes work items first concurrently and then one at a time. Code that runs
 * once per batch under load runs once per item when items come one at a time. A runtime compiles
 * such code only then, so the first `idle` single items are a second warm-up.
 * @param processes processes whose CPU time is measured while many items are in flight.
 */
export async function load(
  work: Work,
  { warm, count, idle, concurrency }: Amount,
  processes: () => ProcessIds,
): Promise<Loaded> {
  await inFlight(concurrency, warm, (i) => work(`warm-${i}`))
  const {
    result: busy,
    seconds,
    cpu: used,
  } = await costOf(processes, () => inFlight(concurrency, count, (i) => work(`busy-${i}`)))
  await pause(1000)
  await oneAtATime(work, idle, 'warm-idle')
  const { executed, done } = await oneAtATime(work, idle, 'idle')
  const cpu = (who: keyof ProcessIds): number => (used(who) * 1000) / count
  return {
    throughput: count / seconds,
    busy_p50: percentile(busy, 0.5),
    busy_p99: percentile(busy, 0.99),
    executed_p50: percentile(executed, 0.5),
    executed_p99: percentile(executed, 0.99),
    done_p50: percentile(done, 0.5),
    done_p99: percentile(done, 0.99),
    cpu_server: cpu('server'),
    cpu_store: cpu('store'),
    cpu_load: cpu('load'),
  }
}

/**
 * The disk sync settings with which Baton is measured. Each pair contains the name in tables and
 * the setting.
 */
export const SYNCS = [
  ['fsync always', 'always'],
  ['lazy sync (2m)', '2m'],
] as const
/** Returns the rows of a benchmark that measures Baton with each of `SYNCS`. */
export const withEachSync = <F extends Figures>(
  measure: (sync: string) => Promise<F>,
): (readonly [string, () => Promise<F>])[] =>
  SYNCS.map(([name, sync]) => [`Baton, ${name}`, () => measure(sync)])

/** Returns the median of each figure over several runs. */
const medians = <F extends Figures>(runs: readonly F[]): F =>
  Object.fromEntries(
    Object.keys(runs[0] ?? {}).map((name) => [
      name,
      median(runs.map((run) => run[name] ?? Number.NaN)),
    ]),
  ) as F

/**
 * Runs every row `times` times, alternating between the rows, so that a slow period of the machine
 * affects all rows.
 * @param tell formats one run as a line.
 * @returns the medians of each row.
 */
export async function inTurn<F extends Figures>(
  rows: readonly (readonly [string, () => Promise<F>])[],
  { times, say }: Terms,
  tell: (figures: F) => string,
): Promise<[string, F][]> {
  const all = new Map<string, F[]>(rows.map(([name]) => [name, []]))
  for (let i = 0; i < times; i++)
    for (const [name, run] of rows) {
      const figures = await run()
      all.get(name)?.push(figures)
      say(`${name}, ${i + 1} of ${times}: ${tell(figures)}`)
    }
  return [...all].map(([name, runs]) => [name, medians(runs)])
}
