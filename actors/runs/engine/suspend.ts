/** How a step begins to wait: the step, the wait and the run say so, in this order, with the same details. A branch waits alone: its run waits already. */
import { timestamp, type JsonObject } from '../../../protocol/common.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import type { Patch } from '../../../protocol/patch.ts'
import { emit, type Draft } from '../draft.ts'
import type { OpenWait } from '../state.ts'

/**
 * Suspend the run in the current step.
 * @param details what the timeline shows besides the step, the wait and its deadline.
 * @param row what the step's record shows.
 */
export function suspend(on: Draft, wait: OpenWait, details: JsonObject, row: Patch<RunStep>): void {
  const payload: JsonObject = {
    step: wait.step,
    wait_id: wait.id,
    wait_kind: wait.kind,
    ...(wait.due !== undefined && { deadline: timestamp(wait.due) }),
    ...details,
  }
  emit(on, 'step.suspended', {
    step: wait.step,
    payload,
    row: { status: 'suspended', wait_id: wait.id, ...row },
  })
  emit(on, 'wait.opened', { step: wait.step, payload, place: { wait } })
  const wakes = wait.kind === 'timer' &&
    on.state.record.loop_id !== undefined && { wake_at: timestamp(wait.due) }
  // One that goes from one wait into the next was suspended all the time.
  if (on.at === undefined && on.state.record.status !== 'suspended')
    emit(on, 'run.suspended', { step: wait.step, payload, run: { status: 'suspended', ...wakes } })
}
