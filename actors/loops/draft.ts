/**
 * A decision under construction: events, commands to runs, and the resulting state of the loop.
 * This file contains no rules.
 */

import type { RunCommands } from '../../protocol/internal.ts'
import type { LoopEvent } from '../../protocol/loops/events.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { evolveLoop, type LoopState } from './state.ts'

export interface LoopOptions {
  /** The configured brand. Header names and reserved tags contain it. */
  readonly brand: string
  /** Maximum number of active runs of loops in the organization; absent: no limit. */
  readonly plan_concurrency?: number
}
export interface Draft {
  readonly cause: Cause
  readonly options: LoopOptions
  /** A copy of the actor's state, to which the events so far have been applied. */
  state: LoopState
  readonly events: LoopEvent[]
  readonly tells: Tell[]
}

/** Begins a decision. Copies the fields that events change in place. */
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
    ...(state.halted && { halted: { ...state.halted } }),
    line: [...state.line],
    spent: [...state.spent],
    clocks: { ...state.clocks },
    fired: [...state.fired],
  },
})
/** Adds an event and applies it. */
export function emit(on: Draft, event: LoopEvent): void {
  on.events.push(event)
  on.state = evolveLoop[event.type](on.state, event as never, on.cause.at)
}
/** Wakes the loop at a time in Unix milliseconds, or at the earlier time that is already set. */
export function continueAt(on: Draft, more_at: number): void {
  if ((on.state.more_at ?? Infinity) > more_at) emit(on, { type: 'loop.busy', more_at })
}
/** Sends a command to a run of this loop, in the same commit. */
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
export const withReply = <R>(on: Draft, reply: R): Decided<LoopEvent, R> => ({
  events: on.events,
  tells: on.tells,
  reply,
  next: on.state,
})
export const emptyDecision: Decided<LoopEvent, undefined> = { events: [], reply: undefined }
