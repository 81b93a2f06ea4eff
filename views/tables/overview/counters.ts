/**
 * Counters of a project's runs: how many have each status now, and what happened in each minute and
 * in each hour. They are derived from entries only, so a rebuilt file has the same numbers.
 *
 * Invariants:
 * C1. The counts of now equal the statuses of the rows of `runs`, because both change together.
 * C2. The rows of an hour equal the sum of the rows of its minutes.
 * C3. The time of an entry decides its minute. No clock is read, so rows that are too old are
 *     deleted when the first row of a later hour is written.
 */

import { isOfLoop } from '../../../protocol/loops/record.ts'
import { runStatuses } from '../../../protocol/loops/run.ts'
import type { RunCounts } from '../../../protocol/overview/rows.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import { Kept, type Store } from '../../store.ts'
import type { RunRow } from '../runs/run-row.ts'
import { addDuration, type Durations, noDurations, packed, unpacked } from './durations.ts'

/** Length of the periods of rows, in minutes. */
export const PERIODS = [1, 60] as const
export type Period = (typeof PERIODS)[number]
/** Minutes for which rows are stored. */
const STORED = 30 * 24 * 60
/** Maximum number of different failures in a row; further ones are counted as `OTHER`. */
const MAX_DISTINCT = 64
/** The error type under which failures beyond `MAX_DISTINCT` are counted. */
export const OTHER = 'other'

/** How often runs failed in the same way, and the latest of them with its time. */
export type FailureCount = readonly [count: number, run_id: string, at: number]
/** What happened in a minute or an hour. Keys of `failures`: see `failureKey`. */
export interface FlowRow {
  started: number
  completed: number
  failed: number
  cancelled: number
  readonly took: Durations
  readonly failures: Record<string, FailureCount>
}
/** A stored row. */
export interface PackedFlow {
  readonly minute: number
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly took: string
  readonly failures: string | null
}

const noRuns = (): Record<keyof RunCounts, number> =>
  Object.fromEntries(runStatuses.map((status) => [status, 0])) as Record<keyof RunCounts, number>
const keptCounts = (store: Store): Kept<Record<string, number>> =>
  store.kept(
    'run_counts',
    () =>
      new Kept<Record<string, number>>(
        (project) => countsOf(store, Number(project)),
        (counts, project) =>
          store.run(
            'INSERT OR REPLACE INTO run_counts (project, counts) VALUES (?, ?)',
            Number(project),
            JSON.stringify(counts),
          ),
        { changes: () => true },
      ),
  )
/** Returns the number of a project's runs by status, as far as they are written. */
export function countsOf(store: Store, project: number): Record<keyof RunCounts, number> {
  const row = store.one<{ counts: string }>(
    'SELECT counts FROM run_counts WHERE project = ?',
    project,
  )
  return row ? { ...noRuns(), ...(JSON.parse(row.counts) as RunCounts) } : noRuns()
}

interface KeptFlow extends FlowRow {
  stored: boolean
}
const COLUMNS = 'minute, started, completed, failed, cancelled, took, failures'
/** Returns the written rows of a project from a minute on, in order. */
export const flowsSince = (
  store: Store,
  project: number,
  period: Period,
  minute: number,
): PackedFlow[] =>
  store.all<PackedFlow>(
    `SELECT ${COLUMNS} FROM run_flow
     WHERE project = ? AND period = ? AND minute >= ?
     ORDER BY minute`,
    project,
    period,
    minute,
  )

const keptFlow = (store: Store): Kept<KeptFlow> =>
  store.kept(
    'run_flow',
    () => new Kept<KeptFlow>((key) => load(store, key), saveFlow(store), flowKeeping),
  )
/** The rows of the present minutes change soon, so a partial flush leaves them in memory. */
const flowKeeping = {
  most: 256,
  copy: (row: KeptFlow): KeptFlow => ({
    ...row,
    took: row.took.slice(),
    failures: { ...row.failures },
  }),
  changes: () => true,
}
const placeOf = (key: string): readonly [project: number, period: number, minute: number] =>
  key.split(' ').map(Number) as unknown as readonly [number, number, number]
