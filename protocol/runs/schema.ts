/**
 * Schemas of runs of workflows and of loops, their steps and timelines, and the frames of a
 * project's run stream. The schema of a run of a loop is in `loops/run.ts`.
 */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { JsonObject, Timestamp } from '../common.ts'
import { LoopRun, runStatuses } from '../loops/run.ts'
import { Spec } from '../workflows/spec.ts'
import { WaitingOn } from './waiting.ts'

/**
 * The statuses in which a run has ended. Only a failed run can leave its status, by a retry or a
 * recovery.
 */
export const terminal: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

const isOfWorkflow = (run: Readonly<Record<string, unknown>>): boolean => 'definition_id' in run
const named = { name: { of: isOfWorkflow }, description: { of: isOfWorkflow } }
/**
 * The additions of runs in lists and in the replies of commands. For runs of workflows, name and
 * description are not part of the published record.
 */
export const runAdditions = additions(named)
/**
 * The additions of a single run. `spec` is an addition only for a run of a loop, because the
 * published record of a workflow run already contains it.
 */
export const runDetailAdditions = additions({
  ...named,
  waiting_on: {},
  spec: { of: (run) => !isOfWorkflow(run) },
})
/** The additions of a step. */
export const stepAdditions = additions({ waiting_on: {} })

export const WorkflowRun = Type.Object({
  id: Type.String(),
  status: Type.Enum([...runStatuses]),
  definition_id: Type.String({ description: 'Empty for a run of an inline spec' }),
  definition_version: Type.Integer({ description: '0 for a run of an inline spec' }),
  cancel_requested: Type.Boolean(),
  cancel_requested_at: Type.Optional(Timestamp),
  workflow_type: Type.Optional(Type.String()),
  queue: Type.String(),
  external_id: Type.Optional(Type.String()),
  parent_run_id: Type.Optional(Type.String()),
  name: Type.Optional(
    Type.String({ description: 'Name of the run, evaluated from run_name of the workflow' }),
  ),
  description: Type.Optional(Type.String()),
  initiated_by: Type.Optional(Type.String()),
  input: Type.Optional(JsonObject),
  result: Type.Optional(JsonObject),
  error_message: Type.Optional(Type.String()),
  error_type: Type.Optional(Type.String()),
  created_at: Timestamp,
  started_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
  updated_at: Timestamp,
})
export type WorkflowRun = Static<typeof WorkflowRun>
/** A run, either of a workflow or of a loop. */
export const Run = Type.Union([WorkflowRun, LoopRun])
export type Run = Static<typeof Run>
export const WorkflowRunDetail = Type.Object({
  ...WorkflowRun.properties,
  spec: Spec,
  step_counts: Type.Record(Type.String(), Type.Integer()),
  path_counts: Type.Optional(
    Type.Object({
      total: Type.Integer(),
      working: Type.Integer(),
      waiting: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer(),
    }),
  ),
  paths: Type.Optional(
    Type.Array(
      Type.Object({
        path_id: Type.String(),
        state: Type.String(),
        error_message: Type.Optional(Type.String()),
        waiting_on: Type.Optional(
          Type.Object({ kind: WaitingOn.properties.kind, reason: WaitingOn.properties.reason }),
        ),
      }),
    ),
  ),
  waiting_on: Type.Optional(WaitingOn),
})
/** A single run of a loop, with the spec that it executes and the reason why it is waiting. */
export const LoopRunDetail = Type.Object({
  ...LoopRun.properties,
  spec: Type.Optional(Spec),
  waiting_on: Type.Optional(WaitingOn),
})
export type LoopRunDetail = Static<typeof LoopRunDetail>
export type WorkflowRunDetail = Static<typeof WorkflowRunDetail>

const stepStatuses = [
  'pending',
  'running',
  'suspended',
  'completed',
  'failed',
  'skipped',
  'cancelled',
] as const
export const RunStep = Type.Object({
  id: Type.String({ description: '<run_id>:<step_key>' }),
  run_id: Type.String(),
  step_key: Type.String(),
  step_name: Type.Optional(Type.String()),
  kind: Type.String(),
  status: Type.Enum([...stepStatuses]),
  seq: Type.Integer(),
  attempt: Type.Integer(),
  inputs: Type.Optional(JsonObject),
  parameters: Type.Optional(JsonObject),
  result: Type.Optional(Type.Unknown()),
  job_id: Type.Optional(Type.String()),
  wait_id: Type.Optional(Type.String()),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  waiting_on: Type.Optional(WaitingOn),
  session_id: Type.Optional(
    Type.String({ description: 'Id of the session in which the agent works for the step' }),
  ),
  agent_id: Type.Optional(Type.String()),
  agent_turn_id: Type.Optional(
    Type.String({ description: 'Id of the turn of the latest attempt' }),
  ),
  verdict: Type.Optional(Type.Enum(['pass', 'fail'], { description: 'Result of a check step' })),
  verdict_detail: Type.Optional(JsonObject),
  created_at: Timestamp,
  updated_at: Timestamp,
  started_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
})
export type RunStep = Static<typeof RunStep>

export const RunEventRecord = Type.Object({
  id: Type.String({ description: '<run_id>:evt:<sequence>' }),
  run_id: Type.String(),
  sequence: Type.Integer({ description: 'Cursor of the event; it increases and may have gaps' }),
  event_type: Type.String(),
  step_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  payload: Type.Optional(JsonObject),
  created_at: Timestamp,
})
export type RunEventRecord = Static<typeof RunEventRecord>
export const RunEventPage = Type.Object({
  items: Type.Array(RunEventRecord),
  next_sequence: Type.Optional(Type.Integer()),
  has_more: Type.Optional(Type.Boolean()),
})

/** One frame of the event stream of a project. */
export const ProjectRunEvent = Type.Object({
  type: Type.Enum(['run_updated', 'job_updated', 'action_appended']),
  run_id: Type.String(),
  seq: Type.Integer(),
  timestamp: Timestamp,
  data: JsonObject,
})
export type ProjectRunEvent = Static<typeof ProjectRunEvent>
