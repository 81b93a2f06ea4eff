/**
 * Records of action calls: one for each job that executes an action and was claimed at least once.
 * A record is written when its job ends, and never changes.
 */

import {
  deliveryIdOf,
  type Invocation,
  invocationIdOf,
} from '../../../protocol/actions/invocation.ts'
import type { Viewer } from '../../../protocol/channels/schema.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import type { Job, QueueEvent } from '../../../protocol/jobs/rows.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { equalityConditions } from '../../conditions.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Known, Packed } from '../../shapes.ts'
import type { Store } from '../../store.ts'
import { stepOf } from '../runs/steps.ts'
import { notInUnreadableSession, viewerValues } from '../sessions/visibility.ts'
import { definitionId } from './definitions.ts'

type Ended = Extract<QueueEvent, { type: 'job.completed' | 'job.failed' | 'job.cancelled' }>
/** Maximum number of characters of a stored result, as JSON. Longer results are truncated. */
const MAX_SUMMARY_LENGTH = 1000

/** Returns a short result unchanged, and a long result as `{truncated: true, text}`. */
export function summaryOf(result: JsonObject): JsonObject {
  const text = JSON.stringify(result)
  return text.length <= MAX_SUMMARY_LENGTH
    ? result
    : { truncated: true, text: cutText(text, MAX_SUMMARY_LENGTH) }
}

const sources: Readonly<Record<Job['origin'], string>> = {
  loop_action_step: 'loop',
  agent_tool_call: 'agent',
  agent_llm_call: 'agent',
  conversation_tool_call: 'agent',
  conversation_llm_call: 'agent',
  direct_action_invoke: 'direct',
  server_internal: 'server',
}
const statuses = {
  'job.completed': 'success',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
} as const

/**
 * Adds the invocation record of an ended job. A job that was never claimed, or that does not
 * execute an action, has no record.
 * @param cursor the cursor of the event that ended the job.
 * @param job the job's record after that event.
 */
