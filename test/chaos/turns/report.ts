/** The final report of a kill test of turns. */
import { violations as meanings, type Violation } from './check.ts'
import type { TurnHistory } from './history.ts'

interface Told {
  readonly history: TurnHistory
  readonly violations: readonly Violation[]
  /** Milliseconds until all turns had ended and all killed processes had returned. */
  readonly took: number
  /** The number of repeated attempts, by reason. */
  readonly again: ReadonlyMap<string, number>
  /** The number of tool calls that must succeed according to the scripts. */
  readonly calls: number
}
/** The maximum number of violations shown for each kind. */
const MAX_SHOWN = 5
const row = (what: string, value: string | number): string => `  ${what.padEnd(60)} ${value}`

/** Returns the lines of the report, ending with the verdict. */
export function reportTurns({
  history: { sent, executions, followed, strikes },
  violations,
  took,
  again,
  calls,
}: Told): string[] {
  const completed = sent.filter(({ recorded }) => recorded?.status === 'completed').length
  const done = executions.filter((one) => one.done).length
  const lines = [
    '',
    row('turns / completed as scripted', `${sent.length} / ${completed}`),
    row('tools of the scripts / begun / done', `${calls} / ${executions.length} / ${done}`),
    row('seconds', (took / 1000).toFixed(1)),
    row(
      'messages sent again after their answer',
      sent.reduce((sum, one) => sum + one.again.length, 0),
    ),
    row(
      'tries that had to be repeated',
      `${[...again.values()].reduce((sum, one) => sum + one, 0)} ` +
        `(${[...again].map(([why, times]) => `${why}: ${times}`).join(', ') || 'none'})`,
    ),
    row(
      'sessions followed / connections / of these broken',
      `${followed.length} / ${followed.reduce((sum, one) => sum + one.connections, 0)} / ` +
        `${followed.reduce((sum, one) => sum + one.lost, 0)}`,
    ),
    row(
      'strikes',
      ['shards', 'gateway', 'executor']
        .map((role) => `${role}: ${strikes.filter(({ what }) => what.startsWith(role)).length}`)
        .join(', '),
    ),
    '',
    ...Object.entries(meanings).map(([kind, meaning]) =>
      row(meaning, violations.filter((one) => one.kind === kind).length),
    ),
    '',
  ]
  for (const [kind, meaning] of Object.entries(meanings)) {
    const found = violations.filter((one) => one.kind === kind)
    for (const { what } of found.slice(0, MAX_SHOWN))
      lines.push(`  ${meaning.toUpperCase()}: ${what}`)
    if (found.length > MAX_SHOWN) lines.push(`    and ${found.length - MAX_SHOWN} more`)
  }
  lines.push(
    violations.length === 0 ? 'Every promise was kept.' : `${violations.length} broken promises.`,
  )
  return lines
}
