/**
 * Ends branches early: the step or the run that contains them ends without their outcomes.
 * `branches.ts` contains the regular end.
 */
import type { RunStep } from '../../../protocol/runs/schema.ts'
import {
  current,
  type Draft,
  emit,
  now,
  progressOf,
  tellQueue,
  tellRun,
  withdraw,
} from '../draft.ts'
import { isAsked, unwatchNote } from '../state.ts'

/** Whether a step has begun and has not ended. */
export const isActive = ({ status }: RunStep): boolean =>
  status === 'running' || status === 'suspended'

/** Ends every active branch: stops its job, child run or turn, or withdraws its interaction. */
export function leaveBranches(draft: Draft, reason: string): void {
  const job_ids: string[] = []
  for (const { key, wait } of draft.state.branches ?? []) {
    draft.at = key
    withdraw(draft, reason)
    if (wait?.kind === 'worker') job_ids.push(wait.job_id)
    if (wait?.kind === 'run') tellRun(draft, wait.run_id, 'child.cancel', { reason })
    leaveBranch(draft, reason)
  }
  draft.at = undefined
  if (job_ids.length > 0) tellQueue(draft, 'queue.cancel', { job_ids, reason })
}

/**
 * Ends the current branch and its current step. The caller has already stopped the work of the
 * branch.
 */
export function leaveBranch(draft: Draft, reason: string): void {
  const {
    at,
    state: { join },
  } = draft
  if (at === undefined || !join) return
  const step = current(draft)
  const { wait } = progressOf(draft)
  const note = { at, place: null, ...unwatchNote(wait) }
  if (step?.row && isActive(step.row))
    emit(draft, 'step.cancelled', {
      step: step.key,
      payload: {
        step: step.key,
        kind: step.step.kind,
        reason,
        ...(wait && 'id' in wait && !isAsked(wait) && { wait_id: wait.id, wait_kind: wait.kind }),
      },
      row: { status: 'cancelled', completed_at: now(draft), waiting_on: null },
      note,
    })
  else
    emit(draft, 'branch.cancelled', { step: join.step, payload: { step: join.step, reason }, note })
  draft.at = undefined
}
