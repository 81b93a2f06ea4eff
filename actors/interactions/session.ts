/**
 * Notification of the session whose turn opened an interaction. Each commit that changes the record
 * also sends it to the session, because the transcript shows the question and the turn may wait for
 * the answer.
 */
import type { InteractionEvent } from '../../protocol/interactions/events.ts'
import type { Cause, Decided, Decision } from '../actor.ts'
import { apply, type InteractionState, newInteraction } from './state.ts'

type Arm<I, R> = (
  state: InteractionState | null,
  input: I,
  cause: Cause,
) => Decision<InteractionEvent, R>

const after = (
  state: InteractionState | null,
  event: InteractionEvent,
  at: number,
): InteractionState | null =>
  event.type === 'interaction.created'
    ? newInteraction(state, event)
    : event.type === 'interaction.linked' || event.type === 'interaction.deleted'
      ? state
      : apply(state, event, at)

/**
 * Wraps a handler of `decide`, so that the session whose turn opened the interaction receives the
 * changed record.
 */
export const notifyingSession =
  <I, R>(arm: Arm<I, R>): Arm<I, R> =>
  (state, input, cause) => {
    const decision = arm(state, input, cause)
    if ('refused' in decision) return decision
    const { events, tells = [] } = decision as Decided<InteractionEvent, R>
    const next = events.reduce<InteractionState | null>(
      (before, event) => after(before, event, cause.at),
      state,
    )
    if (events.length === 0 || next?.session === undefined) return decision
    return {
      ...decision,
      tells: [
        ...tells,
        {
          to: { kind: 'session', id: next.session },
          name: 'interaction.changed',
          input: { interaction: next.record, ...(next.invalid && { invalid: true }) },
        },
      ],
    }
  }
