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
  draft,
  emit,
  emptyDecision,
  type LoopOptions,
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
export function requestSlot(on: Draft, run_id: string): boolean {
  const { organization } = on.state.standing
  if (on.options.plan_concurrency === undefined || organization === '') return false
  emit(on, { type: 'place.wanted', run_id, loop_id: on.cause.self.id, organization })
  return true
}

/**
 * Gives back the slot of a run that has ended, or withdraws the request if the slot has not been
 * granted yet.
 */
export function returnSlot(on: Draft, run_id: string): void {
  const place = getOwn(on.state.places, run_id)
  if (place === 'asked' || place === 'had')
    emit(on, {
      type: 'place.returned',
      run_id,
      loop_id: on.cause.self.id,
      organization: on.state.standing.organization,
    })
}

function take(on: Draft, run_id: string): void {
  emit(on, { type: 'place.taken', run_id })
  tellRun(on, run_id, 'run.begin', { later: true })
}
/**
 * Repeats the requests for slots that were declined while the loop was not active. If the limit has
 * been removed, the runs begin immediately.
 */
export function requestDeclinedSlots(on: Draft): void {
  if (on.state.record?.status !== 'active') return
  for (const [run_id, place] of Object.entries(on.state.places)) {
    if (place === 'declined' && !on.state.leaving[run_id] && !requestSlot(on, run_id))
      take(on, run_id)
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
  const on = draft(state, cause, options)
  if (isExisting(state) && state.record.status !== 'active')
    emit(on, { type: 'place.declined', run_id, organization: state.standing.organization })
  else take(on, run_id)
  return withReply(on, undefined)
}
