/**
 * State of a run between two commands, as plain JSON, and the single function that applies an event
 * to it.
 *
 * Invariants:
 * S1. Every field of the run record and of a step's record comes from the `run` and `row` patches
 *     of events, every field of the engine from their `private` note. `apply` contains no rules;
 *     the views apply the same patches.
 * S2. A run that has not ended has `engine.wait` after every command, and its status is then
 *     `suspended`. Exceptions: a run that pauses, or waits for an event that the matcher has not
 *     confirmed, is `running`; a run that is `held` by its loop is `queued` and has no wait.
 * S3. `engine.position` is the index of the current step, or the number of steps after the last
 *     one. With `engine.ending` it is an index of the cleanup steps, and `engine.ending` contains
 *     the position at which the run ended.
 * S4. The outputs of finished steps are the `result` of their records and are stored only there.
 * S5. Active branches and items have separate positions (`branches`), with the records of their
 *     steps. Of ended ones only the outcome is stored (`yields`), in chunks, so that the cost of an
 *     event does not grow with the number of earlier items.
 */

import type { Definition } from '../../protocol/access/directory.ts'
import type { ActorOf } from '../../protocol/actions/invocation.ts'
import type { JsonObject } from '../../protocol/common.ts'
import type { Chain } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { RunRecord } from '../../protocol/loops/record.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import type { RunEvent } from '../../protocol/runs/events.ts'
import { type RunStep, terminal } from '../../protocol/runs/schema.ts'
import type { Spec, Step } from '../../protocol/workflows/spec.ts'
import type { Tell } from '../actor.ts'
import { applyBranches, indexAt, rowIn } from './engine/branch-state.ts'
import type { About } from './outbound/source-events.ts'

interface Waiting {
  /** Key of the step that waits. */
  readonly step: string
  /**
   * Unix milliseconds at which the wait ends automatically: the sleep has ended, or the step has
   * timed out.
   */
  readonly due?: number
}
interface Opened extends Waiting {
  /** Id of the wait in the timeline. */
  readonly id: string
}
/** A wait that the timeline shows; the names of the kinds are the `wait_kind` of the API. */
export type OpenWait =
  /**
   * A job. `base`: attempts of the step before this job; `retried`: the last attempt that was
   * reported as retried.
   */
  | (Opened & {
      readonly kind: 'worker'
      readonly job_id: string
      readonly base: number
      readonly retried?: number
    })
  | (Opened & { readonly kind: 'timer'; readonly due: number })
  | (Opened & { readonly kind: 'interaction'; readonly interaction_id: string })
  /** An event. `asked`: the wait is not open yet, because the matcher has not confirmed it. */
  | (Opened & {
      readonly kind: 'event'
      readonly event_type: string
      readonly source_id?: string
      readonly match?: JsonObject
      readonly condition?: string
      readonly asked?: true
    })
  /** A child run. */
  | (Opened & { readonly kind: 'run'; readonly run_id: string })
  /** A loop from which a run was requested. */
  | (Opened & { readonly kind: 'loop'; readonly loop_id: string })
  /** The branches of this step. */
  | (Opened & { readonly kind: 'branches' })
  /**
   * A turn of an agent. `job_id`: the job that looks up its definition; `session_id`: the session
   * that opened it; `judges`: the index of the assertion that it judges.
   */
  | (Opened & {
      readonly kind: 'agent'
      readonly turn_id: string
      readonly job_id?: string
      readonly session_id?: string
      readonly judges?: number
    })
/**
 * The reason why a run does not continue now: an open wait, the delay before the next attempt
 * of a step, or a pause (`pause`). A run that pauses has filled its commit and stays `running`.
 */
export type Wait = OpenWait | (Waiting & { readonly kind: 'retry' | 'pause'; readonly due: number })

/** A signal that no step has consumed yet. */
export interface StoredSignal {
  /** Id of the source event of the signal. */
  readonly id: string
  readonly name: string
  readonly payload: JsonObject
  /** Size of the payload as JSON, in characters. */
  readonly size?: number
  readonly key?: string
}

/** A sequence of steps: the run itself, or one of its branches. */
export interface Place {
  /** Index of the current step. */
  readonly position: number
  /** Attempts of the current step that count against its retry policy; a recovery resets them. */
  readonly tries: number
  readonly wait?: Wait
}
/** An active branch of a `parallel` step, or an active item of a `for_each`. */
export interface Branch extends Place {
  /** Key of the step that contains it, a dot, and its own name or number. */
  readonly key: string
  /** Its index among the branches or items. */
  readonly index: number
  /** Records of its steps, by their own keys. */
  readonly rows: Readonly<Record<string, RunStep>>
  /** Bytes of the large outputs of its steps. */
  readonly size?: number
  /** Present when one of its steps has failed for good. */
  readonly fault?: { readonly error_type: string; readonly error: string }
}
/** The outcome of a branch or item. */
export type Yield =
  | { readonly output: JsonObject }
  | { readonly fault: { readonly error_type: string; readonly error: string } }
