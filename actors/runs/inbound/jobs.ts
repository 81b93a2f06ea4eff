/**
 * Messages from the queue to a run about its jobs. The run accepts them only for jobs that it waits
 * for: late, repeated and misdirected messages change nothing.
 */

import type { RunCommands } from '../../../protocol/internal.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { current, type Draft, emit, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { cancelRun, type RunFault } from '../engine/ending.ts'
import { leaveBranch } from '../engine/leave-branches.ts'
import { completeWork, failStep } from '../engine/outcome.ts'
import { holdsWork, isCancelling, waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import type { RunState } from '../state.ts'
import { openingSettled } from './turns.ts'

type Settled = RunCommands['job.settled']['input']
type Retried = RunCommands['job.retried']['input']

/**
 * Handles the end of a job. If cancellation was requested, the run ends when all of its jobs,
 * children and turns have ended, whatever their outcomes. A completed step stays completed.
 */
export function jobSettled(
  state: RunState | null,
  input: Settled,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const at = waitingFor(state, input.job_id, cause)
  if (!at) return openingSettled(state, input, cause) ?? emptyDecision
  const { draft, wait, row, call } = at
  const cancelled = isCancelling(draft.state)
  const attempt = Math.max(row.attempt, wait.base + input.attempt)
  const log = extended(call, { attempt, ...worker(input) })
  if (input.outcome === 'completed') {
    const result = input.result ?? {}
    emit(draft, 'action.completed', {
      step: wait.step,
      payload: extended(log, { result }),
      row: { attempt },
    })
    draft.why = { reason: 'job completed' }
    endWait(draft, 'wait.resumed')
    resumeStep(draft)
    completeWork(draft, result)
  } else if (input.outcome === 'failed' || !cancelled) {
    const fault = faultOf(
      input,
      input.outcome === 'failed' ? 'failed' : 'job_cancelled',
      `The job ${input.outcome === 'failed' ? 'failed' : 'was cancelled'}`,
    )
    emit(draft, 'action.failed', {
      step: wait.step,
      payload: { ...log, ...fault },
      row: { attempt },
    })
    endWait(draft, 'wait.closed', { reason: fault.error_type })
    if (!cancelled) failStep(draft, fault, true)
  }
  if (cancelled) stopped(draft)
  else advance(draft)
  return withoutReply(draft)
}

/**
 * Handles the end of a job after cancellation was requested. The run ends unless other work of its
 * branches is still active.
 */
function stopped(draft: Draft): void {
  if (draft.at !== undefined) {
    leaveBranch(draft, draft.state.engine.cancel_reason ?? 'the run was cancelled')
    if (holdsWork(draft.state)) return
  }
  cancelRun(draft)
  advance(draft)
}

/** Records a failed or lost attempt of a job that the queue repeats. */
export function jobRetried(
  state: RunState | null,
  input: Retried,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const at = waitingFor(state, input.job_id, cause)
  if (!at || input.attempt <= (at.wait.retried ?? 0)) return emptyDecision
  const { draft, wait, call } = at
  const lost = input.reason === 'lease_expired'
  const fault = faultOf(
    input,
    lost ? 'lease_expired' : 'failed',
    lost ? 'The worker lost its lease' : 'The attempt failed',
  )
  // The attempts of a job are numbered from 1. The attempts of a step are numbered across
  // recoveries, each of which creates a new job.
  const attempt = wait.base + input.attempt
  const max_attempts = wait.base + input.max_attempts
  emit(draft, 'action.retried', {
    step: wait.step,
    payload: { ...call, attempt, max_attempts, ...fault, ...worker(input) },
  })
  emit(draft, 'step.retried', {
    step: wait.step,
    row: { attempt: attempt + 1 },
    place: { wait: { ...wait, retried: input.attempt } },
    payload: {
      step: wait.step,
      kind: 'action',
      attempt: attempt + 1,
      max_attempts,
      retry_scope: lost ? 'transient' : 'step_policy',
      ...fault,
    },
  })
  return withoutReply(draft)
}

function waitingFor(state: RunState | null, job_id: string, cause: Cause) {
  const found =
    state && waitingAt(state, (wait) => wait.kind === 'worker' && wait.job_id === job_id)
  const wait = found?.progress.wait
  if (!state || wait?.kind !== 'worker') return undefined
  const draft = newDraft(state, cause)
  draft.at = found?.at
  const at = current(draft)
  if (at?.step.kind !== 'action' || !at.row) return undefined
  return {
    draft,
    wait,
    row: at.row,
    call: { action: at.step.config.action_name, step: wait.step, job_id },
  }
}
const worker = ({ worker_instance_id }: { worker_instance_id?: string }) =>
  worker_instance_id !== undefined && { worker_instance_id }
const faultOf = (
  { error_type, error_message }: { error_type?: string; error_message?: string },
  type: string,
  message: string,
): RunFault => ({ error_type: error_type || type, error: error_message || message })
