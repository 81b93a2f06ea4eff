/** Measuring: the same load for everybody, medians of several runs taken in turn, and tables. Times in milliseconds. */
import { cpuSeconds, type Parties } from './processes.ts'

/** How a benchmark is asked to run. */
export interface Terms {
  /** Runs of each row; medians are shown. */
  readonly times: number
  /** Smaller counts, for trying things out. */
  readonly quick: boolean
  /** Folder for CPU profiles of the server, when wanted. */
  readonly profile?: string
  /** Progress, a line at a time. */
  say(line: string): void
}
/** Figures of one run by name. NaN: there is none. */
export type Figures = Readonly<Record<string, number>>
/** What a load measures. `cpu_*`: milliseconds of processor time per piece of work. */
export interface Loaded extends Figures {
  readonly throughput: number
  readonly busy_p50: number
  readonly busy_p99: number
  /** One at a time: from the start until the work was executed, and until its end was known. */
  readonly executed_p50: number
  readonly executed_p99: number
  readonly done_p50: number
  readonly done_p99: number
  readonly cpu_server: number
  readonly cpu_store: number
  readonly cpu_load: number
}
/** Does one piece of work and resolves when its end is known, with the time (`performance.now()`) it was executed at. */
export type Work = (name: string) => Promise<number | undefined>
/** How much of it: pieces before anything is measured, with `concurrency` in flight, and one at a time. */
export interface Amount {
  readonly warm: number
  readonly count: number
  readonly idle: number
  readonly concurrency: number
}

const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)
/** @param sorted ascending. @param share 0..1. @returns NaN when there are none. */
const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
/** A share (0..1) of the values, which may be in any order, is at most this. */
export const percentile = (values: readonly number[], share: number): number =>
  at(ascending(values), share)
/** The middle value; the mean of the two in the middle when their number is even. */
function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? at(sorted, 0.5)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}
/** Wait so long. */
export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** Milliseconds without any progress after which a load gives up: something was lost. */
const STALLED = 60_000

/** Do `count` pieces with so many in flight: each of these goes on as soon as its last piece has ended. @returns the time of each. Throws when nothing moves any more. */
export async function inFlight(
  concurrency: number,
  count: number,
  piece: (index: number) => Promise<unknown>,
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
            `nothing has ended for ${STALLED / 1000} s: ${seen} of ${count} have, ${Math.min(concurrency, count - seen)} are in flight`,
          ),
        )
      seen = times.length
    }, STALLED)
  })
  const chains = Array.from({ length: concurrency }, async () => {
    for (let i = next++; i < count; i = next++) {
      const from = performance.now()
      await piece(i)
      times.push(performance.now() - from)
    }
  })
  await Promise.race([Promise.all(chains), stalled]).finally(() => clearInterval(watch))
  return times
}

/** Begin pieces at a fixed rate, whether earlier ones have ended or not. @returns the time of each from when it should have begun, so that a piece that had to wait for its turn counts with its wait. */
export async function atRate(
  perSecond: number,
  count: number,
  piece: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = []
  const started = performance.now()
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const intended = started + (i * 1000) / perSecond
      await pause(intended - performance.now())
      await piece(i)
      times.push(performance.now() - intended)
    }),
  )
  return times
}

/** What work gives, the seconds it took, and the seconds of processor time that a part used meanwhile; NaN for a part that there is not. @param parties asked twice, since servers start further processes. */
export async function costOf<T>(
  parties: () => Parties,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly seconds: number; cpu(who: keyof Parties): number }> {
  const before = cpuSeconds(parties())
  const started = performance.now()
  const result = await work()
  const seconds = (performance.now() - started) / 1000
  const after = cpuSeconds(parties())
  return { result, seconds, cpu: (who) => (after[who] ?? Number.NaN) - (before[who] ?? Number.NaN) }
}
/** The median and the 99th percentile of times as figures `<name> p50` and `<name> p99`. */
export const spread = (name: string, times: readonly number[]): Figures => ({
  [`${name} p50`]: percentile(times, 0.5),
  [`${name} p99`]: percentile(times, 0.99),
})

/** Warm up, then work with many in flight, then one at a time. @param parties whose processor time is counted while busy. */
export async function load(
  work: Work,
  { warm, count, idle, concurrency }: Amount,
  parties: () => Parties,
): Promise<Loaded> {
  await inFlight(concurrency, warm, (i) => work(`warm-${i}`))
  const {
    result: busy,
    seconds,
    cpu: used,
  } = await costOf(parties, () => inFlight(concurrency, count, (i) => work(`busy-${i}`)))
  await pause(1000)
  const executed: number[] = []
  const done: number[] = []
  for (let i = 0; i < idle; i++) {
    const from = performance.now()
    const time = await work(`idle-${i}`)
    done.push(performance.now() - from)
    if (time !== undefined) executed.push(time - from)
    await pause(2)
  }
  const cpu = (who: keyof Parties): number => (used(who) * 1000) / count
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

/** The median of each figure over several runs. */
const medians = <F extends Figures>(runs: readonly F[]): F =>
  Object.fromEntries(
    Object.keys(runs[0] ?? {}).map((name) => [
      name,
      median(runs.map((run) => run[name] ?? Number.NaN)),
    ]),
  ) as F

/**
 * Run every row so many times, turn by turn, so that a slow minute of the machine meets everybody.
 * @param tell one run as a line.
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
