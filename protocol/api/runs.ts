/** Runs: starting, reading, controlling and following them. */
import { Type, type Static } from 'typebox'
import {
  Closed,
  Id,
  bodyKey,
  Open,
  Timestamp,
  cutting,
  listOf,
  many,
  pageOf,
  paging,
  runPageOf,
} from '../common.ts'
import { command, query, stream } from '../contract.ts'
import { checkSpec, Spec } from '../spec.ts'
import type { Event } from '../entry.ts'
import { checkBudget } from '../loop/credits.ts'
import type { RunRecord } from '../loop/record.ts'
import { LoopRun, runStatuses } from '../loop/run.ts'
import type { Patch } from '../patch.ts'
import { ActionLogEntry, Job } from './jobs.ts'
import { WaitingOn } from './waiting.ts'

/** Statuses that never change again, unless a failed run is retried. */
export const terminal: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

/** A run of a workflow. `name` and `description` are ours, like those of loops' runs. */
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
  name: Type.Optional(Type.String({ description: 'By run_name of the workflow' })),
  description: Type.Optional(Type.String()),
  initiated_by: Type.Optional(Type.String()),
  input: Type.Optional(Open),
  result: Type.Optional(Open),
  error_message: Type.Optional(Type.String()),
  error_type: Type.Optional(Type.String()),
  created_at: Timestamp,
  started_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
  updated_at: Timestamp,
})
export type WorkflowRun = Static<typeof WorkflowRun>
/** A run in the shape of its origin. */
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
        waiting_on: Type.Optional(WaitingOn),
      }),
    ),
  ),
})
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
/** A step. `waiting_on` is ours, and told of workflows' runs only: clients that know loops take no other members than the contract's. */
export const RunStep = Type.Object({
  id: Type.String({ description: '<run_id>:<step_key>' }),
  run_id: Type.String(),
  step_key: Type.String(),
  step_name: Type.Optional(Type.String()),
  kind: Type.String(),
  status: Type.Enum([...stepStatuses]),
  seq: Type.Integer(),
  attempt: Type.Integer(),
  inputs: Type.Optional(Open),
  parameters: Type.Optional(Open),
  result: Type.Optional(Type.Unknown()),
  job_id: Type.Optional(Type.String()),
  wait_id: Type.Optional(Type.String()),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  waiting_on: Type.Optional(WaitingOn),
  session_id: Type.Optional(Type.String({ description: 'Where an agent works for the step' })),
  agent_id: Type.Optional(Type.String()),
  agent_turn_id: Type.Optional(Type.String({ description: 'The turn of the latest attempt' })),
  verdict: Type.Optional(Type.Enum(['pass', 'fail'], { description: 'Of a check' })),
  verdict_detail: Type.Optional(Open),
  created_at: Timestamp,
  updated_at: Timestamp,
  started_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
})
export type RunStep = Static<typeof RunStep>

export const RunEventRecord = Type.Object({
  id: Type.String({ description: '<run_id>:evt:<sequence>' }),
  run_id: Type.String(),
  sequence: Type.Integer({ description: 'The cursor: increasing, not gap-free' }),
  event_type: Type.String(),
  step_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  payload: Type.Optional(Open),
  created_at: Timestamp,
})
export type RunEventRecord = Static<typeof RunEventRecord>
const RunEventPage = Type.Object({
  items: Type.Array(RunEventRecord),
  next_sequence: Type.Optional(Type.Integer()),
  has_more: Type.Optional(Type.Boolean()),
})

/** A frame of the project-wide stream. */
export const ProjectRunEvent = Type.Object({
  type: Type.Enum(['run_updated', 'job_updated', 'action_appended']),
  run_id: Type.String(),
  seq: Type.Integer(),
  timestamp: Timestamp,
  data: Open,
})
export type ProjectRunEvent = Static<typeof ProjectRunEvent>

const start = {
  input: Type.Optional(Open),
  config: Type.Optional(Open),
  metadata: Type.Optional(Open),
  queue: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  workflow_type: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  external_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  parent_run_id: Type.Optional(Id),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'A second start with this key answers the same run while it is active, 409 afterwards',
    }),
  ),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1000,
      maximum: 1000,
      description: 'Jobs of a higher priority are handed out first; 0 by default',
    }),
  ),
  fairness_key: Type.Optional(
    Type.String({
      maxLength: 128,
      description: 'Keys share a queue equally; within a key, the oldest job first',
    }),
  ),
}
const StartRun = Closed({ definition_id: Type.Optional(Id), spec: Type.Optional(Spec), ...start })
export const StartWorkflowRun = Closed(start)

