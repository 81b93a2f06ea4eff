/**
 * Messages to a session about changes to its questions. When a question is settled, its call gets a
 * result or its approved action becomes ready, and the turn continues in the same commit.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { type Interaction, settledStatuses } from '../../../protocol/interactions/schema.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  type Draft,
  emit,
  emptyDecision,
  newDraft,
  noteCall,
  patchCall,
  turnOf,
  upsertTurn,
  withoutReply,
} from '../draft.ts'
import type { Live, SessionState, Turn } from '../state.ts'
import { callOf, openQuestions, settleCall, waitOf } from '../turns/call-results.ts'
import { concludeTurn, continueTurn, requeueTurn, startNextTurn } from '../turns/turns.ts'

/** Handles a change to one of this session's questions. The transcript shows every change. */
export const interactionChanged =
  (brand: string) =>
  (
    state: SessionState,
    { interaction, invalid }: SessionCommands['interaction.changed']['input'],
    cause: Cause,
  ): Decision<SessionEvent, undefined> => {
    if (!state.record || state.gone) return emptyDecision
    const draft = newDraft(state as Live, cause, brand)
    emit(draft, { type: 'interaction.upsert', ...interaction })
    const { invocation_id: id = '', tool_call_id = '' } = interaction.consumer.agent_tool ?? {}
    const call = callOf(draft, id, tool_call_id)
    if (call?.interaction_id !== interaction.id || call.state === 'done') return withoutReply(draft)
    if (!settledStatuses.has(interaction.status)) opened(draft, id, call.id)
    else resolved(draft, id, call.id, interaction, invalid)
    return withoutReply(draft)
  }

function opened(draft: Draft, id: string, tool_call_id: string): void {
  const call = callOf(draft, id, tool_call_id)
  if (call?.state !== 'asking' || call.interaction_id === undefined) return
  patchCall(draft, id, call.index, {
    status: 'waiting',
    progress: { interaction_id: call.interaction_id },
  })
  noteCall(draft, id, call.id, { state: 'waiting' })
  continueTurn(draft, id)
}

/**
 * Handles a settled question: the call gets its result, or its approved action becomes ready. If
 * the turn is ending, settling its last question completes its end.
 */
function resolved(
  draft: Draft,
  id: string,
  tool_call_id: string,
  interaction: Interaction,
  invalid = false,
): void {
  const turn = turnOf(draft, id) as Turn
  const call = callOf(draft, id, tool_call_id)
  if (!call) return
  const approved =
    call.asks === 'approval' && interaction.status === 'completed' && interaction.outcome === true
  if (turn.work.ending) {
    settleCall(draft, id, tool_call_id, { status: 'cancelled', content: '' })
    const now = turnOf(draft, id)
    if (now && openQuestions(now).length === 0) concludeTurn(draft, id)
    return
  }
  if (invalid)
    settleCall(draft, id, tool_call_id, {
      status: 'error',
      content: JSON.stringify({ error: interaction.cancel_reason }),
    })
  else if (approved) {
    patchCall(draft, id, call.index, { status: 'pending', progress: null })
    noteCall(draft, id, tool_call_id, { state: 'ready' })
  } else if (turn.work.interrupted?.includes(tool_call_id))
    settleCall(draft, id, tool_call_id, {
      status: 'ok',
      content: JSON.stringify({ interrupted: true, reason: 'user_direction' }),
    })
  else
    settleCall(draft, id, tool_call_id, {
      status: statusOf(interaction, call.asks),
      content: JSON.stringify(resultOf(interaction, call.asks)),
      fine: call.asks !== 'approval' || interaction.status === 'cancelled',
    })
  resume(draft, id)
}
/**
 * Returns the status of a call after its question has ended: `cancelled` for a cancelled question,
 * `error` for a refused or expired approval, otherwise `ok`.
 */
const statusOf = ({ status }: Interaction, asks: 'person' | 'approval' | undefined) =>
  status === 'cancelled' ? 'cancelled' : asks === 'approval' ? 'error' : 'ok'
/**
 * Continues a turn after one of its questions has been settled. A running turn is advanced. A
 * waiting turn is queued again if a call is ready or no question is open. Otherwise it continues to
 * wait, and its record shows the next open question.
 */
function resume(draft: Draft, id: string): void {
  const turn = turnOf(draft, id)
  if (!turn) return
  if (turn.record.status !== 'waiting') return void continueTurn(draft, id)
  const calls = Object.values(turn.work.segment?.calls ?? {})
  const waiting = calls.find(({ state }) => state === 'waiting')
  if (waiting && !calls.some(({ state }) => state === 'ready')) {
    if (turn.record.wait?.interaction_id !== waiting.interaction_id)
      upsertTurn(draft, id, { wait: waitOf(waiting) })
    return
  }
  requeueTurn(draft, id)
  startNextTurn(draft)
}

/** Returns the result of a question, as the model receives it. */
function resultOf(
  { status, outcome, responder, responses, resolving_response_id, cancel_reason }: Interaction,
  asks: 'person' | 'approval' | undefined,
): JsonObject {
  const comment = responses.find((response) => response.id === resolving_response_id)?.comment
  const refused = asks === 'approval' && { approved: false }
  if (status === 'completed')
    return {
      status,
      ...refused,
      outcome,
      ...(comment !== undefined && { comment }),
      ...(responder && { responder: responder.user_id }),
    }
  return { status, ...refused, ...(cancel_reason !== undefined && { reason: cancel_reason }) }
}
