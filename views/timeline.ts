/** Events of runs as clients follow them: kept as small rows, spelled out when they are asked for. */
import { terminal, timelineRecord, timelineTypes, type RunEvent, type RunEventRecord } from '../protocol/api/runs.ts'
import { timestamp, type Open } from '../protocol/common.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { ViewQuestions } from '../protocol/internal.ts'
import type { TimelineRow } from './actions.ts'
import { limitOf } from './page.ts'
import { missingRun, runRow, type RunRow } from './runs.ts'
import type { Store } from './store.ts'

/** Store a run event when it belongs to the timeline. @param at Unix milliseconds. */
export function applyTimeline(store: Store, { n, project }: RunRow, event: RunEvent, cursor: number, at: number): void {
  if (!timelineTypes.has(event.type)) return
  store.append('timeline', n, cursor, project, event.type, event.step ?? null, event.payload ? JSON.stringify(event.payload) : null, at)
}

const record = (run: string) => (row: TimelineRow): RunEventRecord => timelineRecord(run, row.cursor, timestamp(row.at), {
  type: row.type as RunEvent['type'],
  ...(row.step !== null && { step: row.step }),
  ...(row.payload !== null && { payload: JSON.parse(row.payload) as Open }),
})
const after = (store: Store, { n, project }: RunRow, cursor: number, limit: number): TimelineRow[] =>
  store.all('SELECT cursor, type, step, payload, at FROM timeline WHERE run = ? AND cursor > ? AND project = ? ORDER BY cursor LIMIT ?', n, cursor, project, limit)

/**
 * Events of a run after a cursor. `last` is the cursor of the run's newest applied event, whether the timeline shows it or
 * not, and may lie beyond the last item: as long as `limit` items come back, ask again after the last of them.
 */
export function timeline(store: Store, project: number, input: ViewQuestions['timeline']['input'], oldest: number): ViewQuestions['timeline']['reply'] {
  const run = runRow(store, project, input.run_id)
  if (!run) return { items: [], last: 0, ended: false, oldest, exists: false }
  const rows = after(store, run, input.after, input.limit + 1)
  return {
    items: rows.slice(0, input.limit).map(record(input.run_id)), last: run.last, oldest, exists: true,
    ended: rows.length <= input.limit && terminal.has(run.record.status),
  }
}

/** The timeline as a page of JSON. */
export function eventPage(store: Store, project: number, input: { readonly id: string; readonly after_sequence?: number; readonly limit?: number }): { items: RunEventRecord[]; next_sequence?: number; has_more: boolean } | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  const limit = limitOf(input.limit === undefined ? {} : { limit: input.limit })
  const rows = after(store, run, input.after_sequence ?? 0, limit + 1)
  const items = rows.slice(0, limit).map(record(input.id))
  const last = items.at(-1)
  return { items, ...(last && { next_sequence: last.sequence }), has_more: rows.length > limit }
}
