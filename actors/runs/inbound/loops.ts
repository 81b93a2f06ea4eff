/** Replies from loops to requests for a run (`../steps/loop.ts`). */
import type { RunCommands } from '../../../protocol/internal.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { completeStep, failStep } from '../engine/outcome.ts'
import { waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { hasEnded, type RunState } from '../state.ts'

/** Handles the reply of the loop: the id of the run, or a fault. */
export function childAnswered(
  state: RunState | null,
  { wait_id, run_id, fault }: RunCommands['child.answered']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found =
    state &&
    !hasEnded(state) &&
    waitingAt(state, (wait) => wait.kind === 'loop' && wait.id === wait_id)
  if (!state || !found || (state.record.cancel_requested && !state.engine.ending))
    return emptyDecision
  const draft = newDraft(state, cause)
  draft.at = found.at
  draft.why = { reason: 'loop', ...(run_id !== undefined && { run_id }) }
  endWait(
    draft,
    fault ? 'wait.closed' : 'wait.resumed',
    fault ? { reason: fault.error_type } : { run_id },
  )
  resumeStep(draft)
  if (fault) failStep(draft, fault)
  else completeStep(draft, { run_id })
  advance(draft)
  return withoutReply(draft)
}
