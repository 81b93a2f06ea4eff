/**
 * The stream of all runs of a project: their changes, in journal order. An event produces one frame
 * when it changes the status of a run or of a job, and one frame when it records a call of an
 * action or its outcome. Frames of the second kind are read from the timeline instead of being
 * stored twice. One row of the table stores many frames. The newest frames are also held in memory,
 * see `FeedTail`.
 */

import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Placed } from '../../../protocol/entry.ts'
import type { Job } from '../../../protocol/jobs/rows.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { type RunEvent, timelineTypes } from '../../../protocol/runs/events.ts'
import type { ProjectRunEvent } from '../../../protocol/runs/schema.ts'
import { CHARACTERS } from '../../page.ts'
import type { Store } from '../../store.ts'
import { actionEntry } from '../actions/actions.ts'
import { keptRuns, type RunRow } from './run-row.ts'
import type { Frame } from './tail.ts'
import { eventAt, type Shown } from './timeline.ts'

type Kind = ProjectRunEvent['type']
const text = (type: Kind, run_id: string, seq: number, at: number, data: JsonObject): string =>
  JSON.stringify({ type, run_id, seq, timestamp: timestamp(at), data } satisfies ProjectRunEvent)
const called = (
  run: string,
  { cursor, at }: { readonly cursor: number; readonly at: number },
  call: Shown | undefined,
): string => text('action_appended', run, cursor, at, call ? { ...actionEntry(run, call) } : {})

/**
 * Adds the frames of a run event; `row` is the run after the event.
 * @param at the time of the event, in Unix milliseconds.
 */
export function feedRun(
  store: Store,
  row: RunRow,
  event: RunEvent,
  cursor: number,
  at: number,
): void {
  const { type, step = null, payload = null, run } = event
  const { id, definition_id, loop_id } = row.record
  if (type.startsWith('action.') && timelineTypes.has(type)) {
    const call = { cursor, type, step, payload, at }
    let json: string | undefined
    store.tail.add(row.project, {
      cursor,
      kind: 'action_appended',
      json: () => (json ??= called(id, call, call)),
      stored: [cursor, row.n, id, at],
    })
  }
  if (run?.status)
    add(
      store,
      row.project,
      cursor,
      'run_updated',
      text('run_updated', id, cursor, at, {
        status: run.status,
        ...(run.stop_reason && { stop_reason: run.stop_reason }),
        ...(definition_id && { definition_id }),
        ...(loop_id !== undefined && { loop_id }),
      }),
    )
}
/**
 * Adds the frame of a job event that set a status; `job` is the job after the event. Jobs outside
 * of runs have no frame.
 */
export function feedJob(store: Store, { entry }: Placed, cursor: number, job: Job): void {
  const run = job.run_id === undefined ? undefined : keptRuns(store).get(job.run_id)
  if (!run) return
  const { id, status, step_key, claim_attempt } = job
  add(
    store,
    run.project,
    cursor,
    'job_updated',
    text('job_updated', run.record.id, cursor, entry.origin.at, {
      job_id: id,
      status,
      ...(step_key !== undefined && { step_key }),
      claim_attempt,
    }),
  )
}
const add = (store: Store, project: number, cursor: number, kind: Kind, json: string): void =>
  store.tail.add(project, { cursor, kind, json: () => json, stored: [cursor, kind, json] })

/** Restores a frame from its stored form. */
function shown(store: Store, stored: Frame['stored']): Frame {
  const [cursor] = stored
  if (stored.length === 3) return { cursor, kind: stored[1], json: () => stored[2], stored }
  const [, n, run, at] = stored
  return {
    cursor,
    kind: 'action_appended',
    json: () => called(run, { cursor, at }, eventAt(store, n, cursor)),
    stored,
  }
}
/**
 * Reads frames after a cursor from the table: whole rows, until there are at least `limit` frames.
 */
function read(store: Store, project: number, after: number, limit: number): Frame[] {
  const frames: Frame[] = []
  for (const row of store.each<{ frames: string }>(
    'SELECT frames FROM feed WHERE project = ? AND seq > ? ORDER BY seq',
    project,
    after,
  )) {
    for (const stored of JSON.parse(row.frames) as Frame['stored'][])
      if (stored[0] > after) frames.push(shown(store, stored))
    if (frames.length >= limit) break
  }
  return frames
}

/**
 * Returns frames after a cursor. `last` is the last frame's cursor when more follow, otherwise
 * `current`, the cursor up to which the view has applied everything. Frames of one event stay
 * together, so a page may have one more frame than requested.
 */
export function feed(
  store: Store,
  project: number,
  input: ViewQueries['feed']['input'],
  current: number,
  oldest: number,
): ViewQueries['feed']['reply'] {
  const { after, limit } = input
  const rows = store.tail.reaches(after)
    ? store.tail.read(project, after, limit + 2)
    : read(store, project, after, limit + 2)
  const items: { seq: number; type: Kind; json: string }[] = []
  let characters = 0
  for (const { cursor, kind, json } of rows) {
    if ((items.length >= limit || characters >= CHARACTERS) && cursor !== items.at(-1)?.seq) break
    const frame = json()
    items.push({ seq: cursor, type: kind, json: frame })
    characters += frame.length
  }
  const more = rows.length > items.length
  return { items, last: more ? (items.at(-1)?.seq ?? current) : current, oldest, more }
}
