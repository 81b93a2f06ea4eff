/** The bars of a timeline row: work, waits and the starts of attempts. */

import { toneOf } from '../../status.tsx'
import { barOf, type TimeRange } from '../data/axis.ts'
import { pausesOf, type WaitSpan } from '../data/fold.ts'
import type { Row } from '../data/tree.ts'

/** Kinds of waits during which other work is in progress. Their bars have a different colour. */
const elsewhere: ReadonlySet<string> = new Set(['run', 'agent', 'branches'])
/**
 * Returns the class name of the bar of a wait; undefined for a wait for a worker. Such a wait has
 * no separate bar, because it includes the time in which the job is executed.
 */
const looks = ({ kind }: WaitSpan): string | undefined =>
  kind === 'worker' ? undefined : elsewhere.has(kind) ? 'elsewhere' : 'idle'

/**
 * Shows the visible bars of a row. Bars that have not ended extend to `now`. Between a failed
 * attempt and the next one, there is no bar.
 */
export function Bars({
  row: { step, from, to, status },
  range,
  now,
}: {
  readonly row: Row
  readonly range: TimeRange
  readonly now: number
}) {
  if (from === undefined) return null
  if (!barOf(from, to ?? now, range)) return null
  const pauses = step ? pausesOf(step) : []
  const style = ({ left, width }: { left: number; width: number }) => ({
    left: `${left}%`,
    width: `${width}%`,
  })
  return (
    <div class="bars" aria-hidden="true">
      {[...pauses, undefined].map((pause, index) => {
        const begin = pauses[index - 1]?.to ?? from
        const bar = barOf(begin, pause?.from ?? to ?? now, range)
        const look = `bar ${toneOf(pause ? 'failed' : status)}${step ? '' : ' group'}`
        return bar && <i key={begin} class={look} style={style(bar)} />
      })}
      {step?.waits.map((wait) => {
        const look = looks(wait)
        const bar = look && barOf(wait.from, wait.to ?? now, range)
        return bar && <i key={wait.id} class={`bar ${look}`} style={style(bar)} />
      })}
      {step?.attempts.slice(1).map((attempt) => {
        const bar = barOf(attempt.from, attempt.from, range)
        return bar && <i key={attempt.from} class="bar attempt" style={{ left: `${bar.left}%` }} />
      })}
    </div>
  )
}
