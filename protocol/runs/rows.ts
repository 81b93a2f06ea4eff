/**
 * The rows for starting, reading, controlling and following runs. The bodies of commands are in
 * `requests.ts`, the records in `schema.ts`, and the events in `events.ts`.
 */

import { Type } from 'typebox'
import { onlyIncluding } from '../additions.ts'
import { bodyKey, Closed, cutting, listOf, pageOf, paging, runPageOf } from '../common.ts'
import { command, query, stream } from '../contract.ts'
import { logRows } from '../jobs/logs.ts'
import { ActionLogEntry, Job, jobAdditions } from '../jobs/rows.ts'
import { LoopRun } from '../loops/run.ts'
import { BulkByFilter, BulkByFilterResult, checkBulkByFilter } from './bulk.ts'
import { RunCount, runFilters, runOrder } from './filters.ts'
import { checkRecovery } from './recovery.ts'
import {
  BulkRunRequest,
  checkSignal,
  checkStart,
  Reason,
  Recover,
  Retry,
  Signal,
  StartRun,
} from './requests.ts'
import {
  LoopRunDetail,
  ProjectRunEvent,
  Run,
  RunEventPage,
  RunStep,
  runAdditions,
  runDetailAdditions,
  stepAdditions,
  WorkflowRun,
  WorkflowRunDetail,
} from './schema.ts'

export const BulkRunResult = Type.Object({
  results: Type.Array(
    Type.Object({
      run_id: Type.String(),
      ok: Type.Boolean(),
      status: Type.Optional(Type.String()),
      error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    }),
  ),
})
const After = Closed({
  after_sequence: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
})
const self = { kind: 'run', slot: 'id', prefix: 'run' } as const
const P = '/projects/:project/runs'
const tag = 'runs'

/** The common properties of the two rows that continue a failed run. */
const recovering = {
  check: checkRecovery,
  bodyOptional: true,
  ...onlyIncluding(runAdditions),
  reply: Run,
  status: 202,
  errors: [
    'not_found',
    'run_not_failed',
    'run_version_superseded',
    'limit_not_raised',
    'budget_exhausted',
  ],
} as const

export const runs = {
  'run.start': command(`POST ${P}`, {
    summary: 'Start a run of a workflow or of an inline spec',
    cliExample: '--definition-id my-workflow --input \'{"order":17}\'',
    keyScope: 'run',
    tag,
    permission: 'runs.operate',
    to: { kind: 'run', mint: 'run' },
    body: StartRun,
    check: checkStart,
    key: bodyKey,
    ...onlyIncluding(runAdditions),
    reply: WorkflowRun,
    status: 202,
    limit: 1_048_576,
    errors: ['not_found', 'idempotency_key_conflict'],
  }),
  'run.list': query(`GET ${P}`, {
    summary: 'List runs, newest first',
    cliExample: '--status running,suspended --limit 50',
    tag,
    permission: 'project.view',
    query: Closed({ ...runFilters, ...runOrder, ...paging, include: runAdditions.include }),
    additions: runAdditions.additions,
    reply: runPageOf(Run),
  }),
  'run.count': query(`GET ${P}/count`, {
    summary: 'Number of runs that match the filters, counted up to 10,000',
    cliExample: '--status failed --created-after 2031-02-03T00:00:00Z',
    tag,
    permission: 'project.view',
    query: Closed(runFilters),
    reply: RunCount,
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
  'run.bulk': command(`POST ${P}/bulk`, {
    summary: 'Cancel, retry or resume the runs that match a filter, 200 at a time',
    cliExample: '--action retry --filter \'{"definition_id":"wfd_…"}\' --preview',
    tag,
    permission: 'runs.operate',
    relays: ['run.cancel', 'run.retry', 'run.resume'],
    body: BulkByFilter,
    check: checkBulkByFilter,
    reply: BulkByFilterResult,
  }),
  'run.get': query(`GET ${P}/:id`, {
    summary: 'One run, with its spec and its waits',
    locateBy: 'run',
    tag,
    permission: 'project.view',
    ...onlyIncluding(runDetailAdditions),
    reply: Type.Union([WorkflowRunDetail, LoopRunDetail]),
    errors: ['not_found'],
  }),
  'run.action_log': query(`GET ${P}/:id/action-log`, {
    summary: 'Calls of actions of a run, oldest first',
    locateBy: 'run',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(ActionLogEntry),
    errors: ['not_found'],
  }),
  'run.jobs': query(`GET ${P}/:id/jobs`, {
    summary: 'Jobs of a run, oldest first',
    locateBy: 'run',
    viewer: true,
    tag,
    permission: 'project.view',
    query: Closed({ ...paging, include: jobAdditions.include }),
    additions: jobAdditions.additions,
    reply: pageOf(Job),
    errors: ['not_found'],
  }),
  'run.steps': query('GET /runs/:id/steps', {
    summary: 'State of the steps of a run',
    locateBy: 'run',
    tag,
    permission: 'project.view',
    query: Closed({ ...cutting, include: stepAdditions.include }),
    additions: stepAdditions.additions,
    reply: listOf(RunStep),
    errors: ['not_found'],
  }),
  'run.events': stream('GET /runs/:id/events', {
    summary: 'The timeline of a run: a page of JSON, or a stream until the run ends',
    locateBy: 'run',
    answeredBy: 'view',
    tag,
    permission: 'project.view',
    stream: 'accept',
    query: After,
    reply: RunEventPage,
    errors: ['not_found'],
  }),
  ...logRows,
  // Requests to cancel, resume or retry have no idempotency key in the body, so only the header
  // identifies a repeat.
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
    summary: 'Resume a suspended run now, regardless of what it waits for',
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
    cliExample: '<id> --name approved --payload \'{"by":"ann"}\'',
    tag,
    permission: 'runs.operate',
    to: self,
    body: Signal,
    check: checkSignal,
    key: bodyKey,
    ...onlyIncluding(runAdditions),
    reply: Type.Union([Type.Object({ source_event_id: Type.String() }), WorkflowRun, LoopRun]),
    status: 202,
    alsoStatus: [200],
    errors: ['not_found', 'conflict'],
  }),

  // Variants of the operations above, for existing clients.
  'run.cancel_with_run': command(`POST ${P}/:id/cancel`, {
    summary: 'Request the cancellation of a run; returns the run',
    tag: 'compat',
    alias: 'run.cancel',
    as: 'run.cancel',
    permission: 'runs.operate',
    to: self,
    body: Reason,
    bodyOptional: true,
    ...onlyIncluding(runAdditions),
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
    ...recovering,
  }),
  'run.retry': command(`POST ${P}/:id/retry`, {
    summary: 'Retry one failed run in place',
    tag: 'compat',
    alias: 'run.retry_many',
    permission: 'runs.operate',
    to: self,
    body: Retry,
    ...recovering,
  }),
  'run.project_steps': query(`GET ${P}/:id/steps`, {
    summary: 'Steps of a run',
    tag: 'compat',
    alias: 'run.steps',
    as: 'run.steps',
    permission: 'project.view',
    query: Closed({ ...cutting, include: stepAdditions.include }),
    additions: stepAdditions.additions,
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