/** Progress of the branches of the current step, a `parallel` or `for_each`. */
export interface Join {
  /** Key of the step. */
  readonly step: string
  readonly count: number
  /** The items of a `for_each`. */
  readonly items?: readonly unknown[]
  /** Number of branches begun: of all, or of those in `todo`. */
  readonly next: number
  /** The branches that a later attempt begins; absent: all. */
  readonly todo?: readonly number[]
  readonly done: number
  readonly failed: number
  /** Characters of all outputs so far. */
  readonly size: number
  /** Index of the first branch that completed. */
  readonly winner?: number
}
/** The end of the run, decided before its cleanup runs. */
export interface Ending {
  readonly type: 'run.completed' | 'run.failed' | 'run.cancelled'
  readonly position: number
  readonly step?: string
  readonly payload: JsonObject
  readonly run: Patch<RunRecord>
}
/** The run that started this one. `waits`: the parent receives a message when this run ends. */
interface Parent {
  readonly run_id: string
  readonly waits: boolean
}

/** State of the engine in addition to the records. */
export interface Engine extends Place {
  readonly meta: JsonObject
  readonly config: JsonObject
  readonly priority: number
  readonly fairness_key?: string
  /**
   * Number of step attempts begun over the whole lifetime of the run, those of branches included.
   */
  readonly executed: number
  /** Number of those attempts that belong to branches. */
  readonly aside?: number
  /** Bytes of large outputs, by step key (engine/retained.ts). */
  readonly sizes?: Readonly<Record<string, number>>
  /** 1, plus one for every recovery. */
  readonly attempt: number
  /** Time limit of the run, in Unix milliseconds. */
  readonly wall_deadline?: number
  readonly cancel_reason?: string
  /** Present when the run is cancelled because its loop replaces it with another run. */
  readonly replaced?: true
  /** Open interactions that clients created for this run. */
  readonly asked?: readonly string[]
  readonly ending?: Ending
  /** The end of the run, which takes effect when its loop answers `run.end` in the same commit. */
  readonly leaving?: Ending
  readonly parent?: Parent
  /** Number of ancestors of this run. */
  readonly depth?: number
  /** Depth of the source event that caused the run; absent: no event caused it. */
  readonly cause_depth?: number
  /** Causal chain of that event. */
  readonly chain?: Chain
  /**
   * The principal on whose behalf the run acts; absent: a trigger or an older release started it.
   */
  readonly actor?: ActorOf
  /**
   * Present when the run is a direct call of an action: its only step uses its parameters without
   * rendering them. `timeout`: milliseconds that one attempt may take.
   */
  readonly invoked?: { readonly timeout: number }
  /** Workflows that steps start as child runs, as they were when the root of these runs started. */
  readonly definitions?: Readonly<Record<string, Definition>>
  /**
   * Unix milliseconds at which work continues that did not fit into its commit: branches or a
   * cancellation.
   */
  readonly more_at?: number
  /** The source events that were delivered last, to detect repeats. */
  readonly delivered?: readonly string[]
  /** Present while the run waits for its loop to let it start, or continue after a recovery. */
  readonly held?: 'start' | 'resume' | 'retry'
  /** The trigger that started the run. */
  readonly trigger_id?: string
  /** Ids of the usages that were recorded last, to detect repeats. */
  readonly usages?: readonly string[]
  /**
   * Present when the loop has spent its daily budget, in credits: no further step begins. `true` in
   * runs of older releases.
   */
  readonly spent_out?: true | { readonly used: number; readonly limit: number }
  /** The agent for steps that specify none. */
  readonly agent_id?: string
}

export interface RunState {
  readonly record: RunRecord
  readonly spec: Spec
  readonly engine: Engine
  /** Records of the steps that were reached, by step key. */
  readonly steps: Readonly<Record<string, RunStep>>
  /** Signals in the order of arrival. */
  readonly signals: readonly StoredSignal[]
  /** Source event ids by signal name and idempotency key (`signalKey`). */
  readonly keys: Readonly<Record<string, string>>
  /**
   * Active branches, in the order in which they began. A list, because it is copied with every
   * event and is short.
   */
  readonly branches?: readonly Branch[]
  readonly join?: Join
  /** Outcomes of branches and items, by index, in chunks of CHUNK; null: no outcome yet. */
  readonly yields?: readonly (readonly (Yield | null)[])[]
}

