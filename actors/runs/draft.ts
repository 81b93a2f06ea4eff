/**
 * A decision under construction. The engine may execute many steps in one command. Each step needs
 * the state that results from the previous steps, so `emit` applies every event immediately.
 * `apply` never changes the state that it receives, so the actor's state stays unchanged. The
 * finished decision includes the resulting state as `next`.
 */

import { type JsonObject, timestamp } from '../../protocol/common.ts'
import type { InteractionCommands } from '../../protocol/internal.ts'
import type { LoopCommands } from '../../protocol/loops/events.ts'
import { type RunRecord, shownRun } from '../../protocol/loops/record.ts'
import type { Patch } from '../../protocol/patch.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { RunEvent, RunEventType, UsageSource } from '../../protocol/runs/events.ts'
import type { Run, RunStep } from '../../protocol/runs/schema.ts'
import type { Step } from '../../protocol/workflows/spec.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { cleanupPrefix, keyBelow, stepsAt } from './engine/places.ts'
import {
  apply,
  type Branch,
  branchAt,
  type Engine,
  keyOf,
  type Note,
  type OpenWait,
  type Progress,
  type RunState,
  rowOf,
} from './state.ts'

/** A wait for a turn of an agent. */
export type AgentWait = Extract<OpenWait, { kind: 'agent' }>
/**
 * Name of the queue for jobs that look up the definitions of agent turns. Each run uses the queue
 * with this name in its own shard.
 */
export const OPENINGS = '$openings'

export interface Draft {
  readonly cause: Cause
  /** The state after the events so far. */
  state: RunState
  readonly events: RunEvent[]
  readonly tells: Tell[]
  /** The reason why the run resumes, as the payload of `run.resumed`. */
  why: JsonObject
  /** Key of the current branch; undefined: the run itself. */
  at: string | undefined
}

/** Begins a decision on a run. */
export const newDraft = (state: RunState, cause: Cause): Draft => ({
  cause,
  state,
  events: [],
  tells: [],
  why: {},
  at: undefined,
})

/** The parts of an event. Every change to a record also sets its `updated_at`. */
export interface Parts {
  readonly step?: string
  readonly payload?: JsonObject
  readonly run?: Patch<RunRecord>
  readonly row?: Patch<RunStep>
  readonly usage?: UsageSource
  readonly drops?: readonly string[]
  readonly note?: Note
  /** Changes to the current branch, or to the run itself if there is no current branch. */
  readonly place?: Patch<Omit<Branch, 'key' | 'index' | 'rows'>>
}

/** Adds an event to the decision and applies it. */
export function emit(draft: Draft, type: RunEventType, parts: Parts): void {
  const { step, payload, run, row, usage, drops } = parts
  const note = parts.place || draft.at !== undefined ? noteOf(draft, parts) : parts.note
  const event: { -readonly [K in keyof RunEvent]: RunEvent[K] } = { type }
  if (step !== undefined) event.step = step
  if (payload) event.payload = payload
  if (run) event.run = extended(run, { updated_at: now(draft) })
  if (row) event.row = extended(row, { updated_at: now(draft) })
  if (usage) event.usage = usage
  if (drops && drops.length > 0) event.drops = drops
  if (note) event.private = note as JsonObject
  draft.events.push(event)
  draft.state = apply(draft.state, event)
}

function noteOf({ at }: Draft, { step, row, note, place }: Parts): Note | undefined {
  if (at !== undefined)
    return note?.place !== null && (place || (step !== undefined && row))
      ? extended(note, { at, ...(place && { place }) })
      : note
  return note
    ? extended(note, { engine: extended(note.engine, place) })
    : { engine: place as Patch<Engine> }
}

/** Returns the time of the decision as an RFC 3339 timestamp. */
export const now = (draft: Draft): string => timestamp(draft.cause.at)

/** Returns the progress of the current branch, or of the run itself. */
export const progressOf = ({ state, at }: Draft): Progress =>
  at === undefined ? state.engine : (branchAt(state, at) ?? state.engine)

/**
 * Returns the current step with its key and, once the step has been reached, its record. Returns
 * undefined after the last step.
 */
