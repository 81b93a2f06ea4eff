/** The log of a run's action calls: the action events of its timeline, as separate records. */

import { timestamp } from '../../../protocol/common.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import type { ActionLogEntry } from '../../../protocol/jobs/rows.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import { allOf } from '../../conditions.ts'
import {
  limitOf,
  MAX_PAGE_CHARACTERS,
  type Page,
  type Paging,
  page,
  positionCondition,
  sizeOf,
} from '../../page.ts'
import type { Store } from '../../store.ts'
import { missingRun, runRow } from '../runs/run-row.ts'
import { eventsOf, type Shown, type TimelineRow } from '../runs/timeline.ts'

const text = (value: unknown): value is string => typeof value === 'string'

/**
 * Returns the log entry of an action event; undefined for other events. `id` and `seq` are derived
 * from the event's cursor.
 */
export function actionEntry(run: string, row: Shown): ActionLogEntry | undefined {
  const status = row.type.slice('action.'.length)
  if (!row.type.startsWith('action.') || !isStatus(status)) return undefined
  const {
    action,
    step,
    job_id,
    attempt,
    parameters,
    result,
    error,
    error_type,
    worker_instance_id,
  } = row.payload ?? {}
  const step_key = row.step ?? step
  return {
    id: `${run}:act:${row.cursor}`,
    run_id: run,
    seq: row.cursor,
    ...(text(job_id) && { job_id }),
    ...(text(step_key) && { step_key }),
    action_name: text(action) ? action : '',
    status,
    attempt: typeof attempt === 'number' ? attempt : 1,
    ...(isJsonObject(parameters) && { parameters }),
    ...(isJsonObject(result) && { result }),
    ...(text(error_type) && { error_type }),
    ...(text(error) && { error_message: error }),
    ...(text(worker_instance_id) && { worker_instance_id }),
    created_at: timestamp(row.at),
  }
}
const isStatus = (status: string): status is ActionLogEntry['status'] =>
  status === 'called' || status === 'completed' || status === 'failed' || status === 'retried'

/**
 * Returns the action log of a run, oldest entry first, or `not_found` if the project has no such
 * run.
 */
export function actionLog(
  store: Store,
  project: number,
  input: Paging & { readonly id: string },
): Page<ActionLogEntry> | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  const [after] = positionCondition(['cursor'], 'ASC', input.after)
  const { sql, values } = allOf([
    ['run = ?', run.n],
    ['actions'],
    ['project = ?', project],
    ...(after ? [after] : []),
  ])
  // The limit is one higher than in other lists, because all calls in the first row may be at or
  // before the position. Each further row contains at least one call after the position.
  const rows = store.upToPage<TimelineRow>(
    `SELECT cursor, at, events FROM timeline WHERE ${sql} ORDER BY cursor LIMIT ?`,
    ...values,
    limitOf(input) + 2,
  )
  const calls = rows
    .flatMap((row) => eventsOf(store, input.id, row))
    .filter(({ cursor, type }) => cursor > Number(after?.[1] ?? 0) && type.startsWith('action.'))
  const item = (row: Shown) => actionEntry(input.id, row) as ActionLogEntry
  const last = calls.at(-1)
  // If the rows are long, `upToPage` may have stopped before it had read `limit` rows.
  if (
    rows.length > 1 &&
    rows.reduce((sum, row) => sum + sizeOf(row), 0) > MAX_PAGE_CHARACTERS &&
    last
  )
    return {
      items: calls.slice(0, limitOf(input)).map(item),
      position: [(calls[limitOf(input) - 1] ?? last).cursor],
    }
  return page(calls.slice(0, limitOf(input) + 1), input, item, (row) => [row.cursor])
}
