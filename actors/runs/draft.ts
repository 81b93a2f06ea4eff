/**
 * A decision while it is being made. The engine may take many steps in one command, and each needs the state that the
 * ones before it left; so a draft applies every event as it is emitted. `apply` never changes the state it is given, so
 * the actor's state stays as it was; the state of the finished draft is handed on with the decision, and need not be computed again.
 */
import type { Run, RunStep } from '../../protocol/runs/schema.ts'
import type { RunEvent, RunEventType, UsageSource } from '../../protocol/runs/events.ts'
import { timestamp, type JsonObject } from '../../protocol/common.ts'
import type { InteractionCommands } from '../../protocol/internal.ts'
import type { LoopCommands } from '../../protocol/loops/events.ts'
import { shownRun, type RunRecord } from '../../protocol/loops/record.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { Step } from '../../protocol/workflows/spec.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { cleanupPrefix, keyBelow, stepsAt } from './engine/places.ts'
import {
  apply,
  branchAt,
  keyOf,
  rowOf,
  type Branch,
  type Engine,
  type Note,
  type OpenWait,
  type Place,
  type RunState,
} from './state.ts'

/** A wait for a turn of an agent. */
export type AgentWait = Extract<OpenWait, { kind: 'agent' }>
/** The queue of looking up what turns run with; each project has one in every shard. */
export const OPENINGS = '$openings'

export interface Draft {
  readonly cause: Cause
  /** The state after the events so far. */
  state: RunState
  readonly events: RunEvent[]
  readonly tells: Tell[]
  /** Why the run moves, for `run.resumed`, should it turn out that it does. */
  why: JsonObject
  /** The branch that is looked at; undefined: the run itself. */
  at: string | undefined
}

/** Begin a decision on a run. */
export const draft = (state: RunState, cause: Cause): Draft => ({
  cause,
  state,
  events: [],
  tells: [],
  why: {},
  at: undefined,
})

/** The parts of an event. Every change of a record also sets its `updated_at`. */
export interface Parts {
  readonly step?: string
  readonly payload?: JsonObject
  readonly run?: Patch<RunRecord>
  readonly row?: Patch<RunStep>
  readonly usage?: UsageSource
  readonly note?: Note
  /** Changes of the place that is looked at. */
  readonly place?: Patch<Omit<Branch, 'key' | 'index' | 'rows'>>
}

/** Add an event and apply it. */
export function emit(on: Draft, type: RunEventType, parts: Parts): void {
  const { step, payload, run, row, usage } = parts
  const note = parts.place || on.at !== undefined ? noteOf(on, parts) : parts.note
  const event: { -readonly [K in keyof RunEvent]: RunEvent[K] } = { type }
  if (step !== undefined) event.step = step
  if (payload) event.payload = payload
  if (run) event.run = { ...run, updated_at: now(on) }
  if (row) event.row = { ...row, updated_at: now(on) }
  if (usage) event.usage = usage
  if (note) event.private = note as JsonObject
  on.events.push(event)
  on.state = apply(on.state, event)
}

function noteOf({ at }: Draft, { step, row, note, place }: Parts): Note | undefined {
  if (at !== undefined)
    return note?.place !== null && (place || (step !== undefined && row))
      ? { ...note, at, ...(place && { place }) }
      : note
  return note
    ? { ...note, engine: { ...note.engine, ...place } }
    : { engine: place as Patch<Engine> }
}

/** The time of the decision as the wire spells it. */
export const now = (on: Draft): string => timestamp(on.cause.at)

/** Where the place that is looked at stands. */
export const placeOf = ({ state, at }: Draft): Place =>
  at === undefined ? state.engine : (branchAt(state, at) ?? state.engine)

/** The step that is taken, with its key and, once it was reached, its record; undefined when all are done. */
export function current(
  on: Draft,
): { step: Step; key: string; row: RunStep | undefined } | undefined {
  const { state, at } = on
  const { position } = placeOf(on)
  const step = stepsAt(state, at)[position]
  if (!step) return undefined
  const key =
    at === undefined && state.engine.ending
      ? cleanupPrefix(state.spec) + keyOf(step, position)
      : keyBelow(at, step, position)
  return { step, key, row: rowOf(state, key, at) }
}

/** The queue of the run in the run's own shard: told in the same commit. */
export const tellQueue = (
  on: Draft,
  name: 'queue.enqueue' | 'queue.cancel',
  input: unknown,
): void => {
  on.tells.push({
    to: { kind: 'queue', id: `${on.cause.shard}.${on.state.record.queue}` },
    name,
    input,
  })
}

/** An interaction of the run, which lives in the run's own shard: told in the same commit. */
export const tellInteraction = (
  on: Draft,
  id: string,
  name: keyof InteractionCommands,
  input: unknown,
): void => {
  on.tells.push({ to: { kind: 'interaction', id }, name, input })
}
/** Withdraw the interaction that the current step waits for, or stop its turn of an agent, if it waits for one: whoever ends its wait calls this first. */
export function withdraw(on: Draft, reason: string): void {
  const { wait } = placeOf(on)
  if (wait?.kind === 'interaction')
    tellInteraction(on, wait.interaction_id, 'interaction.withdraw', { reason })
  else if (wait?.kind === 'agent') stopTurn(on, wait, reason)
}
/** Tell the session of a turn that it is not wanted any more. One that was not opened yet never will be. */
function stopTurn(
  on: Draft,
  { step, turn_id, job_id, session_id }: AgentWait,
  reason: string,
): void {
  if (session_id !== undefined)
    emit(on, 'turn.stopped', {
      step,
      note: {
        tell: { to: { kind: 'session', id: session_id }, name: 'turn.stop', input: { turn_id } },
      },
    })
  else if (job_id !== undefined) tellOpenings(on, 'queue.cancel', { job_ids: [job_id], reason })
}
/** The queue, in the run's own shard, of what must be looked up before a turn begins. */
export const tellOpenings = (
  on: Draft,
  name: 'queue.enqueue' | 'queue.cancel',
  input: unknown,
): void => {
  on.tells.push({ to: { kind: 'queue', id: `${on.cause.shard}.${OPENINGS}` }, name, input })
}

/** A run of the own shard. */
export const tellRun = (
  on: Draft,
  id: string,
  name: 'child.start' | 'child.cancel' | 'child.settled',
  input: unknown,
): void => {
  on.tells.push({ to: { kind: 'run', id }, name, input })
}

/** The loop of the run, which lives in the run's own shard: told in the same commit. */
export const tellLoop = <N extends 'run.left' | 'run.returns' | 'run.spent'>(
  on: Draft,
  name: N,
  input: LoopCommands[N]['input'],
): void => {
  const { loop_id } = on.state.record
  if (loop_id !== undefined) on.tells.push({ to: { kind: 'loop', id: loop_id }, name, input })
}

const recordOf = (state: RunState): Run => shownRun(state.record)
/** The decision, with an answer that tells the record as it is once the whole commit is decided. */
export const decided = (on: Draft): Decided<RunEvent, Run> => ({
  events: on.events,
  reply: recordOf,
  tells: on.tells,
  next: on.state,
})
/** The decision of a command that nobody waits for. */
export const silently = (on: Draft): Decided<RunEvent, undefined> => ({
  events: on.events,
  reply: undefined,
  tells: on.tells,
  next: on.state,
})
/** Nothing to do: the answer is the record as it is. */
export const unchanged: Decided<RunEvent, Run> = { events: [], reply: recordOf }
/** Nothing to do, and nobody waits for an answer. */
export const nothing: Decided<RunEvent, undefined> = { events: [], reply: undefined }
