/**
 * Stores and reads the events of runs as clients follow them. The events of one entry are stored as
 * one row, which is unpacked when it is read.
 */

import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { type RunEvent, timelineRecord, timelineTypes } from '../../../protocol/runs/events.ts'
import { type RunEventRecord, terminal } from '../../../protocol/runs/schema.ts'
import { limitOf, MAX_PAGE_CHARACTERS, sizeOf } from '../../page.ts'
import type { Packed } from '../../shapes.ts'
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
 * The events of an entry that the timeline shows. An entry without such events has no row. `cursor`
 * is the cursor of the last event. `events` is a JSON array. For each event, it contains the
 * distance from the event's cursor to the cursor of the last event, the step, and the compact form
 * of the payload with the event's type as the label. A step of 0 means no step, and 1 the previous
 * step. Payloads often repeat, for example when a step, its wait and the run are suspended
 * together; `SAME` stands for the previous payload.
 */
export interface TimelineRow {
  readonly cursor: number
  readonly at: number
  readonly events: string
}
/**
 * Prefixes of the label of an event, before its type: `NONE` if the event has no payload, `SAME` if
 * its payload equals that of the previous event.
 */
const [NONE, SAME] = ['-', '=']
const nothing = {}

/**
 * Stores the events of a run's entry that the timeline shows.
 * @param cursor the cursor of the first event.
 * @param at the time of the entry, in Unix milliseconds.
 * @returns the number of stored characters.
 */
export function applyTimeline(
  store: Store,
  { n, project, record }: RunRow,
  events: readonly RunEvent[],
  cursor: number,
  at: number,
): number {
  const last = events.findLastIndex(({ type }) => timelineTypes.has(type))
  if (last < 0) return 0
  const texts: string[] = [record.id]
  const known = { texts, at }
  const packed: unknown[] = []
  let actions = 0
  let before: JsonObject | null = null
  let previous: string | null = null
  for (let i = 0; i <= last; i++) {
    const { type, step = null, payload = null } = events[i] as RunEvent
    if (!timelineTypes.has(type)) continue
    const place = step === null ? 0 : step === previous ? 1 : step
    const mark = payload === null ? NONE : before && isSame(payload, before) ? SAME : ''
    packed.push(last - i, place)
    if (mark !== '' || payload === null) store.shapes.pack(nothing, known, mark + type, packed)
    else {
      store.shapes.pack(payload, known, type, packed)
      learn(texts, payload)
    }
    before = payload
    previous = step ?? previous
    if (type.startsWith('action.')) actions = 1
  }
  const json = JSON.stringify(packed)
  store.append('timeline', cursor + last, n, project, actions, at, json)
  return json.length
}
/** Whether two payloads have the same JSON. */
function isSame(a: JsonObject, b: JsonObject): boolean {
  const names = Object.keys(b)
  let i = 0
  for (const name in a) {
    if (name !== names[i++]) return false
    const [one, other] = [a[name], b[name]]
    if (one === other) continue
    if (typeof one !== 'object' || typeof other !== 'object') return false
    if (JSON.stringify(one) !== JSON.stringify(other)) return false
  }
  return i === names.length
}
/**
 * Adds the long texts of a payload, such as ids, to the texts that later payloads of the entry may
 * refer to. The newest texts are placed directly after the id of the run, which stays first. The
 * ids of the latest step therefore always have the same positions, so the payloads of all steps
 * have the same shapes.
 */
function learn(texts: string[], payload: JsonObject): void {
  for (const name in payload) {
    const value = payload[name]
    if (typeof value !== 'string' || value.length < MIN_SHARED_LENGTH || texts.includes(value))
      continue
    texts.splice(1, 0, value)
    if (texts.length > MAX_TEXTS) texts.pop()
  }
}
/** Minimum number of characters of a text to which later payloads of the entry may refer. */
const MIN_SHARED_LENGTH = 20
/** Maximum number of texts to which a payload may refer. */
const MAX_TEXTS = 6

/** Returns the events of a row of a run, oldest first. */
export function eventsOf(store: Store, run: string, { cursor, at, events }: TimelineRow): Shown[] {
  const { shapes } = store
  const texts: string[] = [run]
  const known = { texts, at }
  let before: JsonObject | null = null
  let previous: string | null = null
  const packed = JSON.parse(events) as Packed
  const shown: Shown[] = []
  for (let i = 0; i < packed.length; i += 2 + shapes.lengthOf(packed, i + 2)) {
    const [back, place] = [packed[i] as number, packed[i + 1] as string | 0 | 1]
    const step: string | null = place === 0 ? null : place === 1 ? previous : place
    const label = shapes.labelOf(packed, i + 2)
    const mark = label.charAt(0)
    if (mark === NONE) before = null
    else if (mark !== SAME) learn(texts, (before = shapes.unpack<JsonObject>(packed, known, i + 2)))
    previous = step ?? previous
    const type = mark === NONE || mark === SAME ? label.slice(1) : label
    shown.push({ cursor: cursor - back, type, step, payload: before, at })
  }
  return shown
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
  { n, project, record: { id } }: RunRow,
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
    if (size > MAX_PAGE_CHARACTERS && items.length > 0)
      return { items: items.slice(0, limit), more: true }
    items.push(...eventsOf(store, id, row).filter((event) => event.cursor > cursor))
    if (items.length > limit) break
  }
  return { items: items.slice(0, limit), more: items.length > limit }
}

/** Returns the event of a run at a cursor; undefined if the timeline has none there. */
export const eventAt = (
  store: Store,
  run: { readonly n: number; readonly id: string },
  cursor: number,
): Shown | undefined =>
  store
    .all<TimelineRow>(
      'SELECT cursor, at, events FROM timeline WHERE run = ? AND cursor >= ? ORDER BY cursor LIMIT 1',
      run.n,
      cursor,
    )
    .flatMap((row) => eventsOf(store, run.id, row))
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

/** Returns a page of a run's timeline, or `not_found` if the project has no such run. */
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
