/**
 * Lists of runs, newest first. This file chooses the index for every combination of filters,
 * instead of leaving the choice to SQLite.
 */

import type { Refusal } from '../../../protocol/errors.ts'
import { type RunRecord, shownRun } from '../../../protocol/loops/record.ts'
import { runStatuses } from '../../../protocol/loops/run.ts'
import type { Run, WorkflowRun } from '../../../protocol/runs/schema.ts'
import { beyond, limitOf, type Page, type Paging, page } from '../../page.ts'
import type { Store, Value } from '../../store.ts'
import { findWorkflow, missingWorkflow } from '../workflows/workflows.ts'

/** Filters of the list; all must match. */
export interface RunFilters extends Paging {
  readonly status?: string | readonly string[]
  readonly workflow_type?: string
  readonly queue?: string
  readonly parent_run_id?: string
  readonly initiated_by?: string
  readonly external_id?: string
  readonly definition_id?: string
  readonly loop_id?: string
  readonly source_event_id?: string
}
interface ListRow {
  readonly id: string
  readonly created_at: number
  readonly record: string
}

// Ordered from the most to the least selective. If `byStatus` is true, the index is read once for
// each requested status, or for every status if none is requested.
const filters = [
  { name: 'source_event_id', column: 'source_event', index: 'runs_source', byStatus: false },
  { name: 'external_id', column: 'external_id', index: 'runs_external', byStatus: false },
  { name: 'parent_run_id', column: 'parent', index: 'runs_parent', byStatus: false },
  { name: 'loop_id', column: 'loop', index: 'runs_loop', byStatus: false },
  { name: 'definition_id', column: 'definition_id', index: 'runs_definition', byStatus: false },
  { name: 'workflow_type', column: 'workflow_type', index: 'runs_type', byStatus: true },
  { name: 'queue', column: 'queue', index: 'runs_queue', byStatus: true },
  { name: 'initiated_by', column: 'initiated_by', index: 'runs_initiator', byStatus: false },
] as const

/**
 * Returns the SQL statements whose merged rows contain a page of a list. Each statement scans one
 * index, in the order of the list.
 */
export function planRuns(project: number, input: RunFilters): { sql: string; values: Value[] }[] {
  const wanted =
    input.status === undefined
      ? undefined
      : typeof input.status === 'string'
        ? [input.status]
        : [...new Set(input.status)]
  const given = filters.filter(({ name }) => input[name] !== undefined)
  const first = given[0]
  const byStatus = first ? first.byStatus : wanted !== undefined
  const index = first?.index ?? (wanted ? 'runs_status' : 'runs_new')
  const after = beyond(['created_at', 'id'], 'DESC', input.after)
  const equal = given.map(({ column }) => ` AND ${column} = ?`).join('')
  const values = given.map(({ name }) => input[name] as string)
  const statement = (statuses: readonly string[] | undefined) => ({
    sql:
      `SELECT id, created_at, record FROM runs INDEXED BY ${index} WHERE project = ?${equal}` +
      (statuses
        ? ` AND status ${statuses.length === 1 ? '= ?' : `IN (${statuses.map(() => '?').join(', ')})`}`
        : '') +
      `${after.sql} ORDER BY created_at DESC, id DESC LIMIT ?`,
    values: [project, ...values, ...(statuses ?? []), ...after.values, limitOf(input) + 1],
  })
  return byStatus
    ? (wanted ?? runStatuses).map((status) => statement([status]))
    : [statement(wanted)]
}

const newest = (a: ListRow, b: ListRow) =>
  b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/**
 * Returns runs of the project: runs of workflows and of loops, each kind with its own record.
 * Filters by fields that runs of loops lack (queue, type, initiator, external id, definition)
 * exclude those runs.
 */
export function runList(store: Store, project: number, input: RunFilters): Page<Run> {
  const lists = planRuns(project, input).map(({ sql, values }) =>
    store.upToPage<ListRow>(sql, ...values),
  )
  const rows = lists.length === 1 ? (lists[0] ?? []) : lists.flat().sort(newest)
  return page(
    rows,
    input,
    (row) => shownRun(JSON.parse(row.record) as RunRecord),
    (row) => [row.created_at, row.id],
  )
}

/** Returns the runs of a workflow, of every version and status. */
export function workflowRuns(
  store: Store,
  project: number,
  input: Paging & { readonly id: string },
): Page<WorkflowRun> | Refusal {
  const workflow = findWorkflow(store, project, input.id)
  if (!workflow) return missingWorkflow
  const { id: _, ...paging } = input
  return runList(store, project, { ...paging, definition_id: workflow.id }) as Page<WorkflowRun>
}
