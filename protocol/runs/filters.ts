/** The filters and the order of lists of runs. All given filters must match. */
import { type Static, Type } from 'typebox'
import { many, Timestamp } from '../common.ts'
import { runStatuses } from '../loops/run.ts'
import { WaitingOn } from './waiting.ts'

export const runFilters = {
  status: Type.Optional(many(Type.Enum([...runStatuses]))),
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
        'Text in the id, external id or name of the run, the name or handle of its workflow or ' +
        'the name of its loop, or its error; the case of ASCII letters does not matter',
    }),
  ),
  created_after: Type.Optional(Timestamp),
  created_before: Type.Optional(Timestamp),
  ended_after: Type.Optional(Timestamp),
  ended_before: Type.Optional(Timestamp),
  failed_step: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Key of a step that has failed' }),
  ),
  waiting_on: Type.Optional(many(WaitingOn.properties.kind)),
}

export const runOrder = {
  sort: Type.Optional(
    Type.Enum(['created', 'ended'], {
      description: 'By creation, the default, or by end, which lists ended runs only',
    }),
  ),
  order: Type.Optional(
    Type.Enum(['asc', 'desc'], { description: 'Newest first (desc) by default' }),
  ),
}

/** Runs are counted up to this number. */
export const COUNT_LIMIT = 10_000
export const RunCount = Type.Object({
  count: Type.Integer({ maximum: COUNT_LIMIT }),
  more: Type.Boolean({ description: 'More runs match, or may match, than were counted' }),
})
export type RunCount = Static<typeof RunCount>