export function current(
  draft: Draft,
): { step: Step; key: string; row: RunStep | undefined } | undefined {
  const { state, at } = draft
  const { position } = progressOf(draft)
  const step = stepsAt(state, at)[position]
  if (!step) return undefined
  const key =
    at === undefined && state.engine.ending
      ? cleanupPrefix(state.spec) + keyOf(step, position)
      : keyBelow(at, step, position)
  return { step, key, row: rowOf(state, key, at) }
}

/** Sends a command to the run's job queue in the run's own shard, in the same commit. */
export const tellQueue = (
  draft: Draft,
  name: 'queue.enqueue' | 'queue.cancel',
  input: unknown,
): void => {
  draft.tells.push({
    to: { kind: 'queue', id: `${draft.cause.shard}.${draft.state.record.queue}` },
    name,
    input,
  })
}

/**
 * Sends a command to an interaction of the run in the same commit. The interaction is in the same
 * shard.
 */
export const tellInteraction = (
  draft: Draft,
  id: string,
  name: keyof InteractionCommands,
  input: unknown,
): void => {
  draft.tells.push({ to: { kind: 'interaction', id }, name, input })
}
/**
 * Withdraws the interaction or stops the agent turn that the current step waits for. Call this
 * before ending the wait.
 */
export function withdraw(draft: Draft, reason: string): void {
  const { wait } = progressOf(draft)
  if (wait?.kind === 'interaction')
    tellInteraction(draft, wait.interaction_id, 'interaction.withdraw', { reason })
  else if (wait?.kind === 'agent') stopTurn(draft, wait, reason)
}
/**
 * Stops a turn in its session. If the turn is not open yet, its lookup is cancelled instead.
 */
function stopTurn(
  draft: Draft,
  { step, turn_id, job_id, session_id }: AgentWait,
  reason: string,
): void {
  if (session_id !== undefined)
    emit(draft, 'turn.stopped', {
      step,
      note: {
        tell: { to: { kind: 'session', id: session_id }, name: 'turn.stop', input: { turn_id } },
      },
    })
  else if (job_id !== undefined) tellOpenings(draft, 'queue.cancel', { job_ids: [job_id], reason })
}
/**
 * Sends a command to the queue of lookups (`OPENINGS`) in the run's own shard, in the same commit.
 */
export const tellOpenings = (
  draft: Draft,
  name: 'queue.enqueue' | 'queue.cancel',
  input: unknown,
): void => {
  draft.tells.push({ to: { kind: 'queue', id: `${draft.cause.shard}.${OPENINGS}` }, name, input })
}

/** Sends a command to a run in the same shard, in the same commit. */
export const tellRun = (
  draft: Draft,
  id: string,
  name: 'child.start' | 'child.cancel' | 'child.settled',
  input: unknown,
): void => {
  draft.tells.push({ to: { kind: 'run', id }, name, input })
}

/**
 * Sends a command to the run's loop, if the run has one, in the same commit. The loop is in the
 * same shard.
 */
export const tellLoop = <N extends 'run.left' | 'run.returns' | 'run.spent'>(
  draft: Draft,
  name: N,
  input: LoopCommands[N]['input'],
): void => {
  const { loop_id } = draft.state.record
  if (loop_id !== undefined) draft.tells.push({ to: { kind: 'loop', id: loop_id }, name, input })
}

const recordOf = (state: RunState): Run => shownRun(state.record)
/**
 * Returns the finished decision. Its reply is the record after the command and its tells have been
 * decided.
 */
export const replyWithRecord = (draft: Draft): Decided<RunEvent, Run> => ({
  events: draft.events,
  reply: recordOf,
  tells: draft.tells,
  next: draft.state,
})
/** Returns the finished decision of a command without a reply. */
export const withoutReply = (draft: Draft): Decided<RunEvent, undefined> => ({
  events: draft.events,
  reply: undefined,
  tells: draft.tells,
  next: draft.state,
})
/** A decision without events. Its reply is the current record. */
export const unchanged: Decided<RunEvent, Run> = { events: [], reply: recordOf }
/** A decision without events and without a reply. */
export const emptyDecision: Decided<RunEvent, undefined> = { events: [], reply: undefined }
