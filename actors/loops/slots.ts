/**
 * How a loop requests and returns concurrency slots of the organization (protocol/loops/slots.ts).
 * Slots are used only if the operator has set a limit. In that case, a run that the loop's own
 * rules admit begins only when it gets a slot. Until then, the loop counts the run as active, so
 * the rules of the loop hold regardless of the order of messages.
 *
 * Invariant: a requested slot is returned exactly once: when the run has ended, or when the loop
 * declines the slot. A declined slot is requested again later.
 */
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopCommands, LoopEvent } from '../../protocol/loops/events.ts'
import type { Cause, Decision } from '../actor.ts'
import {
  type Draft,
  emit,
  emptyDecision,
  type LoopOptions,
  newDraft,
  tellRun,
  withReply,
} from './draft.ts'
import { isExisting, type LoopState } from './state.ts'

/** Whether an admitted run waits for its slot. */
export const waitsForSlot = ({ places }: LoopState, run_id: string): boolean =>
  ['asked', 'declined'].includes(getOwn(places, run_id) ?? '')

/**
 * Requests a slot for an admitted run.
 * @returns whether the run has to wait for the slot.
 */
export function requestSlot(draft: Draft, run_id: string): boolean {
  const { organization } = draft.state.standing
  if (draft.options.plan_concurrency === undefined || organization === '') return false
  emit(draft, { type: 'place.wanted', run_id, loop_id: draft.cause.self.id, organization })
  return true
}

/**
 * Gives back the slot of a run that has ended, or withdraws the request if the slot has not been
 * granted yet.
 */
export function returnSlot(draft: Draft, run_id: string): void {
  const place = getOwn(draft.state.places, run_id)
  if (place === 'asked' || place === 'had')
    emit(draft, {
      type: 'place.returned',
      run_id,
      loop_id: draft.cause.self.id,
      organization: draft.state.standing.organization,
    })
}

function take(draft: Draft, run_id: string): void {
  emit(draft, { type: 'place.taken', run_id })
  tellRun(draft, run_id, 'run.begin', { later: true })
}
/**
 * Repeats the requests for slots that were declined while the loop was not active. If the limit has
 * been removed, the runs begin immediately.
 */
export function requestDeclinedSlots(draft: Draft): void {
  if (draft.state.record?.status !== 'active') return
  for (const [run_id, place] of Object.entries(draft.state.places)) {
    if (place === 'declined' && !draft.state.leaving[run_id] && !requestSlot(draft, run_id))
      take(draft, run_id)
  }
}

/**
 * Handles a granted slot. A loop that exists but is not active starts no runs, so it declines the
 * slot.
 */
export function slotGranted(
  options: LoopOptions,
  state: LoopState,
  { run_id }: LoopCommands['place.give']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  if (getOwn(state.places, run_id) !== 'asked') return emptyDecision
  const draft = newDraft(state, cause, options)
  if (isExisting(state) && state.record.status !== 'active')
    emit(draft, { type: 'place.declined', run_id, organization: state.standing.organization })
  else take(draft, run_id)
  return withReply(draft, undefined)
}
