/**
 * Suspends a step: emits events for the step, the wait and the run, in this order, with the same
 * details. A step of a branch emits no event for the run, because the run is already suspended.
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Patch } from '../../../protocol/patch.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import { type Draft, emit } from '../draft.ts'
import type { OpenWait } from '../state.ts'

/**
 * Suspends the current step and, outside of branches, the run.
 * @param details additional fields of the timeline events, besides the step, the wait and its
 * deadline.
 * @param row changes to the step's record.
 */
export function suspend(
  draft: Draft,
  wait: OpenWait,
  details: JsonObject,
  row: Patch<RunStep>,
): void {
  const payload: JsonObject = {
    step: wait.step,
    wait_id: wait.id,
    wait_kind: wait.kind,
    ...(wait.due !== undefined && { deadline: timestamp(wait.due) }),
    ...details,
  }
  emit(draft, 'step.suspended', {
    step: wait.step,
    payload,
    row: { status: 'suspended', wait_id: wait.id, ...row },
  })
  emit(draft, 'wait.opened', { step: wait.step, payload, place: { wait } })
  const wakes = wait.kind === 'timer' &&
    draft.state.record.loop_id !== undefined && { wake_at: timestamp(wait.due) }
  // A run that goes directly from one wait to the next is already suspended.
  if (draft.at === undefined && draft.state.record.status !== 'suspended')
    emit(draft, 'run.suspended', {
      step: wait.step,
      payload,
      run: { status: 'suspended', ...wakes },
    })
}
