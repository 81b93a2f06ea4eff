/**
 * The stream of all runs of a project: their changes, in journal order. An event produces one frame
 * when it changes the status of a run or of a job, and one frame when it records an action call or
 * its outcome. The text of a frame is created when the frame is read. One row of the
 * table stores many frames. The newest frames are also held in memory, see `FeedTail`.
 */

import { timestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { Job } from '../../../protocol/jobs/rows.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { type RunEvent, timelineTypes } from '../../../protocol/runs/events.ts'
import { MAX_PAGE_CHARACTERS } from '../../page.ts'
import type { Store } from '../../store.ts'
import { actionEntry } from '../actions/actions.ts'
import { type Frame, unpackFrames } from './frames.ts'
import { type RunRow, runCache } from './run-row.ts'
import { eventAt } from './timeline.ts'

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
  const { project, fed } = row
  if (type.startsWith('action.') && timelineTypes.has(type))
    store.tail.add(project, {
      kind: 'action_appended',
      cursor,
      at,
      run: fed,
      call: { cursor, type, step, payload, at },
    })
  if (run?.status)
    store.tail.add(project, {
      kind: 'run_updated',
      cursor,
      at,
      run: fed,
      status: run.status,
      stop_reason: run.stop_reason ?? undefined,
    })
}
/**
 * Adds the frame of a job event that sets a status; `job` is the job after the event. Jobs outside
 * of runs have no frame.
 */
export function feedJob(store: Store, { entry }: PlacedEntry, cursor: number, job: Job): void {
  const run = job.run_id === undefined ? undefined : runCache(store).get(job.run_id)
  if (!run) return
  const { id, status, step_key, claim_attempt } = job
  store.tail.add(run.project, {
    kind: 'job_updated',
    cursor,
    at: entry.origin.at,
    run: run.fed,
    job: id,
    step: step_key,
    status,
    attempt: claim_attempt,
  })
}

/** Returns the `data` of a frame: the action call, or the changed fields. */
function dataOf(store: Store, frame: Frame): string {
  if (frame.kind === 'action_appended') {
    const call = frame.call ?? eventAt(store, frame.run, frame.cursor)
    return JSON.stringify((call && actionEntry(frame.run.id, call)) ?? {})
  }
  const status = `"status":${quoted(frame.status)}`
  if (frame.kind === 'job_updated') {
    const { job, step, attempt } = frame
    return `{${member('job_id', job)}${status},${member('step_key', step)}"claim_attempt":${attempt}}`
  }
  const { stop_reason, run } = frame
  const more =
    member('stop_reason', stop_reason || undefined) +
    member('definition_id', run.definition_id || undefined) +
    member('loop_id', run.loop_id)
  return more === '' ? `{${status}}` : `{${status},${more.slice(0, -1)}}`
}
const member = (name: string, value: string | undefined): string =>
  value === undefined ? '' : `"${name}":${quoted(value)},`
/** Returns a text as JSON. `JSON.stringify` takes several times as long for an id or a status. */
const quoted = (text: string): string =>
  /^[\w.:-]*$/.test(text) ? `"${text}"` : JSON.stringify(text)
/** Returns a frame as clients receive it: the JSON of a `ProjectRunEvent`. */
const textOf = (store: Store, frame: Frame): string =>
  `{"type":"${frame.kind}",${member('run_id', frame.run.id)}"seq":${frame.cursor},` +
  `"timestamp":"${timestamp(frame.at)}","data":${dataOf(store, frame)}}`

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
    for (const frame of unpackFrames(store, row.frames))
      if (frame.cursor > after) frames.push(frame)
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
  const { after, limit, appended } = input
  const frames = store.tail.reaches(after)
    ? store.tail.read(project, after, limit + 2)
    : read(store, project, after, limit + 2)
  const items: { seq: number; type: Frame['kind']; json: string }[] = []
  let text = ''
  let count = 0
  let end = after
  let characters = 0
  for (const frame of frames) {
    const { cursor, kind } = frame
    if ((count >= limit || characters >= MAX_PAGE_CHARACTERS) && cursor !== end) break
    const json = textOf(store, frame)
    if (appended) text += `${cursor} ${kind} ${json}\n`
    else items.push({ seq: cursor, type: kind, json })
    count++
    end = cursor
    characters += json.length
  }
  const more = frames.length > count
  return {
    items,
    ...(appended && { appended: text }),
    last: more && count > 0 ? end : current,
    oldest,
    more,
  }
}
