/**
 * Actions on all runs that match a filter. A request acts on one page of runs, oldest first, and
 * returns the cursor of the next page. The cursor also contains the time of the first request, so
 * runs that were created later are not affected.
 */
import { type Static, Type } from 'typebox'
import { Closed } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { RunCount, runFilters } from './filters.ts'
import { Run } from './schema.ts'

/**
 * Maximum number of runs on which one request acts (`runs`), and of runs in a preview (`preview`).
 */
export const bulkLimits = { runs: 200, preview: 20 } as const

/** The statuses of the runs on which each action can act, by action. */
const applicable = {
  cancel: ['queued', 'running', 'suspended'],
  retry: ['failed'],
  resume: ['suspended'],
} as const
export type BulkAction = keyof typeof applicable

export const BulkByFilter = Closed({
  action: Type.Enum(Object.keys(applicable) as BulkAction[]),
  filter: Closed(runFilters),
  preview: Type.Optional(
    Type.Boolean({
      description:
        'Return only the number of matching runs and the first 20 of them, without changing a run',
    }),
  ),
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  after: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1024, description: '`next` of the previous response' }),
  ),
})
export type BulkByFilter = Static<typeof BulkByFilter>
export const BulkByFilterResult = Type.Object({
  results: Type.Array(
    Type.Object({
      run_id: Type.String(),
      ok: Type.Boolean(),
      status: Type.Optional(Type.String()),
      error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    }),
  ),
  next: Type.Union([Type.String(), Type.Null()], {
    description: 'Value of `after` for the next request; null after the last run',
  }),
  preview: Type.Optional(Type.Object({ ...RunCount.properties, runs: Type.Array(Run) })),
})
export type BulkByFilterResult = Static<typeof BulkByFilterResult>

/** Returns the statuses of the runs on which a request acts; empty if it cannot act on any. */
export const bulkStatuses = ({ action, filter }: BulkByFilter) =>
  applicable[action].filter((status) => filter.status?.includes(status) ?? true)
/** Returns the faults that schemas cannot detect in a request. */
export const checkBulkByFilter = (body: BulkByFilter): FieldError[] =>
  bulkStatuses(body).length > 0
    ? []
    : [
        {
          field: 'filter.status',
          message: `${body.action} is not possible for runs with this status`,
          expected: applicable[body.action],
        },
      ]
