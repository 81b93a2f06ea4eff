/**
 * Defines the filters of lists of runs as the view receives them, and the columns, indexes and SQL
 * conditions for them.
 */
import { parseTimestamp } from '../../../protocol/common.ts'
import { type Condition, type Many, valuesOf } from '../../conditions.ts'
import type { Paging } from '../../page.ts'

/** Filters of the list. All must match. Times are RFC 3339. */
export interface RunFilters {
  readonly status?: Many
  readonly workflow_type?: string
  readonly queue?: string
  readonly parent_run_id?: string
  readonly initiated_by?: string
  readonly external_id?: string
  readonly definition_id?: string
  readonly loop_id?: string
  readonly source_event_id?: string
  readonly q?: string
  readonly created_after?: string
  readonly created_before?: string
  readonly ended_after?: string
  readonly ended_before?: string
  readonly failed_step?: string
  readonly waiting_on?: readonly string[]
}
/** The filters, the order and the page of a list. */
export interface RunQuestion extends RunFilters, Paging {
  readonly sort?: 'created' | 'ended'
  readonly order?: 'asc' | 'desc'
}
// The filters that require one value in an indexed column, from the most to the least selective. If
// `byStatus` is true, the index is read once for each requested status, or for every status if none
// is requested.
export const equalities = [
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
 * Returns the SQL condition for one of the `equalities`. An empty queue matches no run, although
 * runs of loops are stored with it: they have no queue.
 */
export const equalityOf = (
  { name, column }: (typeof equalities)[number],
  input: RunFilters,
): Condition => [`${column} = ?`, name === 'queue' ? input.queue || null : (input[name] ?? null)]

/** Returns the requested statuses; undefined if the filters specify none. */
export const statusesOf = ({ status }: RunFilters): readonly string[] | undefined =>
  status === undefined ? undefined : valuesOf(status)

/** The rows of one index that fulfil conditions. */
export interface Scan {
  readonly index: string
  readonly conditions: readonly Condition[]
}

/**
 * Returns the SQL conditions for the requested range of creation or end times, each with its bound
 * in Unix milliseconds.
 */
export function rangesOf(input: RunFilters, of: 'created' | 'ended'): readonly Condition[] {
  const column = `${of}_at`
  const bounds = [
    [`${column} >= ?`, input[`${of}_after`]],
    [`${column} < ?`, input[`${of}_before`]],
  ] as const
  return bounds.flatMap(([sql, text]): Condition[] =>
    text === undefined ? [] : [[sql, parseTimestamp(text) ?? Number.NaN]],
  )
}
