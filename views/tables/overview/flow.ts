/**
 * Counts the starts and ends of a project's runs per minute, quarter of an hour and hour. Each
 * start or end is a fact, which is derived from entries only, so a rebuilt file contains the same
 * numbers. Until the next flush, a fact is kept in memory as a few numbers. A flush sums the facts
 * and changes each row once.
 *
 * Invariants:
 * F1. A row of a longer period is the sum of the rows of its minutes.
 * F2. The time of an entry determines its minute. No clock is read, so rows that are too old are
 *     deleted when the first row of a later hour is written.
 */

import { isOfLoop } from '../../../protocol/loops/record.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Store } from '../../store.ts'
import type { Buffered } from '../../write-back.ts'
import type { RunRow } from '../runs/run-row.ts'
import { addDuration, addPacked, type Durations, noDurations, packDurations } from './durations.ts'

/** Lengths of the periods of rows, in minutes. */
export const PERIODS = [1, 15, 60] as const
export type Period = (typeof PERIODS)[number]
/** Minutes for which rows are stored. */
const RETENTION_MINUTES = 30 * 24 * 60
/**
 * Maximum number of distinct failures that one row counts separately. The rest count as `OTHER`.
 */
const MAX_DISTINCT = 24
/** The error type under which failures beyond `MAX_DISTINCT` are counted. */
const OTHER = 'other'

/** The number of runs that failed in the same way, and the latest of these runs with its time. */
export type FailureCount = readonly [count: number, run_id: string, at: number]
/**
 * The key of failures with the same error, workflow or loop, and step. An empty string stands for
 * an absent part.
 */
export type FailureKey = readonly [
  error_type: string,
  definition_id: string,
  loop_id: string,
  step: string,
]
const OTHERS = JSON.stringify([OTHER, '', '', ''] satisfies FailureKey)
/** Counts of failures. Each key is a `FailureKey`, as JSON. */
type Failures = Record<string, FailureCount>

const kinds = ['started', 'completed', 'failed', 'cancelled'] as const
type FlowCounts = Record<(typeof kinds)[number], number>
/** A stored row. `took`: the durations from start to end, as `packed` returns them. */
export interface PackedFlow extends Readonly<FlowCounts> {
  readonly minute: number
  readonly took: string
  readonly failures: string | null
}
const COLUMNS = 'minute, started, completed, failed, cancelled, took, failures'
/** Returns the stored rows of a project from the given minute on, ordered by time. */
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

/** The sum of the facts of one period. */
interface Sum extends FlowCounts {
  readonly took: Durations
  readonly failures: Failures
}
const emptySum = (): Sum => ({
  started: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  took: noDurations(),
  failures: {},
})
/**
 * Adds to the count of a failure. The order of the additions affects the result in only one way:
 * the first `most` different failures have separate counts.
 */
function addFailure(
  failures: Failures,
  key: string,
  [n, run_id, at]: FailureCount,
  most = Number.POSITIVE_INFINITY,
): void {
  const known = failures[key]
  if (known) {
    const isLater = at === known[2] ? run_id > known[1] : at > known[2]
    failures[key] = [known[0] + n, isLater ? run_id : known[1], Math.max(at, known[2])]
  } else if (key === OTHERS || Object.keys(failures).length < most) failures[key] = [n, run_id, at]
  else addFailure(failures, OTHERS, [n, run_id, at])
}

/** A failed run. `index`: the index in `#facts` at which its fact begins. */
interface Failed {
  readonly index: number
  readonly key: string
  readonly count: FailureCount
}
/** Number of elements per fact in `#facts`: project, time, index in `kinds`, and duration or -1. */
const WIDTH = 4

