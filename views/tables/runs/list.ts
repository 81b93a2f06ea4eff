/**
 * Lists and counts runs. This file chooses the index for every combination of filters, instead of
 * leaving the choice to SQLite. Filters that no index supports are applied in `search.ts`.
 */

import { parseTimestamp } from '../../../protocol/common.ts'
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { shownRun } from '../../../protocol/loops/record.ts'
import { runStatuses } from '../../../protocol/loops/run.ts'
import { COUNT_LIMIT, type RunCount } from '../../../protocol/runs/filters.ts'
import type { Run, WorkflowRun } from '../../../protocol/runs/schema.ts'
import { allOf, isOneOf } from '../../conditions.ts'
import type { InParts } from '../../define-view.ts'
import {
  type Direction,
  type Page,
  type PageStatement,
  type Paging,
  planPage,
  readMergedPage,
} from '../../page.ts'
import type { Store } from '../../store.ts'
import { findWorkflow, missingWorkflow } from '../workflows/workflows.ts'
import {
  equalities,
  equalityOf,
  type RunFilters,
  type RunQuestion,
  rangesOf,
  type Scan,
  statusesOf,
} from './filters.ts'
import { type PackedRun, RUN_COLUMNS, recordOf } from './run-row.ts'
import { countFound, isSearch, searchRuns } from './search.ts'

function timeFaults(input: RunFilters): Refusal | undefined {
  const names = ['created_after', 'created_before', 'ended_after', 'ended_before'] as const
  const faults = names.filter(
    (name) => input[name] !== undefined && parseTimestamp(input[name]) === undefined,
  )
  return faults.length === 0
    ? undefined
    : refuseFields(
        ...faults.map((field) => ({
          field,
          message: 'must be a date and time with an offset, such as 2031-02-03T04:05:06Z',
        })),
      )
}

/**
 * Returns the index scans whose rows match the filters. The filters must not need a search
 * (`isSearch`).
 */
function scansOf(project: number, input: RunFilters): readonly Scan[] {
  const wanted = statusesOf(input)
  const given = equalities.filter(({ name }) => input[name] !== undefined)
  const first = given[0]
  const byStatus = first ? first.byStatus : wanted !== undefined
  const index = first?.index ?? (wanted ? 'runs_status' : 'runs_new')
  const scan = (statuses: readonly string[] | undefined): Scan => ({
    index,
    conditions: [
      ['project = ?', project],
      ...given.map((one) => equalityOf(one, input)),
      ...(statuses ? [isOneOf('status', statuses)] : []),
      ...rangesOf(input, 'created'),
    ],
  })
  return byStatus ? (wanted ?? runStatuses).map((status) => scan([status])) : [scan(wanted)]
}

/**
 * Returns the SQL statements whose merged rows contain a page of a list. Each statement scans one
 * index, in the order of the list.
 */
export const planRuns = (project: number, input: RunQuestion): PageStatement[] =>
  scansOf(project, input).map(({ index, conditions }) =>
    planPage(
      {
        select: `SELECT ${RUN_COLUMNS} FROM runs INDEXED BY ${index}`,
        conditions,
        order: ['created_at', 'id'],
        direction: directionOf(input),
      },
      input,
    ),
  )
const directionOf = ({ order }: RunQuestion): Direction => (order === 'asc' ? 'ASC' : 'DESC')

const indexedList = (store: Store, project: number, input: RunQuestion): Page<Run> =>
  readMergedPage<PackedRun, Run>(
    store,
    planRuns(project, input),
    input,
    (row) => shownRun(recordOf(store, row)),
    directionOf(input),
  )

/**
 * Returns runs of the project: runs of workflows and of loops, each kind with its own record.
 * Filters by fields that runs of loops lack (queue, type, initiator, external id, definition)
 * exclude those runs. A page of a search may have fewer runs than requested, although more follow.
 * A filter with an invalid time is refused.
 * @param now the time of the query, in Unix milliseconds.
 */
export function runList(
  store: Store,
  project: number,
  now: number,
  input: RunQuestion,
): Page<Run> | Refusal | InParts<Page<Run>> {
  return (
    timeFaults(input) ??
    (isSearch(input) ? searchRuns(store, project, now, input) : indexedList(store, project, input))
  )
}

/**
 * Returns the number of runs that match the filters, up to `COUNT_LIMIT`. A filter with an invalid
 * time is refused.
 */
export function runCount(
  store: Store,
  project: number,
  now: number,
  input: RunFilters,
): RunCount | Refusal | InParts<RunCount> {
  const refused = timeFaults(input)
  if (refused) return refused
  if (isSearch(input)) return countFound(store, project, now, input)
  let count = 0
  for (const { index, conditions } of scansOf(project, input)) {
    if (count > COUNT_LIMIT) break
    const { sql, values } = allOf(conditions)
    count +=
      store.one<{ n: number }>(
        `SELECT count(*) AS n
         FROM (SELECT 1 FROM runs INDEXED BY ${index} WHERE ${sql} LIMIT ?)`,
        ...values,
        COUNT_LIMIT + 1,
      )?.n ?? 0
  }
  return { count: Math.min(count, COUNT_LIMIT), more: count > COUNT_LIMIT }
}

/**
 * Returns the runs of a workflow, of every version and status, or `not_found` if the project has no
 * such workflow.
 */
export function workflowRuns(
  store: Store,
  project: number,
  input: Paging & { readonly id: string },
): Page<WorkflowRun> | Refusal {
  const workflow = findWorkflow(store, project, input.id)
  if (!workflow) return missingWorkflow
  const { id: _, ...paging } = input
  const question = { ...paging, definition_id: workflow.id }
  return indexedList(store, project, question) as Page<WorkflowRun>
}
