/**
 * Delivery of source events that match waits of the run. An event immediately resumes every step
 * that waits for it. Unlike a signal, an event is not stored for steps that begin to wait later.
 */

import type { Delivered } from '../../../protocol/internal.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { emit, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { waitingAt } from '../engine/places.ts'
import { hasEnded, isAsked, progressesOf, type RunState } from '../state.ts'
import { consumeEvent, isAwaited, openWait } from '../steps/wait.ts'

/** Number of events that are remembered to detect repeats. */
const REMEMBERED = 64

/**
 * Delivers an event to the steps that wait for it. Does nothing if no step waits for the event, if
 * the event was delivered before, or if the run is being cancelled.
 */
export function deliver(
  state: RunState | null,
  event: Delivered,
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (
    !state ||
    hasEnded(state) ||
    state.record.cancel_requested ||
    state.engine.delivered?.includes(event.source_event_id)
  )
    return emptyDecision
  const awaited = progressesOf(state).filter(([, { wait }]) => isAwaited(wait, event))
  if (awaited.length === 0) return emptyDecision
  const draft = newDraft(state, cause)
  draft.why = {
    reason: 'event',
    event_type: event.event_type,
    source_event_id: event.source_event_id,
  }
  emit(draft, 'event.delivered', {
    note: {
      engine: {
        delivered: [...(state.engine.delivered ?? []), event.source_event_id].slice(-REMEMBERED),
      },
    },
  })
  for (const [at] of awaited) {
    draft.at = at
    consumeEvent(draft, event)
  }
  draft.at = undefined
  advance(draft)
  return withoutReply(draft)
}

/**
 * Opens a wait that the matcher has confirmed. A wait that has ended, or is open already, does not
 * change.
 */
export function watched(
  state: RunState | null,
  { wait_id }: { readonly wait_id: string },
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found =
    state &&
    !hasEnded(state) &&
    waitingAt(state, (wait) => isAsked(wait) && 'id' in wait && wait.id === wait_id)
  const wait = found ? found.progress.wait : undefined
  if (!state || !found || wait?.kind !== 'event') return emptyDecision
  const draft = newDraft(state, cause)
  draft.at = found.at
  openWait(draft, wait)
  return withoutReply(draft)
}

/** Returns the event types that the run waits for, with the ids of their waits. */
export const awaiting = (
  state: RunState | null,
): readonly { wait_id: string; event_type: string }[] =>
  !state || hasEnded(state)
    ? []
    : progressesOf(state).flatMap(([, { wait }]) =>
        wait?.kind === 'event' ? [{ wait_id: wait.id, event_type: wait.event_type }] : [],
      )
