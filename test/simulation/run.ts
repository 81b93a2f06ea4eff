/**
 * Runs many seeds, as `npm run simulate -- --seeds 1000 --from 1` does. The report on a failing
 * seed contains the kinds of faults without which it does not fail, and the end of its trace.
 */

import type { FaultKind } from './faults/weather.ts'
import { type Options, type Outcome, runSeed } from './simulation.ts'

/** The default number of trace lines that are shown. */
const LINES = 40

/**
 * Tries to switch off the kinds of faults one by one, and leaves each off if the seed still fails
 * without it. Returns the outcome with the remaining kinds.
 */
async function shrink(failed: Outcome, options: Options): Promise<Outcome> {
  const off = new Set<FaultKind>(options.off)
  let smallest = failed
  for (const kind of failed.faults) {
    const outcome = await runSeed(failed.seed, { ...options, off: new Set([...off, kind]) })
    if (outcome.violations.length === 0) continue
    off.add(kind)
    smallest = outcome
  }
  return runSeed(failed.seed, { ...options, off, trace: true }).then((outcome) =>
    outcome.violations.length > 0 ? outcome : smallest,
  )
}

/**
 * Returns a description of a failing seed: its first violation, the kinds of faults without which
 * it does not fail, and the end of the trace.
 */
async function describe(failed: Outcome, options: Options = {}, lines = LINES): Promise<string> {
  const small = await shrink(failed, options)
  const from = small.trace.findIndex((line) => line.includes('VIOLATED'))
  const trace = small.trace.slice(
    Math.max(0, (from < 0 ? small.trace.length : from + 1) - lines),
    from < 0 ? undefined : from + 1,
  )
  return [
    `seed ${failed.seed}: ${failed.violations[0]}`,
    `needs: ${small.faults.join(', ') || 'no fault at all'}; then: ${small.violations[0]}`,
    ...trace,
  ].join('\n')
}

export interface Report {
  readonly failures: readonly string[]
  readonly entries: number
  /** Simulated milliseconds. */
  readonly time: number
}

/** Runs `seeds` consecutive seeds, starting at `from`. Stops after `most` failures. */
export async function simulate({
  from,
  seeds,
  most = 1,
  lines,
}: {
  from: number
  seeds: number
  most?: number
  lines?: number
}): Promise<Report> {
  const failures: string[] = []
  let [entries, time] = [0, 0]
  for (let seed = from; seed < from + seeds && failures.length < most; seed++) {
    const outcome = await runSeed(seed)
    entries += outcome.entries
    time += outcome.time
    if (outcome.violations.length > 0) failures.push(await describe(outcome, {}, lines))
  }
  return { failures, entries, time }
}
