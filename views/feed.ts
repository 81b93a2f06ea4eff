/**
 * The stream of all runs of a project: what changed, in journal order. An event gives a frame for a new status of a run or
 * of a job, and one for each call of an action; the latter is read from the timeline, not stored twice.
 */
import type { Job } from '../protocol/api/jobs.ts'
import { timelineTypes, type ProjectRunEvent, type RunEvent } from '../protocol/api/runs.ts'
import { timestamp, type Open } from '../protocol/common.ts'
import type { Placed } from '../protocol/entry.ts'
import type { ViewQuestions } from '../protocol/internal.ts'
import { actionEntry, type TimelineRow } from './actions.ts'
import { keptRuns, type RunRow } from './runs.ts'
import type { Store } from './store.ts'

/** Where and when something happened: a run of a project, the cursor of the event, Unix milliseconds. */
interface Spot { readonly project: number; readonly run: number; readonly cursor: number; readonly at: number }
const insert = (store: Store, { project, run, cursor, at }: Spot, type: ProjectRunEvent['type'], data: Open | undefined) =>
  store.append('feed', project, cursor, type, run, data ? JSON.stringify(data) : null, at)

/** Frames of a run event; `row` is the run as the event leaves it. @param at Unix milliseconds. */
export function feedRun(store: Store, row: RunRow, event: RunEvent, cursor: number, at: number): void {
  const spot = { project: row.project, run: row.n, cursor, at }
  if (event.type.startsWith('action.') && timelineTypes.has(event.type)) insert(store, spot, 'action_appended', undefined)
  if (!event.run?.status) return
  const { definition_id } = row.record
  insert(store, spot, 'run_updated', { status: event.run.status, ...(definition_id && { definition_id }) })
}

/** Frame of a job event that set a status; `job` is the job as the event leaves it. Jobs outside runs have none. */
export function feedJob(store: Store, { entry }: Placed, cursor: number, job: Job): void {
  const run = job.run_id === undefined ? undefined : keptRuns(store).get(job.run_id)
  if (!run) return
  const { id, status, step_key, claim_attempt } = job
  insert(store, { project: run.project, run: run.n, cursor, at: entry.origin.at }, 'job_updated', { job_id: id, status, ...(step_key !== undefined && { step_key }), claim_attempt })
}

type FeedRow = TimelineRow & { readonly run: string; readonly kind: ProjectRunEvent['type']; readonly frame: string | null }

/**
 * Frames after a cursor. `last` is the last frame's cursor when more follow, else `current`, the cursor up to which the
 * view has applied everything. Frames of one event stay together, so a page can be one longer than asked.
 */
export function feed(store: Store, project: number, input: ViewQuestions['feed']['input'], current: number, oldest: number): ViewQuestions['feed']['reply'] {
  const rows = store.all<FeedRow>(
    `SELECT feed.seq AS cursor, runs.id AS run, feed.type AS kind, feed.data AS frame, feed.at AS at, timeline.type AS type, timeline.step AS step, timeline.payload AS payload
     FROM feed CROSS JOIN runs ON runs.n = feed.run LEFT JOIN timeline ON timeline.run = feed.run AND timeline.cursor = feed.seq AND feed.data IS NULL
     WHERE feed.project = ? AND feed.seq > ? ORDER BY feed.seq, feed.type LIMIT ?`,
    project, input.after, input.limit + 2,
  )
  const whole = rows[input.limit]?.cursor === rows[input.limit - 1]?.cursor ? input.limit + 1 : input.limit
  const items = rows.slice(0, whole).map((row): ProjectRunEvent => ({
    type: row.kind, run_id: row.run, seq: row.cursor, timestamp: timestamp(row.at),
    data: row.frame === null ? { ...actionEntry(row.run, row) } : (JSON.parse(row.frame) as Open),
  }))
  return { items, last: rows.length > whole ? (items.at(-1)?.seq ?? current) : current, oldest }
}
