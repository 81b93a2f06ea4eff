/** Measuring: the same load for everyone, medians of several runs, and tables. */

/** One measured run of a load. Latencies in milliseconds. */
export interface Measured {
  /** Finished per second with `CONCURRENCY` in flight. */
  readonly throughput: number
  readonly busy_p99: number
  /** One at a time: from the start until the work was executed, and until the end was known. */
  readonly executed_p50: number
  readonly executed_p99: number
  readonly done_p50: number
  readonly done_p99: number
}
/** Does one piece of work and resolves when its end is known, with the time (`performance.now()`) it was executed at. */
export type Work = (name: string) => Promise<number | undefined>

export const CONCURRENCY = 200
/** @param sorted ascending. @param share 0..1. */
export const percentile = (sorted: readonly number[], share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
const ascending = (values: number[]): number[] => values.sort((a, b) => a - b)
export const median = (values: readonly number[]): number => percentile(ascending([...values]), 0.5)

/** Warm up, then `count` pieces of work with `CONCURRENCY` in flight, then `idle` ones, one at a time. */
export async function load(work: Work, { count = 4000, idle = 200, warm = 200 } = {}): Promise<Measured> {
  await Promise.all(Array.from({ length: warm }, (_, i) => work(`warm-${i}`)))
  const busy: number[] = []
  let next = 0
  const started = performance.now()
  await Promise.all(Array.from({ length: CONCURRENCY }, async () => {
    for (let i = next++; i < count; i = next++) {
      const from = performance.now()
      await work(`busy-${i}`)
      busy.push(performance.now() - from)
    }
  }))
  const seconds = (performance.now() - started) / 1000
  const executed: number[] = []
  const done: number[] = []
  for (let i = 0; i < idle; i++) {
    const from = performance.now()
    const at = await work(`idle-${i}`)
    done.push(performance.now() - from)
    if (at !== undefined) executed.push(at - from)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  for (const values of [busy, executed, done]) ascending(values)
  return {
    throughput: count / seconds, busy_p99: percentile(busy, 0.99),
    executed_p50: percentile(executed, 0.5), executed_p99: percentile(executed, 0.99), done_p50: percentile(done, 0.5), done_p99: percentile(done, 0.99),
  }
}
/** The median of each figure over several runs. */
export function medians(runs: readonly Measured[]): Measured {
  const of = (figure: keyof Measured): number => median(runs.map((run) => run[figure]))
  return { throughput: of('throughput'), busy_p99: of('busy_p99'), executed_p50: of('executed_p50'), executed_p99: of('executed_p99'), done_p50: of('done_p50'), done_p99: of('done_p99') }
}

const ms = (value: number): string => (Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 2 : 0))
/** A Markdown table of measured loads by name. */
export function table(rows: readonly (readonly [string, Measured])[]): string {
  const lines = rows.map(([name, run]) => `| ${name} | ${Math.round(run.throughput).toLocaleString('en')} | ${ms(run.busy_p99)} | ${ms(run.executed_p50)} / ${ms(run.executed_p99)} | ${ms(run.done_p50)} / ${ms(run.done_p99)} |`)
  return [`| one step, ${CONCURRENCY} in flight | done/s | busy p99 ms | idle start → executed p50 / p99 ms | idle start → done p50 / p99 ms |`, '|---|---|---|---|---|', ...lines].join('\n')
}
