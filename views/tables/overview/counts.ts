/**
 * Counts the runs of a project by status. Each count equals the number of the project's rows with
 * this status in the table `runs`.
 */

import { runStatuses } from '../../../protocol/loops/run.ts'
import type { RunCounts } from '../../../protocol/overview/rows.ts'
import type { Store } from '../../store.ts'
import { Tallies } from '../tallies.ts'

/**
 * Counts a run when its row is written.
 * @param before the stored status; undefined for a new row.
 */
export function countRun(
  store: Store,
  project: number,
  status: string,
  before: string | undefined,
): void {
  if (status === before) return
  const tallies = store.buffer('run_counts', () => new Tallies(writeTo(store)))
  tallies.add(`${project} ${status}`, 1)
  if (before !== undefined) tallies.add(`${project} ${before}`, -1)
}
const writeTo =
  (store: Store) =>
  (key: string, change: number): void =>
    store.run(
      `INSERT INTO run_counts (project, status, runs) VALUES (?, ?, ?)
       ON CONFLICT (project, status) DO UPDATE SET runs = runs + excluded.runs`,
      ...key.split(' '),
      change,
    )

/** Returns the number of a project's runs, by status. */
export function countsOf(store: Store, project: number): RunCounts {
  const counts = Object.fromEntries(runStatuses.map((status) => [status, 0]))
  for (const { status, runs } of store.all<{ status: string; runs: number }>(
    'SELECT status, runs FROM run_counts WHERE project = ?',
    project,
  ))
    counts[status] = runs
  return counts as RunCounts
}
