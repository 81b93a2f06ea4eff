/** Many seeds: `npm run simulate -- --seeds 1000 --from 1`. A failing seed is told with what it needs to fail and how it went. */
import { runSeed, type Options, type Outcome } from './simulation.ts'
import type { FaultKind } from './weather.ts'

/** Lines of a trace that are shown. */
const LINES = 40

/** The faults without which a failing seed still fails are switched off, one by one. Gives what is left, and the outcome with only that. */
async function shrink(failed: Outcome, options: Options): Promise<Outcome> {
  const off = new Set<FaultKind>(options.off)
  let smallest = failed
  for (const kind of failed.faults) {
    const outcome = await runSeed(failed.seed, { ...options, off: new Set([...off, kind]) })
    if (outcome.violations.length === 0) continue
    off.add(kind)
    smallest = outcome
  }
  return runSeed(failed.seed, { ...options, off, trace: true }).then((outcome) => (outcome.violations.length > 0 ? outcome : smallest))
}

/** A failing seed as text: what was violated, which faults it takes, and the end of the trace. */
export async function describe(failed: Outcome, options: Options = {}, lines = LINES): Promise<string> {
  const small = await shrink(failed, options)
  const from = small.trace.findIndex((line) => line.includes('VIOLATED'))
  const trace = small.trace.slice(Math.max(0, (from < 0 ? small.trace.length : from + 1) - lines), from < 0 ? undefined : from + 1)
  return [`seed ${failed.seed}: ${failed.violations[0]}`, `needs: ${small.faults.join(', ') || 'no fault at all'}; then: ${small.violations[0]}`, ...trace].join('\n')
}

/** Run seeds from a number on. Stops after `most` failures. Gives the failures as text. */
export async function simulate({ from, seeds, most = 1, lines, say = () => {} }: { from: number; seeds: number; most?: number; lines?: number; say?: (line: string) => void }): Promise<string[]> {
  const failures: string[] = []
  const totals = { steps: 0, time: 0, entries: 0 }
  for (let i = 0; i < seeds && failures.length < most; i++) {
    const outcome = await runSeed(from + i)
    totals.steps += outcome.steps
    totals.time += outcome.time
    totals.entries += outcome.entries
    if (outcome.violations.length > 0) {
      const text = await describe(outcome, {}, lines)
      failures.push(text)
      say(text)
    }
    if ((i + 1) % 1000 === 0) say(`${i + 1} seeds, ${totals.entries} entries, ${Math.round(totals.time / 1000)} s simulated`)
  }
  return failures
}
