/**
 * Places in the organization (protocol/loops/places.ts), when its operator has set a limit: a run that the loop's own rules let in
 * begins when it is given one. Until then it counts as under way here, so the rules of the loop are kept whatever the order of
 * messages.
 *
 * Invariant: a place that was asked for is given back once, when the run has ended; or it is declined, and asked for again.
 */
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopCommands, LoopEvent } from '../../protocol/loops/events.ts'
import type { Cause, Decision } from '../actor.ts'
import { decided, draft, emit, nothing, tellRun, type Draft, type LoopOptions } from './draft.ts'
import { isLiving, type LoopState } from './state.ts'

/** Whether a run that was let in has not begun. */
export const isHeld = ({ places }: LoopState, run_id: string): boolean =>
  ['asked', 'declined'].includes(getOwn(places, run_id) ?? '')

/** Ask for a place of a run that was let in. Gives whether it has to wait for one. */
export function askForPlace(on: Draft, run_id: string): boolean {
  const { organization } = on.state.standing
  if (on.options.plan_concurrency === undefined || organization === '') return false
  emit(on, { type: 'place.wanted', run_id, loop_id: on.cause.self.id, organization })
  return true
}

/** A run has ended: its place is free, whether it has come yet or not. */
export function givePlaceBack(on: Draft, run_id: string): void {
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
/** Ask again for places that came while the loop was not active. */
export function askAgain(on: Draft): void {
  if (on.state.record?.status !== 'active') return
  for (const [run_id, place] of Object.entries(on.state.places)) {
    if (place === 'declined' && !on.state.leaving[run_id] && !askForPlace(on, run_id))
      take(on, run_id)
  }
}

/** A place has come. A loop that is not active starts nothing, so it keeps none. */
export function placeGiven(
  options: LoopOptions,
  state: LoopState,
  { run_id }: LoopCommands['place.give']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  if (getOwn(state.places, run_id) !== 'asked') return nothing
  const on = draft(state, cause, options)
  if (isLiving(state) && state.record.status !== 'active')
    emit(on, { type: 'place.declined', run_id, organization: state.standing.organization })
  else take(on, run_id)
  return decided(on, undefined)
}
