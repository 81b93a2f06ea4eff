/** Ends waits, in the run itself and in its branches. `suspend.ts` begins most of them. */
import type { JsonObject } from '../../../protocol/common.ts'
import type { RunEventType } from '../../../protocol/runs/events.ts'
import { current, type Draft, emit, progressOf } from '../draft.ts'
import { isAsked, unwatchNote } from '../state.ts'

/**
 * Ends the wait of the current step, if any, with the event `how`. A wait that the timeline never
 * showed ends with `wait.closed`.
 * @param take id of the stored signal that the wait consumes.
 */
export function endWait(
  draft: Draft,
  how: 'wait.resumed' | 'wait.timed_out' | 'wait.closed',
  payload: JsonObject = {},
  take?: string,
): void {
  const { wait } = progressOf(draft)
  if (!wait) return
  const type: RunEventType = 'id' in wait && !isAsked(wait) ? how : 'wait.closed'
  const note = { ...unwatchNote(wait), ...(take !== undefined && { take }) }
  emit(draft, type, {
    step: wait.step,
    payload: {
      step: wait.step,
      ...('id' in wait && !isAsked(wait) && { wait_id: wait.id, wait_kind: wait.kind }),
      ...payload,
    },
    ...(wait.kind !== 'pause' && { row: { waiting_on: null } }),
    place: { wait: null },
    ...(Object.keys(note).length > 0 && { note }),
    ...(draft.at === undefined &&
      draft.state.record.wake_at !== undefined && { run: { wake_at: null } }),
  })
}

/**
 * Resumes the current step after its wait has ended. Does nothing if the step is not suspended.
 */
export function resumeStep(draft: Draft): void {
  const at = current(draft)
  if (at?.row?.status === 'suspended')
    emit(draft, 'step.resumed', {
      step: at.key,
      payload: { step: at.key, kind: at.row.kind },
      row: { status: 'running', waiting_on: null },
    })
}