/** The facts that wait to be written. */
class RunFlow implements Buffered {
  readonly #store: Store
  #facts: number[] = []
  #failed: Failed[] = []
  /** The number of elements of `#facts` that `keep` has accepted. */
  #kept = 0
  constructor(store: Store) {
    this.#store = store
  }
  get waiting(): number {
    return this.#facts.length === 0 ? 0 : 1
  }
  add(project: number, at: number, kind: number, took: number): void {
    this.#facts.push(project, at, kind, took)
  }
  /** Adds the description of the failure that was just added as a fact. */
  describe(key: string, count: FailureCount): void {
    this.#failed.push({ index: this.#facts.length - WIDTH, key, count })
  }
  keep(): void {
    this.#kept = this.#facts.length
  }
  undo(): void {
    this.#facts.length = this.#kept
    while ((this.#failed.at(-1)?.index ?? -1) >= this.#kept) this.#failed.pop()
  }
  forget(): void {
    this.#facts = []
    this.#failed = []
    this.#kept = 0
  }
  flush(): void {
    if (this.#facts.length === 0) return
    for (const period of PERIODS)
      for (const [project, sums] of this.#sums(period))
        for (const [minute, sum] of sums) write(this.#store, project, period, minute, sum)
    this.forget()
  }
  #sums(period: Period): Map<number, Map<number, Sum>> {
    const facts = this.#facts
    const projects = new Map<number, Map<number, Sum>>()
    let [last, next] = [emptySum(), 0]
    let [lastProject, lastMinute] = [-1, -1]
    for (let i = 0; i < facts.length; i += WIDTH) {
      const project = facts[i] as number
      const minute = Math.floor((facts[i + 1] as number) / 60_000 / period) * period
      if (project !== lastProject || minute !== lastMinute) {
        const minutes = projects.get(project) ?? new Map<number, Sum>()
        projects.set(project, minutes)
        last = minutes.get(minute) ?? emptySum()
        minutes.set(minute, last)
        ;[lastProject, lastMinute] = [project, minute]
      }
      last[kinds[facts[i + 2] as 0 | 1 | 2 | 3]]++
      const took = facts[i + 3] as number
      if (took >= 0) addDuration(last.took, took)
      const failure = this.#failed[next]
      if (failure?.index === i) {
        addFailure(last.failures, failure.key, failure.count)
        next++
      }
    }
    return projects
  }
}
function write(store: Store, project: number, period: Period, minute: number, sum: Sum): void {
  const row = store.one<PackedFlow>(
    `SELECT ${COLUMNS} FROM run_flow WHERE project = ? AND period = ? AND minute = ?`,
    project,
    period,
    minute,
  )
  // The failures are added to the stored ones in the order of the entries. Therefore, the division
  // of the entries into flushes does not affect which failures are counted as `OTHER`.
  const failures: Failures = row?.failures ? (JSON.parse(row.failures) as Failures) : {}
  for (const [key, count] of Object.entries(sum.failures))
    addFailure(failures, key, count, MAX_DISTINCT)
  if (row) addPacked(sum.took, row.took)
  store.run(
    `INSERT OR REPLACE INTO run_flow (project, period, ${COLUMNS})
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    project,
    period,
    minute,
    ...kinds.map((kind) => sum[kind] + (row?.[kind] ?? 0)),
    packDurations(sum.took),
    Object.keys(failures).length === 0 ? null : JSON.stringify(failures),
  )
  if (row || period !== 60) return
  for (const old of PERIODS)
    store.run(
      'DELETE FROM run_flow WHERE project = ? AND period = ? AND minute < ?',
      project,
      old,
      minute - RETENTION_MINUTES,
    )
}

/**
 * Counts the start and the end of a run, if the entry contains them.
 * @param row the run after the entry.
 * @param isNew whether the entry created the run.
 * @param at time of the entry in Unix milliseconds.
 */
export function addRunFlow(
  store: Store,
  row: RunRow,
  isNew: boolean,
  events: readonly RunEvent[],
  at: number,
): void {
  const { record, project } = row
  // If the run has not ended after the entry, the entry does not contain the end of the run.
  const isOver = terminal.has(record.status)
  if (!isNew && !isOver) return
  const flow = store.buffer('run_flow', () => new RunFlow(store))
  if (isNew) flow.add(project, at, 0, -1)
  if (!isOver) return
  for (const event of events) {
    const kind = ends[event.type]
    if (kind === undefined) continue
    const started = startOf(row)
    flow.add(project, at, kind, started === undefined ? -1 : Math.max(0, at - started))
    if (event.type === 'run.failed') flow.describe(failureOf(row, event), [1, record.id, at])
  }
}
/** The events that end a run, with their indexes in `kinds`. */
const ends: { readonly [T in RunEvent['type']]?: number } = {
  'run.completed': 1,
  'run.failed': 2,
  'run.cancelled': 3,
}
/** Returns the time in Unix milliseconds at which a run started; undefined if it never started. */
function startOf(row: RunRow): number | undefined {
  const { started_at, created_at } = row.record
  if (started_at === undefined) return undefined
  return started_at === created_at ? row.created_at : Date.parse(started_at)
}
function failureOf({ record }: RunRow, { step = '', payload }: RunEvent): string {
  const error_type = payload?.['error_type'] ?? record.error_type
  const key: FailureKey = [
    typeof error_type === 'string' ? error_type : OTHER,
    isOfLoop(record) ? '' : record.definition_id,
    record.loop_id ?? '',
    step,
  ]
  return JSON.stringify(key)
}