const BulkRunRequest = Closed({
  run_ids: Type.Array(Id, { minItems: 1, maxItems: 200 }),
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
})
const BulkRunResult = Type.Object({
  results: Type.Array(
    Type.Object({
      run_id: Type.String(),
      ok: Type.Boolean(),
      status: Type.Optional(Type.String()),
      error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    }),
  ),
})
const Reason = Closed({ reason: Type.Optional(Type.String({ maxLength: 1024 })) })
const Recover = Closed({
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  budget_usd: Type.Optional(Type.Number({ minimum: 0 })),
  credit_budget: Type.Optional(Type.Integer({ minimum: 1 })),
  max_agent_turns: Type.Optional(Type.Integer({ minimum: 1 })),
  wall_clock_extend_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
})
const Retry = Closed({
  ...Recover.properties,
  from_step: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description:
        'Key of a step that the run has reached: it and all later ones are taken again, earlier ones keep their outputs',
    }),
  ),
})
const checkRecover = (body: Static<typeof Recover>) => checkBudget(body)
const Signal = Closed({
  name: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' })),
  payload: Type.Optional(Open),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Of a named signal: one with this name and key counts once. A step is completed once anyway',
    }),
  ),
  step_key: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  result: Type.Optional(Open),
})
const checkSignal = ({ name, payload, step_key, result }: Static<typeof Signal>) => [
  ...((name === undefined) === (step_key === undefined)
    ? [{ field: 'name', message: 'give exactly one of name and step_key' }]
    : []),
  ...(name !== undefined && result !== undefined
    ? [{ field: 'result', message: 'goes with step_key; a named signal has a payload' }]
    : []),
  ...(step_key !== undefined && payload !== undefined
    ? [{ field: 'payload', message: 'goes with name; a step is completed with a result' }]
    : []),
]
const checkStart = (body: Static<typeof StartRun>) =>
  (body.definition_id === undefined) === (body.spec === undefined)
    ? [{ field: 'definition_id', message: 'give exactly one of definition_id and spec' }]
    : body.spec
      ? checkSpec(body.spec, 'spec')
      : []

/** Filters of run lists. */
const runFilters = {
  status: Type.Optional(many(Type.Enum([...runStatuses]))),
  workflow_type: Type.Optional(Type.String()),
  queue: Type.Optional(Type.String()),
  parent_run_id: Type.Optional(Type.String()),
  initiated_by: Type.Optional(Type.String()),
  external_id: Type.Optional(Type.String()),
  loop_id: Type.Optional(Type.String()),
  source_event_id: Type.Optional(Type.String()),
  ...paging,
}
const After = Closed({
  after_sequence: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
})
const self = { kind: 'run', slot: 'id', prefix: 'run' } as const
const P = '/projects/:project/runs'
const tag = 'runs'

