/**
 * Messages between parent and child runs. A child begins, and a cancelled child stops, in a
 * separate commit, so the work of one commit stays bounded however deeply runs are nested.
 */

import { timestamp } from '../../../protocol/common.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { start } from '../commands/start.ts'
import {
  current,
  type Draft,
  emit,
  emptyDecision,
  newDraft,
  progressOf,
  withoutReply,
} from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { cancelRun, type RunFault } from '../engine/ending.ts'
import { leaveBranch } from '../engine/leave-branches.ts'
import { completeWork, failStep } from '../engine/outcome.ts'
import { holdsWork, isCancelling, waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { hasEnded, type RunState } from '../state.ts'

type Told<N extends keyof RunCommands> = RunCommands[N]['input']

/** Starts a run for a step of its parent. */
export function childStart(
  state: RunState | null,
  { parent, ...child }: Told<'child.start'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (state) return emptyDecision
  const decision = start(null, { ...child, parent_run_id: parent.run_id, parent }, cause)
  return 'refused' in decision ? decision : { ...decision, reply: undefined }
}

/** Requests the cancellation of the child, on behalf of its parent. */
export function childCancel(
  state: RunState | null,
  { reason }: Told<'child.cancel'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state) || state.record.cancel_requested) return emptyDecision
  const draft = newDraft(state, cause)
  emit(draft, 'run.cancel_requested', {
    payload: { reason },
    run: { cancel_requested: true, cancel_requested_at: timestamp(cause.at) },
    note: { engine: { cancel_reason: reason, more_at: cause.at + 1 } },
  })
  return withoutReply(draft)
}

/**
 * Continues the step that waits for a child that has ended. If cancellation was requested, the run
 * ends when all of its jobs, children and turns have ended.
 */
export function childSettled(
  state: RunState | null,
  ended: Told<'child.settled'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found =
    state &&
    !hasEnded(state) &&
    waitingAt(state, (wait) => wait.kind === 'run' && wait.run_id === ended.run_id)
  if (!state || !found) return emptyDecision
  const draft = newDraft(state, cause)
  draft.at = found.at
  goOn(draft, ended)
  if (!isCancelling(state)) advance(draft)
  else {
    if (draft.at !== undefined) leaveBranch(draft, 'the run was cancelled')
    if (!holdsWork(draft.state)) {
      cancelRun(draft)
      advance(draft)
    }
  }
  return withoutReply(draft)
}

function goOn(
  draft: Draft,
  { run_id, status, result, error_type, error_message }: Told<'child.settled'>,
): void {
  const { wait } = progressOf(draft)
  const at = current(draft)
  const call = at?.step.kind === 'action' && {
    action: at.step.config.action_name,
    step: at.key,
    run_id,
    attempt: at.row?.attempt ?? 1,
  }
  if (isCancelling(draft.state) && status !== 'completed') {
    if (draft.at === undefined) endWait(draft, 'wait.closed', { reason: 'cancelled' })
    return
  }
  const ending =
    status === 'cancelled' ? 'was cancelled' : `failed: ${error_message ?? error_type ?? ''}`
  const fault: RunFault = {
    error_type: status === 'cancelled' ? 'child_cancelled' : 'child_failed',
    error: `The run ${run_id} of ${wait?.step ?? ''} ${ending}`,
  }
  if (call)
    emit(draft, status === 'completed' ? 'action.completed' : 'action.failed', {
      step: call.step,
      payload: { ...call, ...(status === 'completed' ? { result: result ?? {} } : fault) },
    })
  endWait(draft, status === 'completed' ? 'wait.resumed' : 'wait.closed', { run_id, status })
  draft.why = { reason: `child ${status}`, run_id }
  resumeStep(draft)
  if (status === 'completed') {
    completeWork(draft, call ? (result ?? {}) : { run_id, status, output: result ?? {} })
    return
  }
  failStep(draft, fault)
}
