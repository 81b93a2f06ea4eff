/** A decision of a loop while it is being made: events, and what runs are told, with the state as it will be after them. */
import type { LoopEvent } from '../../protocol/loops/events.ts'
import type { RunCommands } from '../../protocol/internal.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { evolveLoop, type LoopState } from './state.ts'

export interface LoopOptions {
  /** Header brand. */
  readonly brand: string
  /** Runs of loops that may be under way in the organization; absent: any number. */
  readonly plan_concurrency?: number
}
export interface Draft {
  readonly cause: Cause
  readonly options: LoopOptions
  /** A copy of the actor's state, with the events so far applied. */
  state: LoopState
  readonly events: LoopEvent[]
  readonly tells: Tell[]
}

/** Begin a decision. What events change in place is copied. */
export const draft = (state: LoopState, cause: Cause, options: LoopOptions): Draft => ({
  cause,
  options,
  events: [],
  tells: [],
  state: {
    ...state,
    active: { ...state.active },
    leaving: { ...state.leaving },
    places: { ...state.places },
    line: [...state.line],
    spent: [...state.spent],
    clocks: { ...state.clocks },
    fired: [...state.fired],
  },
})
/** Add an event and apply it. */
export function emit(on: Draft, event: LoopEvent): void {
  on.events.push(event)
  on.state = evolveLoop[event.type](on.state, event as never, on.cause.at)
}
/** Tell a run of this loop, in the same commit. */
export const tellRun = <
  N extends 'run.open' | 'run.begin' | 'run.hold' | 'run.displace' | 'run.halt' | 'run.end',
>(
  on: Draft,
  id: string,
  name: N,
  input: RunCommands[N]['input'],
): void => {
  on.tells.push({ to: { kind: 'run', id }, name, input })
}
export const decided = <R>(on: Draft, reply: R): Decided<LoopEvent, R> => ({
  events: on.events,
  tells: on.tells,
  reply,
  next: on.state,
})
export const nothing: Decided<LoopEvent, undefined> = { events: [], reply: undefined }
