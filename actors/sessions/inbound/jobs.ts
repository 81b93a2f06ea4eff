/**
 * Outcomes of the session's jobs. The outcome of a job that the session no longer waits for changes
 * nothing.
 */
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { readAnswer } from '../../../protocol/sessions/turns/request.ts'
import type { Cause, Decision } from '../../actor.ts'
import { type Draft, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { endCompaction } from '../history/compaction.ts'
import type { Live, SessionState } from '../state.ts'
import { continueWithAnswer, recordUsage, restartRow } from '../turns/generate.ts'
import { jobOf, type Settled } from '../turns/jobs.ts'
import { settleJobCall } from '../turns/segment.ts'
import { applyStep, continueTurn, failTurn } from '../turns/turns.ts'

/** Handles the end of a job. */
export const jobSettled =
  (brand: string) =>
  (state: SessionState, input: Settled, cause: Cause): Decision<SessionEvent, undefined> => {
    const found = jobOf(state, input.job_id)
    if (!found || !state.record || state.gone) return emptyDecision
    const draft = newDraft(state as Live, cause, brand)
    if ('compaction' in found) endCompaction(draft, input)
    else if (found.call === undefined) generationSettled(draft, found.turn.record.id, input)
    else {
      settleJobCall(draft, found.turn.record.id, found.call, input)
      continueTurn(draft, found.turn.record.id)
    }
    return withoutReply(draft)
  }
/**
 * Handles a retry of a job. If the job is a generation, discards the output that it has streamed so
 * far.
 */
export const jobRetried =
  (brand: string) =>
  (
    state: SessionState,
    { job_id }: SessionCommands['job.retried']['input'],
    cause: Cause,
  ): Decision<SessionEvent, undefined> => {
    const found = jobOf(state, job_id)
    if (!found || 'compaction' in found || found.call !== undefined || !state.record)
      return emptyDecision
    const draft = newDraft(state as Live, cause, brand)
    restartRow(draft, found.turn.record.id)
    return withoutReply(draft)
  }

function generationSettled(
  draft: Draft,
  id: string,
  { outcome, result, error_type, error_message }: Settled,
): void {
  if (outcome !== 'completed')
    return void failTurn(
      draft,
      id,
      error_type || (outcome === 'cancelled' ? 'generation_cancelled' : 'generation_failed'),
      error_message || `The generation ${outcome === 'failed' ? 'failed' : 'was cancelled'}.`,
    )
  const answer = readAnswer(result)
  if (typeof answer === 'string') return void failTurn(draft, id, 'InvalidResult', answer)
  const before = draft.events.length
  const spending = recordUsage(draft, id, answer)
  applyStep(draft, id, continueWithAnswer(draft, id, answer))
  if (!spending) return
  // The event is inserted before the others, so that the run receives the usage before the end of
  // the turn. `ends` is set if this answer ends the turn.
  const ends = draft.events.slice(before).some(({ type }) => type === 'turn.reported')
  draft.events.splice(before, 0, {
    type: 'turn.spent',
    spending: { ...spending, ...(ends && { ends }) },
  })
}