export function addInvocation(
  store: Store,
  project: number,
  cursor: number,
  job: Job,
  { type, invocation, job: last }: Ended,
): void {
  if (job.kind !== 'action_execution' || job.claim_attempt === 0 || job.action_name === undefined)
    return
  const served = job.executor_kind === 'server_worker'
  const action_id = invocation?.action_id ?? definitionId(store, project, job.action_name)
  const delivery_id = invocation?.delivery_id ?? (served ? deliveryIdOf(job.id) : undefined)
  const scope = invocation?.definition_scope ?? (action_id === undefined ? undefined : 'project')
  const { run_id, environment_id, step_key, agent_turn_id, session_id, tool_call_id } = job
  const record: Invocation = {
    id: invocationIdOf(job.id),
    action_name: job.action_name,
    source: sources[job.origin],
    status: statuses[type],
    retry_count: Math.max(0, job.claim_attempt - 1),
    started_at: job.created_at,
    finished_at: job.completed_at ?? job.updated_at,
    job_id: job.id,
    ...(run_id !== undefined && { run_id }),
    ...(environment_id !== undefined && { environment_id }),
    ...(step_key !== undefined && { step_name: step_key }),
    ...(agent_turn_id !== undefined && { agent_turn_id }),
    ...(session_id !== undefined && { session_id }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    ...(action_id !== undefined && { action_id }),
    ...(scope !== undefined && { definition_scope: scope }),
    ...invocation,
    ...(delivery_id !== undefined && { delivery_id }),
    ...(last.result && { output_summary: summaryOf(last.result) }),
    ...(type !== 'job.completed' && job.error_type !== undefined && { error_type: job.error_type }),
    ...(type !== 'job.completed' &&
      job.error_message !== undefined && { error_message: job.error_message }),
  }
  store.append(
    'invocations',
    cursor,
    project,
    run_id ?? null,
    job.id,
    environment_id ?? null,
    job.action_name,
    action_id ?? null,
    scope ?? null,
    invocation?.secret_version ?? null,
    delivery_id ?? null,
    null,
    record.status,
    session_id ?? null,
    JSON.stringify(
      store.shapes.pack(record, known({ run: run_id ?? null, job: job.id, ...record })),
    ),
  )
}

/** A stored invocation, with the columns that are needed to unpack its record. */
interface PackedInvocation {
  readonly cursor: number
  readonly run: string | null
  readonly job: string
  readonly action_name: string
  readonly status: string
  readonly record: string
}
const known = ({
  run,
  job,
  action_name,
  status,
}: Omit<PackedInvocation, 'cursor' | 'record'>): Known => ({
  texts: [run, job, invocationIdOf(job), action_name, status],
  at: 0,
})

/** Filters of the list. All must match. */
export interface InvocationFilters extends Paging {
  readonly run_id?: string
  readonly job_id?: string
  readonly environment_id?: string
  readonly action_name?: string
  readonly action_id?: string
  readonly definition_scope?: string
  readonly secret_version?: number
  readonly delivery_id?: string
  readonly correlation_id?: string
  readonly status?: string
  /** The principal on whose behalf the query is made; absent: the service itself. */
  readonly viewer?: Viewer
}
const columns = {
  run_id: 'run',
  job_id: 'job',
  environment_id: 'environment',
  action_name: 'action_name',
  action_id: 'action',
  definition_scope: 'scope',
  secret_version: 'secret_version',
  delivery_id: 'delivery',
  correlation_id: 'correlation',
  status: 'status',
} as const satisfies Partial<Record<keyof InvocationFilters, string>>

/**
 * Returns records of action calls, newest first, with the loop of the run and the parameters of the
 * call, where these are known.
 */
export function invocationList(
  store: Store,
  project: number,
  input: InvocationFilters,
): Page<Invocation> {
  const filters = Object.entries(columns).map(
    ([filter, column]) => [column, input[filter as keyof typeof columns]] as const,
  )
  return readPage<PackedInvocation, Invocation>(
    store,
    {
      select: 'SELECT cursor, run, job, action_name, status, record FROM invocations',
      conditions: [
        ...equalityConditions({ project, ...Object.fromEntries(filters) }),
        ...(input.viewer
          ? [[notInUnreadableSession('invocations'), ...viewerValues(input.viewer)] as const]
          : []),
      ],
      order: ['cursor'],
      direction: 'DESC',
    },
    input,
    (row) =>
      whole(
        store,
        project,
        store.shapes.unpack<Invocation>(JSON.parse(row.record) as Packed, known(row)),
      ),
  )
}

/** The columns of a run that an invocation needs. */
interface Run {
  readonly n: number
  readonly id: string
  readonly created_at: number
  readonly loop: string | null
}
/** Completes a record with fields from other tables: the loop and the parameters. */
function whole(store: Store, project: number, record: Invocation): Invocation {
  const { run_id } = record
  const run =
    run_id === undefined
      ? undefined
      : store.one<Run>(
          'SELECT n, id, created_at, loop FROM runs WHERE id = ? AND project = ?',
          run_id,
          project,
        )
  const parameters =
    record.tool_call_id !== undefined
      ? inputOf(store, project, record)
      : run && inputsOf(store, run, record)
  return {
    ...record,
    ...(typeof run?.loop === 'string' && { loop_id: run.loop }),
    ...(parameters && { parameters }),
  }
}
/**
 * Returns the parameters of a step's call from the step's record; undefined if a later job of the
 * step has replaced them. The timeline still contains them.
 */
function inputsOf(
  store: Store,
  run: Run,
  { step_name = '', job_id }: Invocation,
): JsonObject | undefined {
  const step = stepOf(store, run, step_name)
  return step?.job_id === job_id ? step?.inputs : undefined
}
/**
 * Returns the parameters of an agent's call from the transcript; undefined if the transcript lacks
 * them.
 */
function inputOf(
  store: Store,
  project: number,
  { session_id = '', agent_turn_id = '', tool_call_id = '' }: Invocation,
): JsonObject | undefined {
  const row = store.one<{ input: string | null }>(
    `SELECT json_extract(block.value, '$.resolved_action.input') AS input
     FROM sessions
     JOIN session_messages AS message ON message.session = sessions.n AND message.turn = ?,
       json_each(message.record, '$.content') AS block
     WHERE sessions.project = ? AND sessions.id = ? AND json_extract(block.value, '$.id') = ?
     LIMIT 1`,
    agent_turn_id,
    project,
    session_id,
    tool_call_id,
  )
  return row?.input ? (JSON.parse(row.input) as JsonObject) : undefined
}
