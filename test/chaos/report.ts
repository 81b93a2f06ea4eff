/** The final report of a chaos run. */
import { type Kind, kinds, LIMITS, type Violation, WINDOW, waits } from './check.ts'
import { type History, manners } from './history.ts'

interface Told {
  readonly history: History
  readonly violations: readonly Violation[]
  readonly seconds: number
  readonly rate: number
  readonly heldBack: number
  /** The number of repeated attempts, by reason. */
  readonly again: ReadonlyMap<string, number>
  /** The 99th percentile of the event-loop delay of the load process, in milliseconds. */
  readonly lag: number
  /**
   * Milliseconds from the end of the faults and the load until every run had ended and no request
   * was pending. Infinite if that did not happen.
   */
  readonly drained: number
}
/** The maximum number of violations shown for each kind. */
const MAX_SHOWN = 5
/** Event-loop delay in milliseconds above which the measured times are unreliable. */
const MAX_DELAY_MS = 250
const row = (what: string, value: string | number): string => `  ${what.padEnd(60)} ${value}`
const ms = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? 'never' : `${(value / 1000).toFixed(2)} s`

/** Returns the lines of the report, ending with the verdict. */
export function report({
  history,
  violations,
  seconds,
  rate,
  heldBack,
  again,
  lag,
  drained,
}: Told): string[] {
  const { starts, runs, streams, repeats, strikes, requests } = history
  const acknowledged = starts.filter((start) => start.acknowledged).length
  const ended = runs.filter(({ status }) =>
    ['completed', 'failed', 'cancelled'].includes(status),
  ).length
  const reached = acknowledged / seconds
  const count = (kind: Kind) => violations.filter((one) => one.kind === kind).length
  const frames = streams.reduce((sum, { recorded }) => sum + recorded.length, 0)
  const lines = [
    '',
    row('starts acknowledged / runs ended', `${acknowledged} / ${ended}`),
    row('starts per second, wanted / reached', `${rate} / ${reached.toFixed(1)}`),
    row(
      'requests / tries that had to be repeated',
      `${requests.length} / ${[...again.values()].reduce((sum, one) => sum + one, 0)} ` +
        `(${[...again].map(([why, times]) => `${why}: ${times}`).join(', ') || 'none'})`,
    ),
    row('starts repeated under their key', repeats.length),
    row(
      'streams followed / frames compared / connections',
      `${streams.length} / ${frames} / ${streams.reduce((sum, one) => sum + one.connections, 0)}`,
    ),
    row(
      'strikes',
      manners
        .map((manner) => `${manner}: ${strikes.filter((one) => one.manner === manner).length}`)
        .join(', '),
    ),
    row('time until the last run had ended, after the load', ms(drained)),
    row('lateness of the load itself, p99', ms(lag)),
    '',
    ...Object.entries(kinds).map(([kind, meaning]) => row(meaning, count(kind as Kind))),
    '',
    `  time to the first answer, of requests that wait at a strike or come within ${WINDOW / 1000} s after it`,
    `  ${'after a'.padEnd(12)}` +
      ['strikes', 'any first', 'requests', 'p50', 'p99', 'longest', 'allowed p99']
        .map((head) => head.padStart(12))
        .join('') +
      '  the worst strike',
    ...waits(history).map(
      ({ manner, strikes: times, first, requests: many, p50, p99, longest, worst }) =>
        `  ${manner.padEnd(12)}` +
        [
          times,
          ms(first),
          many,
          ms(p50),
          ms(p99),
          ms(longest),
          LIMITS[manner] === undefined ? '' : ms(LIMITS[manner] ?? 0),
        ]
          .map((cell) => String(cell).padStart(12))
          .join('') +
        `  p99 ${ms(worst.p99)}: ${worst.what} at ${ms(worst.at)}`,
    ),
    '',
  ]
  if (heldBack > 0) lines.push(`  ${heldBack} starts were held back, because too many were open.`)
  if (lag > MAX_DELAY_MS)
    lines.push(
      `  The load's own process was late by ${ms(lag)}: the machine has too much else to do, ` +
        'and the times above say more about it than about the service.',
    )
  if (reached < rate * 0.98)
    lines.push(`  This machine, or the service under these strikes, did not reach the wanted rate.`)
  for (const kind of Object.keys(kinds) as Kind[]) {
    const found = violations.filter((one) => one.kind === kind)
    for (const { what } of found.slice(0, MAX_SHOWN))
      lines.push(`  ${kinds[kind].toUpperCase()}: ${what}`)
    if (found.length > MAX_SHOWN) lines.push(`    and ${found.length - MAX_SHOWN} more`)
  }
  lines.push(
    violations.length === 0 ? 'Every promise was kept.' : `${violations.length} broken promises.`,
  )
  return lines
}
