/**
 * Messages from interactions to their run. The end of an interaction that a step opened resumes the
 * step. The end of an interaction that a client created for the run arrives as a signal, under the
 * name that the client chose.
 */

import type { RunCommands } from '../../../protocol/internal.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { hasRoom, storedSignal } from '../commands/signal.ts'
import {
  current,
  type Draft,
  emit,
  emptyDecision,
  newDraft,
  tellInteraction,
  withoutReply,
} from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { failStep } from '../engine/outcome.ts'
import { waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { hasEnded, type RunState } from '../state.ts'
import { settleGate } from '../steps/check.ts'
import { finish, outputOf } from '../steps/interaction.ts'
import { offer } from '../steps/wait.ts'

type Told<N extends keyof RunCommands> = RunCommands[N]['input']
/** Maximum number of open interactions that clients created for one run. */
export const MAX_ASKED = 200

/**
 * Registers an interaction that a client created for this run. The interaction is withdrawn if the
 * run has ended, is being cancelled, or has reached a limit.
 */
export function opened(
  state: RunState | null,
  { interaction_id, ...asked }: Told<'interaction.opened'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state) return emptyDecision
  const draft = newDraft(state, cause)
  const open = state.engine.asked ?? []
  if (hasEnded(state) || state.record.cancel_requested)
    tellInteraction(draft, interaction_id, 'interaction.withdraw', { reason: 'the run has ended' })
  else if (open.length >= MAX_ASKED)
    tellInteraction(draft, interaction_id, 'interaction.withdraw', {
      reason: `the run has ${MAX_ASKED} open interactions`,
    })
  else if (!hasRoom(state, open.length + 1))
    tellInteraction(draft, interaction_id, 'interaction.withdraw', {
      reason: 'too many signals of the run wait to be consumed',
    })
  else
    emit(draft, 'interaction.requested', {
      payload: { interaction_id, ...asked },
      note: { engine: { asked: [...open, interaction_id] } },
    })
  return withoutReply(draft)
}

/** Records an answer to an interaction. */
export function responded(
  state: RunState | null,
  answer: Told<'interaction.responded'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state)) return emptyDecision
  const draft = newDraft(state, cause)
  const step = asking(state, answer.interaction_id)?.progress.wait?.step
  if (step === undefined && !state.engine.asked?.includes(answer.interaction_id))
    return emptyDecision
  emit(draft, 'interaction.responded', {
    ...(step !== undefined && { step }),
    payload: { ...(step !== undefined && { step }), ...answer },
  })
  return withoutReply(draft)
}

const asking = (state: RunState, id: string) =>
  waitingAt(state, (wait) => wait.kind === 'interaction' && wait.interaction_id === id)

/** Handles the end of an interaction. */
export function settled(
  state: RunState | null,
  ended: Told<'interaction.settled'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  // A failed run may be retried, and then uses the answers that have arrived in the meantime.
  if (!state || (hasEnded(state) && state.record.status !== 'failed')) return emptyDecision
  const draft = newDraft(state, cause)
  const { asked } = state.engine
  const found = asking(state, ended.interaction_id)
  draft.at = found?.at
  if (found) resume(draft, ended)
  else if (asked?.includes(ended.interaction_id)) signalled(draft, ended, asked)
  else return emptyDecision
  return withoutReply(draft)
}

function resume(draft: Draft, ended: Told<'interaction.settled'>): void {
  const step = current(draft)?.step
  if (step?.kind !== 'interaction' && step?.kind !== 'check') return
  draft.why = { reason: `interaction ${ended.status}`, interaction_id: ended.interaction_id }
  if (ended.status === 'expired')
    endWait(draft, 'wait.timed_out', { reason: 'expired', interaction_id: ended.interaction_id })
  else endWait(draft, 'wait.resumed', { payload: outputOf(ended) })
  resumeStep(draft)
  if (ended.invalid)
    failStep(draft, { error_type: 'interaction_invalid', error: `targets: ${ended.reason}` }, true)
  else if (step.kind === 'check') settleGate(draft, ended)
  else finish(draft, step, ended)
  advance(draft)
}

function signalled(
  draft: Draft,
  ended: Told<'interaction.settled'>,
  asked: readonly string[],
): void {
  const stored = storedSignal(draft.cause, ended.signal_name, outputOf(ended))
  emit(draft, 'interaction.settled', {
    note: { engine: { asked: asked.filter((id) => id !== ended.interaction_id) }, store: stored },
  })
  draft.why = { reason: 'signal', signal_name: ended.signal_name }
  if (!hasEnded(draft.state) && !draft.state.record.cancel_requested && offer(draft, stored))
    advance(draft)
}
