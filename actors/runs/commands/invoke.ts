/**
 * Direct calls of actions. A direct call is a run of one step. It therefore has a timeline, a job,
 * leases and attempts, like a call by a workflow. This file also provides the facts that an
 * executor needs to perform the action call of a job of any run.
 */

import type { Definition } from '../../../protocol/access/directory.ts'
import type { ActionCall } from '../../../protocol/actions/invocation.ts'
import type { actions } from '../../../protocol/actions/rows.ts'
import { type JsonObject, parseDuration } from '../../../protocol/common.ts'
import type { Input, Reply } from '../../../protocol/contract.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import type { Cause, Decision } from '../../actor.ts'
import { stepsAt, waitingAt } from '../engine/places.ts'
import { causeOf } from '../outbound/source-events.ts'
import { hasEnded, type RunState, rowOf } from '../state.ts'
import { start } from './start.ts'

type Row = (typeof actions)['action.invoke']
/** Key of the only step. */
const STEP = 'call'
/**
 * Minimum timeout of an attempt in seconds. It applies even if the caller specifies a shorter one.
 */
const MIN_ATTEMPT_S = 30

/** Fields that the gateway adds to a direct call. */
export interface InvokeExtra {
  /** Id by which the caller can find the run later. */
  readonly external_id?: string
  /** The workflow that the action refers to, and the workflows that this workflow references. */
  readonly definitions?: Readonly<Record<string, Definition>>
}

/** Begins a direct call. The gateway has checked the input, which is not a template. */
export function invoke(
  state: RunState | null,
  {
    action_name,
    input = {},
    environment_id,
    timeout_seconds = 0,
    external_id,
    definitions,
  }: Input<Row> & InvokeExtra,
  cause: Cause,
): Decision<RunEvent, Reply<Row>> {
  const spec: Spec = {
    steps: [
      {
        id: STEP,
        kind: 'action',
        config: {
          action_name,
          parameters: input,
          ...(environment_id !== undefined && { environment_id }),
        },
      },
    ],
    workflow_type: 'action.invoke',
  }
  const decision = start(
    state,
    {
      spec,
      ...(external_id !== undefined && { external_id }),
      ...(definitions && { definitions }),
      invoked: { timeout: Math.max(MIN_ATTEMPT_S, timeout_seconds) * 1000 },
    },
    cause,
  )
  return 'refused' in decision
    ? decision
    : { ...decision, reply: { status: 'active', run_id: cause.self.id } }
}

/** Returns the status and outcome of a direct call, or null if there is no such run. */
export function invoked(state: RunState | null): Reply<Row> | null {
  if (!state) return null
  const { record } = state
  const row = rowOf(state, STEP, undefined)
  const known = { run_id: record.id, ...(row?.job_id !== undefined && { job_id: row.job_id }) }
  if (!hasEnded(state)) return { status: 'active', ...known }
  if (record.status === 'completed')
    return { status: 'completed', ...known, output: (row?.result ?? {}) as JsonObject }
  return {
    status: 'failed',
    ...known,
    error:
      record.error_message ??
      (record.status === 'cancelled' ? 'the call was cancelled' : 'the call failed'),
  }
}

/**
 * Returns the data that an executor needs to perform the action call of a job, or null if the run
 * no longer waits for the job.
 */
export function actionCall(
  state: RunState | null,
  { job_id }: { readonly job_id: string },
): ActionCall | null {
  const found =
    state && waitingAt(state, (wait) => wait.kind === 'worker' && wait.job_id === job_id)
  const wait = found?.progress.wait
  if (!state || !found || !wait) return null
  const step = stepsAt(state, found.at)[found.progress.position]
  if (step?.kind !== 'action') return null
  const { engine, record } = state
  const timeout = parseDuration(step.timeout?.duration ?? '0') || engine.invoked?.timeout
  const delay = parseDuration(step.retry?.delay ?? '0')
  return {
    action_name: step.config.action_name,
    parameters: rowOf(state, wait.step, found.at)?.inputs ?? {},
    actor: engine.actor ?? { principal_id: 'system', principal_type: 'system' },
    origin: engine.invoked ? 'direct_action_invoke' : 'loop_action_step',
    run_id: record.id,
    ...(record.loop_id !== undefined && { loop_id: record.loop_id }),
    step_key: wait.step,
    causation: causeOf(state),
    ...(timeout && { timeout }),
    ...(delay && { delay }),
  }
}