/** The private note of an event: changes that only the engine sees. */
export interface Note {
  readonly engine?: Patch<Engine>
  /** A signal arrived. */
  readonly store?: StoredSignal
  /** Id of the signal that a step consumed. */
  readonly take?: string
  /** Id of a wait that the matcher can drop. */
  readonly unwatch?: string
  /** Key of the branch that the event concerns; the step's record is stored there. */
  readonly at?: string
  /** Changes of that branch; null: it has ended. */
  readonly place?: Patch<Branch> | null
  /**
   * Changes of the join; null: its step has ended, and the outcomes of its branches are dropped.
   */
  readonly join?: Patch<Join> | null
  /** Facts about the run for its source events. */
  readonly about?: About
  /** The outcome of a branch. */
  readonly gave?: { readonly index: number; readonly what: Yield }
  /** A command to an actor of any shard, sent after the commit. */
  readonly tell?: Tell
}
/** The part of the note for a wait that ends: the matcher must drop the wait if it stores it. */
export const unwatching = (wait: Wait | undefined): Pick<Note, 'unwatch'> =>
  wait?.kind === 'event' && !wait.event_type.startsWith('signal.') ? { unwatch: wait.id } : {}
/** Whether a wait is not open yet. */
export const isAsked = (wait: Wait | undefined): boolean =>
  wait?.kind === 'event' && wait.asked === true
/** Converts a note to the form stored in an event. */
export const note = (content: Note): JsonObject => ({ ...content })

/** The key under which a signal's idempotency key is stored: each signal name has separate keys. */
export const signalKey = (name: string, key: string): string => `${name} ${key}`

/** Creates the state of a run from its first event. */
export function created(_: RunState | null, event: RunEvent): RunState {
  const { engine } = (event.private ?? {}) as Note
  if (!event.run || !event.spec || !engine)
    throw new Error('run.created without its record, spec or engine')
  return {
    record: patch({} as RunRecord, event.run),
    spec: event.spec,
    engine: patch({} as Engine, engine),
    steps: {},
    signals: [],
    keys: {},
  }
}

/** Applies any later event. */
export function apply(state: RunState | null, event: RunEvent): RunState {
  if (!state) throw new Error(`${event.type} before run.created`)
  const note = (event.private ?? {}) as Note
  const { engine, store, take } = note
  const { step, row } = event
  const next: { -readonly [K in keyof RunState]: RunState[K] } = {
    record: patch(state.record, event.run),
    spec: state.spec,
    engine: patch(state.engine, engine),
    steps:
      step !== undefined && row && note.at === undefined
        ? { ...state.steps, [step]: patch(rowOf(state, step) ?? ({} as RunStep), row) }
        : state.steps,
    signals: store
      ? [...state.signals, store]
      : take !== undefined
        ? state.signals.filter((signal) => signal.id !== take)
        : state.signals,
    keys:
      store?.key !== undefined
        ? { ...state.keys, [signalKey(store.name, store.key)]: store.id }
        : state.keys,
  }
  if (state.branches || state.join || note.at !== undefined || note.join)
    applyBranches(next, state, event, note)
  return next
}
/** The key of a step: its id, else its index as text. */
export const keyOf = (step: Step, index: number): string => step.id ?? String(index)
/** Returns an active branch. */
export const branchAt = ({ branches = [] }: RunState, at: string): Branch | undefined =>
  branches[indexAt(branches, at)]
/**
 * Returns the record of a step, once the run has reached it. Authors choose the keys, so
 * `constructor` is a valid key. @param at key of its branch, if it has one.
 */
export const rowOf = (state: RunState, key: string, at?: string): RunStep | undefined => {
  if (at === undefined) return getOwn(state.steps, key)
  const branch = branchAt(state, at)
  return branch && rowIn(branch, key)
}
/** Whether the run has ended or is ending; a failed run may be recovered. */
export const hasEnded = ({ record, engine }: RunState): boolean =>
  terminal.has(record.status) || engine.leaving !== undefined

/**
 * The run itself (key `undefined`) and every active branch, with its key. The number is bounded by
 * the allowed concurrency.
 */
export function placesOf(state: RunState): [at: string | undefined, place: Place][] {
  const main: [undefined, Place] = [undefined, state.engine]
  return state.branches
    ? [main, ...state.branches.map((branch): [string, Place] => [branch.key, branch])]
    : [main]
}

/**
 * Time at which the run needs its next wake, in Unix milliseconds. A run with a requested
 * cancellation has no timers: its jobs end within a lease, and the run ends with them. Only its
 * cleanup may wait for a time.
 */
export function deadline(state: RunState | null): number | undefined {
  if (!state || hasEnded(state)) return undefined
  const { wait, wall_deadline, more_at, ending, held } = state.engine
  if (held || (state.record.cancel_requested && !ending)) return more_at
  let first = Math.min(
    wait?.due ?? Infinity,
    ending ? Infinity : (wall_deadline ?? Infinity),
    more_at ?? Infinity,
  )
  if (state.branches)
    for (const branch of state.branches) first = Math.min(first, branch.wait?.due ?? Infinity)
  return first === Infinity ? undefined : first
}