function load(store: Store, key: string): KeptFlow {
  const row = store.one<PackedFlow>(
    `SELECT ${COLUMNS} FROM run_flow WHERE project = ? AND period = ? AND minute = ?`,
    ...placeOf(key),
  )
  if (!row)
    return {
      started: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      took: noDurations(),
      failures: {},
      stored: false,
    }
  const { minute: _, took, failures, ...counts } = row
  return {
    ...counts,
    took: unpacked(took),
    failures: failures === null ? {} : (JSON.parse(failures) as FlowRow['failures']),
    stored: true,
  }
}
const saveFlow = (store: Store) => (row: KeptFlow, key: string) => {
  const { stored, started, completed, failed, cancelled, took, failures } = row
  const [project, period, minute] = placeOf(key)
  store.run(
    `INSERT OR REPLACE INTO run_flow (project, period, ${COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    project,
    period,
    minute,
    started,
    completed,
    failed,
    cancelled,
    packed(took),
    failed === 0 ? null : JSON.stringify(failures),
  )
  row.stored = true
  if (stored || period !== 60) return
  for (const old of PERIODS)
    store.run(
      'DELETE FROM run_flow WHERE project = ? AND period = ? AND minute < ?',
      project,
      old,
      minute - STORED,
    )
}

/**
 * Counts the changes of a run's entry.
 * @param row the run after the entry.
 * @param before its status before the entry; undefined for a new run.
 * @param at time of the entry in Unix milliseconds.
 */
export function countRun(
  store: Store,
  row: RunRow,
  before: string | undefined,
  events: readonly RunEvent[],
  at: number,
): void {
  const { status } = row.record
  if (before !== status) {
    const counts = keptCounts(store).edit(String(row.project)) as Record<string, number>
    counts[status] = (counts[status] ?? 0) + 1
    if (before !== undefined) counts[before] = (counts[before] ?? 0) - 1
  }
  // Only an entry after which a run has ended can contain its end.
  if (before !== undefined && !terminal.has(status)) return
  const ends = terminal.has(status) ? events.filter(({ type }) => type in ended) : []
  if (before !== undefined && ends.length === 0) return
  const now = Math.floor(at / 60_000)
  const flows = keptFlow(store)
  for (const period of PERIODS) {
    const minute = now - (now % period)
    const flow = flows.edit(`${row.project} ${period} ${minute}`) as KeptFlow
    if (before === undefined) flow.started++
    for (const event of ends) {
      flow[ended[event.type as keyof typeof ended]]++
      if (event.type === 'run.failed') addFailure(flow.failures, row, event, at)
      const started = startOf(row)
      if (started !== undefined) addDuration(flow.took, at - started)
    }
  }
}
const ended = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
} as const

const startOf = ({ record: { started_at, created_at }, ...row }: RunRow): number | undefined =>
  started_at === undefined
    ? undefined
    : started_at === created_at
      ? row.created_at
      : Date.parse(started_at)

/** The key of failures with the same error, workflow or loop, and step; empty: none. */
export type FailureKey = readonly [
  error_type: string,
  definition_id: string,
  loop_id: string,
  step: string,
]
function addFailure(
  failures: FlowRow['failures'],
  { record }: RunRow,
  { step = '', payload }: RunEvent,
  at: number,
): void {
  const { error_type } = payload ?? {}
  const key: FailureKey = [
    typeof error_type === 'string' ? error_type : (record.error_type ?? OTHER),
    isOfLoop(record) ? '' : record.definition_id,
    record.loop_id ?? '',
    step,
  ]
  const text = JSON.stringify(key)
  const known = failures[text]
  const crowded = known === undefined && Object.keys(failures).length >= MAX_DISTINCT
  const name = crowded ? OTHERS : text
  failures[name] = [(failures[name]?.[0] ?? 0) + 1, record.id, at]
}
const OTHERS = JSON.stringify([OTHER, '', '', ''] satisfies FailureKey)
