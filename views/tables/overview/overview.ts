/**
 * Computes the overview of a project from the counters of its runs and from its waiting
 * interactions.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import { currentResponses } from '../../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import {
  type Failure,
  type Flow,
  MAX_FAILURES,
  MAX_WAITING_COUNTED,
  type Overview,
  stepOf,
} from '../../../protocol/overview/rows.ts'
import { placeholders } from '../../conditions.ts'
import type { Store } from '../../store.ts'
import { interactionVisibleTo, viewerValues } from '../sessions/visibility.ts'
import { countsOf } from './counts.ts'
import { addPacked, type Durations, noDurations, quantile } from './durations.ts'
import { type FailureCount, type FailureKey, flowsSince, type PackedFlow, PERIODS } from './flow.ts'

/**
 * The viewer, and the names under which interactions list it as a target or reviewer: its id, and
 * `role:<name>` for each of its roles.
 */
export type NamedViewer = Viewer & { readonly names: readonly string[] }

/**
 * Returns the overview of a project.
 * @param now Unix milliseconds.
 */
export function overviewOf(
  store: Store,
  project: number,
  { minutes = 60, viewer }: { readonly minutes?: number; readonly viewer: NamedViewer },
  now: number,
): Overview {
  const step = stepOf(minutes)
  const current = Math.floor(now / 60_000)
  const last = current - (current % step)
  const steps = Math.ceil(minutes / step)
  const first = last - (steps - 1) * step
  const sums = Array.from({ length: steps }, emptySum)
  const whole = emptySum()
  const failures = new Map<string, FailureCount>()
  for (const row of flowsSince(store, project, periodOf(step), first)) {
    // The minute of a row may be in the future, because the clock of the node that wrote an entry
    // may be ahead. Such a row is counted in the last step.
    const sum = sums[Math.min(steps - 1, Math.floor((row.minute - first) / step))]
    if (sum) add(sum, row)
    add(whole, row)
    if (row.failures !== null) addFailures(failures, row.failures)
  }
  return {
    generated_at: timestamp(now),
    period_start: timestamp(first * 60_000),
    minutes,
    step_seconds: step * 60,
    runs: countsOf(store, project),
    interactions: waitingInteractions(store, project, viewer),
    period: flowOf(whole),
    failures: mostFrequent(failures),
    series: sums.map((sum, i) => ({ at: timestamp((first + i * step) * 60_000), ...flowOf(sum) })),
  }
}

/** Returns the longest period in `PERIODS` that divides a step. */
const periodOf = (step: number) => PERIODS.findLast((period) => step % period === 0) ?? 1

type Counts = Record<'started' | 'completed' | 'failed' | 'cancelled', number>
interface Sum extends Counts {
  took: Durations | undefined
}
const emptySum = (): Sum => ({
  started: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  took: undefined,
})
function add(sum: Sum, { started, completed, failed, cancelled, took }: PackedFlow): void {
  sum.started += started
  sum.completed += completed
  sum.failed += failed
  sum.cancelled += cancelled
  if (took !== '') addPacked((sum.took ??= noDurations()), took)
}
function flowOf({ took, ...counts }: Sum): Flow {
  const p50_ms = took && quantile(took, 0.5)
  const p95_ms = took && quantile(took, 0.95)
  return {
    ...counts,
    ...(p50_ms !== undefined && { p50_ms }),
    ...(p95_ms !== undefined && { p95_ms }),
  }
}

function addFailures(sums: Map<string, FailureCount>, text: string): void {
  for (const [key, count] of Object.entries(
    JSON.parse(text) as Readonly<Record<string, FailureCount>>,
  )) {
    const [n, run_id, at] = count
    const known = sums.get(key)
    sums.set(
      key,
      known
        ? [
            known[0] + n,
            ...(known[2] > at ? ([known[1], known[2]] as const) : ([run_id, at] as const)),
          ]
        : count,
    )
  }
}
const mostFrequent = (failures: ReadonlyMap<string, FailureCount>): Failure[] =>
  [...failures]
    .sort(([a, [m, , s]], [b, [n, , t]]) => n - m || t - s || (a < b ? -1 : 1))
    .slice(0, MAX_FAILURES)
    .map(([key, [count, last_run_id, at]]) => {
      const [error_type, definition_id, loop_id, step_key] = JSON.parse(key) as FailureKey
      return {
        error_type,
        ...(step_key !== '' && { step_key }),
        ...(definition_id !== '' && { definition_id }),
        ...(loop_id !== '' && { loop_id }),
        count,
        last_run_id,
        last_failed_at: timestamp(at),
      }
    })

/** The statuses of a waiting interaction, each with the `part` of the people who may act on it. */
const waits = [
  { status: 'pending', part: 'target' },
  { status: 'in_review', part: 'reviewer' },
] as const
/**
 * Counts the waiting interactions that the viewer may read (at most the newest
 * `MAX_WAITING_COUNTED` of each status), and those of them that the viewer may answer or review.
 * Records are read only for the second number, to exclude interactions that the viewer has already
 * answered.
 */
function waitingInteractions(
  store: Store,
  project: number,
  viewer: NamedViewer,
): Overview['interactions'] {
  const { names } = viewer
  let [waiting, for_me, at_least] = [0, 0, false]
  for (const { status, part } of waits) {
    const rows = store.all<{ record: string | null }>(
      `SELECT iif(EXISTS (
           SELECT 1 FROM interaction_people p
           WHERE p.project = i.project AND p.person IN (${placeholders(names)}) AND p.part = '${part}'
             AND p.created_at = i.created_at AND p.id = i.id), i.record, NULL) AS record
       FROM interactions i INDEXED BY interactions_status
       WHERE i.project = ? AND i.status = '${status}' AND ${interactionVisibleTo('i', names)}
       ORDER BY i.created_at DESC, i.id DESC LIMIT ?`,
      ...names,
      project,
      ...viewerValues(viewer),
      ...names,
      MAX_WAITING_COUNTED + 1,
    )
    const counted = rows.slice(0, MAX_WAITING_COUNTED)
    at_least ||= counted.length < rows.length
    waiting += counted.length
    for (const { record } of counted)
      if (record !== null && (part === 'reviewer' || !hasAnswered(record, viewer.id))) for_me++
  }
  return { waiting, for_me, at_least }
}
const hasAnswered = (record: string, id: string): boolean =>
  currentResponses(JSON.parse(record) as Interaction).some(
    ({ responder_user_id }) => responder_user_id === id,
  )
