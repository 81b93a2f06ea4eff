/**
 * Events of runs as clients follow them. The events of one entry are stored as one row, which is
 * unpacked when it is read.
 */

import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { type RunEvent, timelineRecord, timelineTypes } from '../../../protocol/runs/events.ts'
import { type RunEventRecord, terminal } from '../../../protocol/runs/schema.ts'
import { CHARACTERS, limitOf, sizeOf } from '../../page.ts'
import type { Store } from '../../store.ts'
import { missingRun, type RunRow, runRow } from './run-row.ts'

/** An event of the timeline. `at`: Unix milliseconds. */
export interface Shown {
  readonly cursor: number
  readonly type: string
  readonly step: string | null
  readonly payload: JsonObject | null
  readonly at: number
}
/**
 * A row: the events of an entry that the timeline shows, at least one. `cursor` is the cursor of
 * the last event. `events` is JSON; each event is stored as the distance from its cursor to that of
 * the last event, its type, its step, and its payload. A payload of 0 means that the previous
 * payload is repeated: payloads often repeat, for example when a step, its wait and the run are
 * suspended together.
 */
export interface TimelineRow {
  readonly cursor: number
  readonly at: number
  readonly events: string
}
type Packed = readonly [
  back: number,
  type: string,
  step: string | null,
  payload: JsonObject | null | 0,
]

/**
 * Stores the events of a run's entry that the timeline shows.
 * @param cursor the cursor of the first event.
 * @param at the time of the entry, in Unix milliseconds.
 * @returns the number of stored characters.
 */
export function applyTimeline(
  store: Store,
  { n, project }: RunRow,
  events: readonly RunEvent[],
  cursor: number,
  at: number,
): number {
  const last = events.findLastIndex(({ type }) => timelineTypes.has(type))
  if (last < 0) return 0
  const packed: string[] = []
  let actions = 0
  let before: string | undefined
  for (let i = 0; i <= last; i++) {
    const { type, step = null, payload = null } = events[i] as RunEvent
    if (!timelineTypes.has(type)) continue
    const text = JSON.stringify(payload)
    packed.push(
      `[${last - i},${JSON.stringify(type)},${JSON.stringify(step)},${text === before ? 0 : text}]`,
    )
    before = text
    if (type.startsWith('action.')) actions = 1
  }
  const json = `[${packed.join(',')}]`
  store.append('timeline', cursor + last, n, project, actions, at, json)
  return json.length
}

/** Returns the events of a row, oldest first. */
export function eventsOf({ cursor, at, events }: TimelineRow): Shown[] {
  let before: JsonObject | null = null
  return (JSON.parse(events) as Packed[]).map(([back, type, step, payload]) => {
    if (payload !== 0) before = payload
    return { cursor: cursor - back, type, step, payload: before, at }
  })
}

const record =
  (run: string) =>
  ({ cursor, type, step, payload, at }: Shown): RunEventRecord =>
    timelineRecord(run, cursor, timestamp(at), {
      type: type as RunEvent['type'],
      ...(step !== null && { step }),
      ...(payload !== null && { payload }),
    })
// Every row has an event after the cursor, so `limit + 1` rows contain enough events.
const after = (
  store: Store,
  { n, project }: RunRow,
  cursor: number,
  limit: number,
): { readonly items: readonly Shown[]; readonly more: boolean } => {
  const items: Shown[] = []
  let size = 0
  for (const row of store.each<TimelineRow>(
    'SELECT cursor, at, events FROM timeline WHERE run = ? AND cursor > ? AND project = ? ORDER BY cursor LIMIT ?',
    n,
    cursor,
    project,
    limit + 1,
  )) {
    size += sizeOf(row)
    if (size > CHARACTERS && items.length > 0) return { items: items.slice(0, limit), more: true }
    items.push(...eventsOf(row).filter((event) => event.cursor > cursor))
    if (items.length > limit) break
  }
  return { items: items.slice(0, limit), more: items.length > limit }
}

/** Returns the event of a run at a cursor. */
export const eventAt = (store: Store, run: number, cursor: number): Shown | undefined =>
  store
    .all<TimelineRow>(
      'SELECT cursor, at, events FROM timeline WHERE run = ? AND cursor >= ? ORDER BY cursor LIMIT 1',
      run,
      cursor,
    )
    .flatMap(eventsOf)
    .find((event) => event.cursor === cursor)

/**
 * Returns the events of a run after a cursor. `last` is the cursor of the run's newest applied
 * event, whether or not the timeline shows it. `more`: whether the limit, or the size of a page,
 * was reached before the end. In that case, `last` is the cursor of the last item, after which the
 * next query continues.
 */
export function timeline(
  store: Store,
  project: number,
  input: ViewQueries['timeline']['input'],
  oldest: number,
): ViewQueries['timeline']['reply'] {
  const run = runRow(store, project, input.run_id)
  if (!run) return { items: [], last: 0, more: false, ended: false, oldest, exists: false }
  const { items, more } = after(store, run, input.after, input.limit)
  return {
    items: items.map(record(input.run_id)),
    last: more ? (items.at(-1)?.cursor ?? input.after) : run.last,
    more,
    oldest,
    exists: true,
    ended: !more && terminal.has(run.record.status),
  }
}

/** Returns a page of a run's timeline. */
export function eventPage(
  store: Store,
  project: number,
  input: { readonly id: string; readonly after_sequence?: number; readonly limit?: number },
): { items: RunEventRecord[]; next_sequence?: number; has_more: boolean } | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  const limit = limitOf(input.limit === undefined ? {} : { limit: input.limit })
  const found = after(store, run, input.after_sequence ?? 0, limit)
  const items = found.items.map(record(input.id))
  const last = items.at(-1)
  return { items, ...(last && { next_sequence: last.sequence }), has_more: found.more }
}
