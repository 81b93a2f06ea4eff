/** The filters and the sort order of lists of runs. A run must match all given filters. */
import { type Static, Type } from 'typebox'
import { Timestamp, valuesOf } from '../common.ts'
import { runStatuses } from '../loops/run.ts'
import { WaitingOn } from './waiting.ts'

export const runFilters = {
  status: Type.Optional(valuesOf(Type.Enum([...runStatuses]))),
  workflow_type: Type.Optional(Type.String()),
  queue: Type.Optional(Type.String()),
  parent_run_id: Type.Optional(Type.String()),
  initiated_by: Type.Optional(Type.String()),
  external_id: Type.Optional(Type.String()),
  loop_id: Type.Optional(Type.String()),
  source_event_id: Type.Optional(Type.String()),
  definition_id: Type.Optional(Type.String({ description: 'Id of a workflow' })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Text that occurs in the id, external id, name or error of the run, in the name or ' +
        'handle of its workflow, or in the name of its loop; the case of ASCII letters is ignored',
    }),
  ),
  created_after: Type.Optional(Timestamp),
  created_before: Type.Optional(Timestamp),
  ended_after: Type.Optional(Timestamp),
  ended_before: Type.Optional(Timestamp),
  failed_step: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Key of a step that has failed' }),
  ),
  waiting_on: Type.Optional(valuesOf(WaitingOn.properties.kind)),
}

export const runOrder = {
  sort: Type.Optional(
    Type.Enum(['created', 'ended'], {
      description:
        'Sort by time of creation (the default) or by time of end, which lists only ended runs',
    }),
  ),
  order: Type.Optional(
    Type.Enum(['asc', 'desc'], { description: 'Newest first (desc) by default' }),
  ),
}

/** Maximum number of runs that are counted. */
export const COUNT_LIMIT = 10_000
export const RunCount = Type.Object({
  count: Type.Integer({ maximum: COUNT_LIMIT }),
  more: Type.Boolean({ description: 'Whether more runs match, or may match, than were counted' }),
})
export type RunCount = Static<typeof RunCount>
