/**
 * The stream of all runs of a project: what changed, in journal order. An event gives a frame for a new status of a run or
 * of a job, and one for each call of an action; the latter is read from the timeline, not stored twice.
 */
import type { Job } from '../protocol/api/jobs.ts'
import { timelineTypes, type ProjectRunEvent, type RunEvent, type WorkflowRun } from '../protocol/api/runs.ts'
import { timestamp, type Open } from '../protocol/common.ts'
import type { Placed } from '../protocol/entry.ts'
import type { ViewQuestions } from '../protocol/internal.ts'
import { actionEntry, type TimelineRow } from './actions.ts'
import type { Store } from './store.ts'

const insert = (store: Store, { entry }: Placed, seq: number, run: string, type: ProjectRunEvent['type'], data: Open | undefined) =>
  store.run('INSERT INTO feed (seq, project, run, type, data, at) VALUES (?, ?, ?, ?, ?, ?)', seq, entry.project, run, type, data ? JSON.stringify(data) : null, entry.origin.at)

/** Frames of a run event; `record` is the run as the event leaves it. */
export function feedRun(store: Store, place: Placed, event: RunEvent, cursor: number, record: WorkflowRun | undefined): void {
  if (event.type.startsWith('action.') && timelineTypes.has(event.type)) insert(store, place, cursor, place.entry.id, 'action_appended', undefined)
  if (!event.run?.status) return
  const definition_id = record?.definition_id
  insert(store, place, cursor, place.entry.id, 'run_updated', { status: event.run.status, ...(definition_id && { definition_id }) })
}

/** Frame of a job event that set a status; `job` is the job as the event leaves it. Jobs outside runs have none. */
export function feedJob(store: Store, place: Placed, cursor: number, job: Job): void {
  if (job.run_id === undefined) return
  const { id, status, step_key, claim_attempt } = job
  insert(store, place, cursor, job.run_id, 'job_updated', { job_id: id, status, ...(step_key !== undefined && { step_key }), claim_attempt })
}

type FeedRow = TimelineRow & { readonly kind: ProjectRunEvent['type']; readonly frame: string | null }

/**
 * Frames after a cursor. `last` is the last frame's cursor when more follow, else `current`, the cursor up to which the
 * view has applied everything. Frames of one event stay together, so a page can be one longer than asked.
 */
export function feed(store: Store, project: string, input: ViewQuestions['feed']['input'], current: number, oldest: number): ViewQuestions['feed']['reply'] {
  const rows = store.all<FeedRow>(
    `SELECT feed.seq AS cursor, feed.run AS run, feed.type AS kind, feed.data AS frame, feed.at AS at, timeline.type AS type, timeline.step AS step, timeline.payload AS payload
     FROM feed INDEXED BY feed_project LEFT JOIN timeline ON timeline.cursor = feed.seq AND feed.type = 'action_appended'
     WHERE feed.project = ? AND feed.seq > ? ORDER BY feed.seq, feed.rowid LIMIT ?`,
    project, input.after, input.limit + 2,
  )
  const whole = rows[input.limit]?.cursor === rows[input.limit - 1]?.cursor ? input.limit + 1 : input.limit
  const shown = rows.slice(0, whole)
  const items = shown.map((row): ProjectRunEvent => ({
    type: row.kind, run_id: row.run, seq: row.cursor, timestamp: timestamp(row.at),
    data: row.frame === null ? { ...actionEntry(row) } : (JSON.parse(row.frame) as Open),
  }))
  return { items, last: rows.length > whole ? (items.at(-1)?.seq ?? current) : current, oldest }
}