export const runs = {
  'run.start': command(`POST ${P}`, {
    summary: 'Start a run of a workflow or of an inline spec',
    tag,
    permission: 'runs.operate',
    to: { kind: 'run', mint: 'run' },
    body: StartRun,
    check: checkStart,
    key: bodyKey,
    reply: WorkflowRun,
    status: 202,
    limit: 1_048_576,
    errors: ['not_found', 'idempotency_key_conflict'],
  }),
  'run.list': query(`GET ${P}`, {
    summary: 'List runs, newest first',
    tag,
    permission: 'project.view',
    query: Closed(runFilters),
    reply: runPageOf(Run),
  }),
  'run.feed': stream(`GET ${P}/events`, {
    summary: 'Follow every run of the project',
    tag,
    permission: 'project.view',
    stream: 'sse',
    query: Closed({ since: Type.Optional(Type.Integer({ minimum: 0 })) }),
    reply: ProjectRunEvent,
  }),
  'run.cancel_many': command(`POST ${P}/cancellations`, {
    summary: 'Cancel several runs',
    tag,
    permission: 'runs.operate',
    each: { over: 'run_ids', command: 'run.cancel', prefix: 'run' },
    body: BulkRunRequest,
    reply: BulkRunResult,
  }),
  'run.retry_many': command(`POST ${P}/retries`, {
    summary: 'Retry several failed runs',
    tag,
    permission: 'runs.operate',
    each: { over: 'run_ids', command: 'run.retry', prefix: 'run' },
    body: BulkRunRequest,
    reply: BulkRunResult,
  }),
  'run.get': query(`GET ${P}/:id`, {
    summary: 'One run, with its spec and what it waits for',
    tag,
    permission: 'project.view',
    reply: Type.Union([WorkflowRunDetail, LoopRun]),
    errors: ['not_found'],
  }),
  'run.action_log': query(`GET ${P}/:id/action-log`, {
    summary: 'Calls of actions of a run, oldest first',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(ActionLogEntry),
    errors: ['not_found'],
  }),
  'run.jobs': query(`GET ${P}/:id/jobs`, {
    summary: 'Jobs of a run, oldest first',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(Job),
    errors: ['not_found'],
  }),
  'run.steps': query('GET /runs/:id/steps', {
    summary: 'Structured state of the steps of a run',
    tag,
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(RunStep),
    errors: ['not_found'],
  }),
  'run.events': stream('GET /runs/:id/events', {
    summary: 'The timeline of a run: a page of JSON, or a stream until the run ends',
    tag,
    permission: 'project.view',
    stream: 'accept',
    query: After,
    reply: RunEventPage,
    errors: ['not_found'],
  }),
  // Cancelling, resuming and retrying have no key in their bodies: by the header alone a repeat of them is told.
  'run.cancel': command(`POST ${P}/:id/cancellations`, {
    summary: 'Request cancellation',
    tag,
    permission: 'runs.operate',
    to: self,
    body: Reason,
    bodyOptional: true,
    reply: Run,
    status: 204,
    errors: ['not_found'],
  }),
  'run.resume': command(`POST ${P}/:id/resumptions`, {
    summary: 'Resume a suspended run now, whatever it waits for',
    tag,
    permission: 'runs.operate',
    to: self,
    body: Reason,
    bodyOptional: true,
    reply: Run,
    status: 204,
    errors: ['not_found', 'run_not_suspended'],
  }),
  'run.signal': command(`POST ${P}/:id/signals`, {
    summary: 'Send a named signal, or complete a suspended step',
    tag,
    permission: 'runs.operate',
    to: self,
    body: Signal,
    check: checkSignal,
    key: bodyKey,
    reply: Type.Union([Type.Object({ source_event_id: Type.String() }), WorkflowRun, LoopRun]),
    status: 202,
    alsoStatus: [200],
    errors: ['not_found', 'conflict'],
  }),

  // Forms that newer clients use for the same things.
  'run.cancel_with_run': command(`POST ${P}/:id/cancel`, {
    summary: 'Request cancellation, answering the run',
    tag: 'compat',
    alias: 'run.cancel',
    as: 'run.cancel',
    permission: 'runs.operate',
    to: self,
    body: Reason,
    bodyOptional: true,
    reply: Run,
    errors: ['not_found'],
  }),
  'run.recover': command(`POST ${P}/:id/resume`, {
    summary: 'Resume a failed or suspended run in place',
    tag: 'compat',
    alias: 'run.resume',
    permission: 'runs.operate',
    to: self,
    body: Recover,
    check: checkRecover,
    bodyOptional: true,
    reply: Run,
    status: 202,
    errors: ['not_found', 'run_not_failed', 'run_version_superseded', 'limit_not_raised'],
  }),
  'run.retry': command(`POST ${P}/:id/retry`, {
    summary: 'Retry one failed run in place',
    tag: 'compat',
    alias: 'run.retry_many',
    permission: 'runs.operate',
    to: self,
    body: Retry,
    check: checkRecover,
    bodyOptional: true,
    reply: Run,
    status: 202,
    errors: ['not_found', 'run_not_failed', 'run_version_superseded', 'limit_not_raised'],
  }),
  'run.project_steps': query(`GET ${P}/:id/steps`, {
    summary: 'Steps of a run',
    tag: 'compat',
    alias: 'run.steps',
    as: 'run.steps',
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(RunStep),
    errors: ['not_found'],
  }),
  'run.project_events': stream(`GET ${P}/:id/events`, {
    summary: 'The timeline of a run',
    tag: 'compat',
    alias: 'run.events',
    as: 'run.events',
    permission: 'project.view',
    stream: 'accept',
    query: After,
    reply: RunEventPage,
    errors: ['not_found'],
  }),
  'run.events_stream': stream(`GET ${P}/:id/events.stream`, {
    summary: 'The timeline of a run, always as a stream',
    tag: 'compat',
    alias: 'run.events',
    as: 'run.events',
    permission: 'project.view',
    stream: 'sse',
    query: After,
    reply: RunEventPage,
    errors: ['not_found'],
  }),
} as const

