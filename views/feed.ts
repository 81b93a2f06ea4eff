/**
 * The stream of all runs of a project: what changed, in journal order. An event gives a frame for a new status of a run or
 * of a job, and one for each call of an action; the latter is read from the timeline, not stored twice. The newest frames
 * are in memory as well, see `FeedTail`.
 */
import type { Job } from '../protocol/api/jobs.ts'
import { timelineTypes, type ProjectRunEvent, type RunEvent } from '../protocol/api/runs.ts'
import { timestamp, type Open } from '../protocol/common.ts'
import type { Placed } from '../protocol/entry.ts'
import type { ViewQuestions } from '../protocol/internal.ts'
import { actionEntry } from './actions.ts'
import { keptRuns, type RunRow } from './runs.ts'
import type { Store } from './store.ts'
import type { Frame } from './tail.ts'
import { eventAt } from './timeline.ts'

function insert(store: Store, { project, n }: RunRow, frame: Frame): void {
  store.append('feed', project, frame.cursor, frame.kind, n, frame.data ? JSON.stringify(frame.data) : null, frame.at)
  store.tail.add(project, frame)
}

/** Frames of a run event; `row` is the run as the event leaves it. @param at Unix milliseconds. */
export function feedRun(store: Store, row: RunRow, event: RunEvent, cursor: number, at: number): void {
  const { type, step = null, payload = null, run } = event
  const { id, definition_id } = row.record
  if (type.startsWith('action.') && timelineTypes.has(type)) insert(store, row, { cursor, run: id, kind: 'action_appended', data: null, call: { cursor, type, step, payload, at }, at })
  if (!run?.status) return
  insert(store, row, { cursor, run: id, kind: 'run_updated', data: { status: run.status, ...(definition_id && { definition_id }) }, call: null, at })
}

/** Frame of a job event that set a status; `job` is the job as the event leaves it. Jobs outside runs have none. */
export function feedJob(store: Store, { entry }: Placed, cursor: number, job: Job): void {
  const run = job.run_id === undefined ? undefined : keptRuns(store).get(job.run_id)
  if (!run) return
  const { id, status, step_key, claim_attempt } = job
  const data = { job_id: id, status, ...(step_key !== undefined && { step_key }), claim_attempt }
  insert(store, run, { cursor, run: run.record.id, kind: 'job_updated', data, call: null, at: entry.origin.at })
}

type FeedRow = Pick<Frame, 'cursor' | 'run' | 'kind' | 'at'> & { readonly n: number; readonly data: string | null }
const stored = (store: Store, project: number, after: number, limit: number): Frame[] => store.all<FeedRow>(
  `SELECT feed.seq AS cursor, runs.id AS run, feed.type AS kind, feed.data AS data, feed.at AS at, feed.run AS n
   FROM feed CROSS JOIN runs ON runs.n = feed.run WHERE feed.project = ? AND feed.seq > ? ORDER BY feed.seq, feed.type LIMIT ?`,
  project, after, limit,
).map(({ n, data, ...row }) => (data === null ? { ...row, data, call: eventAt(store, n, row.cursor) ?? null } : { ...row, data: JSON.parse(data) as Open, call: null }))


/**
 * Frames after a cursor. `last` is the last frame's cursor when more follow, else `current`, the cursor up to which the
 * view has applied everything. Frames of one event stay together, so a page can be one longer than asked.
 */
export function feed(store: Store, project: number, input: ViewQuestions['feed']['input'], current: number, oldest: number): ViewQuestions['feed']['reply'] {
  const { after, limit } = input
  const rows = store.tail.reaches(after) ? store.tail.read(project, after, limit + 2) : stored(store, project, after, limit + 2)
  const whole = rows[limit]?.cursor === rows[limit - 1]?.cursor ? limit + 1 : limit
  const items = rows.slice(0, whole).map((row): ProjectRunEvent => ({
    type: row.kind, run_id: row.run, seq: row.cursor, timestamp: timestamp(row.at),
    data: row.data ?? (row.call ? { ...actionEntry(row.run, row.call) } : {}),
  }))
  return { items, last: rows.length > whole ? (items.at(-1)?.seq ?? current) : current, oldest }
}
