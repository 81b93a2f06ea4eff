/**
 * Outcomes of the session's jobs. The outcome of a job that the session no longer waits for changes
 * nothing.
 */
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { readAnswer } from '../../../protocol/sessions/turns/request.ts'
import type { Cause, Decision } from '../../actor.ts'
import { type Draft, draft, emptyDecision, withoutReply } from '../draft.ts'
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
    const on = draft(state as Live, cause, brand)
    if ('compaction' in found) endCompaction(on, input)
    else if (found.call === undefined) generationSettled(on, found.turn.record.id, input)
    else {
      settleJobCall(on, found.turn.record.id, found.call, input)
      continueTurn(on, found.turn.record.id)
    }
    return withoutReply(on)
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
    const on = draft(state as Live, cause, brand)
    restartRow(on, found.turn.record.id)
    return withoutReply(on)
  }

function generationSettled(
  on: Draft,
  id: string,
  { outcome, result, error_type, error_message }: Settled,
): void {
  if (outcome !== 'completed')
    return void failTurn(
      on,
      id,
      error_type || (outcome === 'cancelled' ? 'generation_cancelled' : 'generation_failed'),
      error_message || `The generation ${outcome === 'failed' ? 'failed' : 'was cancelled'}.`,
    )
  const answer = readAnswer(result)
  if (typeof answer === 'string') return void failTurn(on, id, 'InvalidResult', answer)
  const before = on.events.length
  const spending = recordUsage(on, id, answer)
  applyStep(on, id, continueWithAnswer(on, id, answer))
  if (!spending) return
  // The event is inserted before the others, so that the run receives the usage before the end of
  // the turn. `ends` is set if this answer ends the turn.
  const ends = on.events.slice(before).some(({ type }) => type === 'turn.reported')
  on.events.splice(before, 0, {
    type: 'turn.spent',
    spending: { ...spending, ...(ends && { ends }) },
  })
}