/** Event types that belong to the timeline of a run; the others are its private bookkeeping. */
export const timelineTypes: ReadonlySet<string> = new Set([
  'run.started',
  'run.suspended',
  'run.resumed',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'step.started',
  'step.suspended',
  'step.resumed',
  'step.completed',
  'step.failed',
  'step.retried',
  'step.skipped',
  'wait.opened',
  'wait.resumed',
  'wait.timed_out',
  'action.called',
  'action.completed',
  'action.failed',
  'action.retried',
  'limit.reached',
  'interaction.requested',
  'interaction.responded',
  'check.passed',
  'check.failed',
  'branch.completed',
  'branch.failed',
  'usage.recorded',
  'run.budget_exceeded',
  'loop.auto_paused',
  'turn.opened',
  'run.progress_stalled',
])

/**
 * An event of a run. `payload` is what the timeline shows. `run` and `row` are the fields of the run record and of the
 * step's record that it sets (null removes one): the actor and the views apply the same patch, so no rule exists twice.
 */
export interface RunEvent extends Event {
  readonly type: RunEventType
  readonly step?: string
  readonly payload?: Open
  readonly run?: Patch<RunRecord>
  readonly row?: Patch<RunStep>
  /** run.created only: what the run executes. */
  readonly spec?: Spec
  /** Private data of the engine; never shown. */
  readonly private?: Open
}
export type RunEventType =
  | 'run.created'
  | 'run.started'
  | 'run.suspended'
  | 'run.resumed'
  | 'run.completed'
  | 'run.failed'
  | 'run.cancelled'
  | 'run.cancel_requested'
  | 'step.started'
  | 'step.suspended'
  | 'step.resumed'
  | 'step.completed'
  | 'step.failed'
  | 'step.retried'
  | 'step.skipped'
  | 'step.cancelled'
  | 'wait.opened'
  | 'wait.resumed'
  | 'wait.timed_out'
  | 'wait.closed'
  | 'action.called'
  | 'action.completed'
  | 'action.failed'
  | 'action.retried'
  | 'signal.stored'
  | 'limit.reached'
  | 'interaction.requested'
  | 'interaction.responded'
  | 'interaction.settled'
  | 'check.passed'
  | 'check.failed'
  | 'wait.asked'
  | 'event.delivered'
  | 'cleanup.begun'
  | 'run.paused'
  | 'run.held'
  | 'usage.recorded'
  | 'run.budget_exceeded'
  | 'loop.auto_paused'
  | 'loop.asked'
  | 'branches.begun'
  | 'branch.started'
  | 'branch.completed'
  | 'branch.failed'
  | 'branch.cancelled'
  | 'turn.asked'
  | 'turn.opened'
  | 'turn.stopped'
  | 'run.progress_stalled'

/** How an event changes what its run waits for from outside; undefined: not at all. An event that ends a run ends all its waits. */
export function waitChange({ type, payload = {} }: RunEvent):
  | {
      readonly opens: {
        readonly wait_id: string
        readonly event_type: string
        readonly source_id?: string
      }
    }
  | { readonly closes: string }
  | undefined {
  const { wait_id, wait_kind, event_type, source_id } = payload
  if (wait_kind !== 'event' || typeof wait_id !== 'string') return undefined
  if (type === 'wait.opened')
    return {
      opens: {
        wait_id,
        event_type: String(event_type),
        ...(typeof source_id === 'string' && { source_id }),
      },
    }
  return type === 'wait.resumed' ||
    type === 'wait.timed_out' ||
    type === 'wait.closed' ||
    type === 'step.cancelled'
    ? { closes: wait_id }
    : undefined
}

/** The timeline record of an event, as every client sees it. @param cursor of the event. @param created_at of its entry. */
export function timelineRecord(
  runId: string,
  cursor: number,
  created_at: string,
  event: RunEvent,
): RunEventRecord {
  return {
    id: `${runId}:evt:${cursor}`,
    run_id: runId,
    sequence: cursor,
    event_type: event.type,
    ...(event.step !== undefined && { step_id: `${runId}:${event.step}`, step_key: event.step }),
    ...(event.payload && { payload: event.payload }),
    created_at,
  }
}
