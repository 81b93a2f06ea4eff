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
export const newDraft = (state: LoopState, cause: Cause, options: LoopOptions): Draft => ({
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
export function emit(draft: Draft, event: LoopEvent): void {
  draft.events.push(event)
  draft.state = evolveLoop[event.type](draft.state, event as never, draft.cause.at)
}
/** Wakes the loop at a time in Unix milliseconds, or at the earlier time that is already set. */
export function continueAt(draft: Draft, more_at: number): void {
  if ((draft.state.more_at ?? Infinity) > more_at) emit(draft, { type: 'loop.busy', more_at })
}
/** Sends a command to a run of this loop, in the same commit. */
export const tellRun = <
  N extends 'run.open' | 'run.begin' | 'run.hold' | 'run.displace' | 'run.halt' | 'run.end',
>(
  draft: Draft,
  id: string,
  name: N,
  input: RunCommands[N]['input'],
): void => {
  draft.tells.push({ to: { kind: 'run', id }, name, input })
}
export const withReply = <R>(draft: Draft, reply: R): Decided<LoopEvent, R> => ({
  events: draft.events,
  tells: draft.tells,
  reply,
  next: draft.state,
})
export const emptyDecision: Decided<LoopEvent, undefined> = { events: [], reply: undefined }
