/**
 * State of a run between two commands, as plain JSON, and the single function that applies an event
 * to it. The decisions are elsewhere. This file contains no rules.
 *
 * Invariants:
 * S1. The run record and the records of steps change only by the `run` and `row` patches of events,
 *     which the views apply too. The rest of the state comes from `run.created` and changes only by
 *     the `private` notes of events.
 * S2. A run that has not ended has `engine.wait` after every command, and its status is then
 *     `suspended`. There are two exceptions. A run that pauses, or waits for an event that the
 *     matcher has not confirmed, is `running`. A run that its loop holds (`held`) is `queued` and
 *     has no wait.
 * S3. `engine.position` is the index of the current step. After the last step, it is the number of
 *     steps. While `engine.ending` is present, it is an index into the cleanup steps, and
 *     `engine.ending` contains the position at which the run ended.
 * S4. The engine keeps no copy of the output of a step, which is in the `result` of its record.
 * S5. Each active branch or item has its own position and its own step records (`branches`). When
 *     it completes or fails, only its outcome remains (`yields`). Outcomes are stored in chunks, so
 *     that the cost of an event does not grow with the number of earlier items.
 */

import type { Definition } from '../../protocol/access/directory.ts'
import type { ActorOf } from '../../protocol/actions/invocation.ts'
import type { JsonObject } from '../../protocol/common.ts'
import type { Chain } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { RunRecord } from '../../protocol/loops/record.ts'
import type { Repository } from '../../protocol/loops/repositories.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import type { RunEvent } from '../../protocol/runs/events.ts'
import { type RunStep, terminal } from '../../protocol/runs/schema.ts'
import type { AgentBundle } from '../../protocol/runs/turns.ts'
import type { Spec, Step } from '../../protocol/workflows/spec.ts'
import type { Tell } from '../actor.ts'
import { applyBranches, indexAt, rowIn } from './engine/branch-state.ts'
import type { SourceEventFacts } from './outbound/source-events.ts'

interface Waiting {
  /** Key of the step that waits. */
  readonly step: string
  /**
   * Unix milliseconds at which the wait ends automatically, for instance because the sleep ends or
   * the step times out.
   */
  readonly due?: number
}
interface Opened extends Waiting {
  /** Id of the wait in the timeline. */
  readonly id: string
}
/** A wait that the timeline shows; `kind` is the `wait_kind` of the API. */
export type OpenWait =
  /**
   * A wait for a job. `base`: number of the step's attempts before this job; `retried`: number of
   * the job's last attempt that was reported as retried.
   */
  | (Opened & {
      readonly kind: 'worker'
      readonly job_id: string
      readonly base: number
      readonly retried?: number
    })
  /** A sleep. `times_out`: at `due`, the step times out instead of completing. */
  | (Opened & { readonly kind: 'timer'; readonly due: number; readonly times_out?: true })
  | (Opened & { readonly kind: 'interaction'; readonly interaction_id: string })
  /**
   * A wait for an event. `asked`: set while the wait is not open, because the matcher has not
   * confirmed it yet.
   */
  | (Opened & {
      readonly kind: 'event'
      readonly event_type: string
      readonly source_id?: string
      readonly match?: JsonObject
      readonly condition?: string
      readonly asked?: true
    })
  /** A wait for the end of a child run. */
  | (Opened & { readonly kind: 'run'; readonly run_id: string })
  /** A wait for the reply of a loop from which a run was requested. */
  | (Opened & { readonly kind: 'loop'; readonly loop_id: string })
  /** A wait for the branches of the step. */
  | (Opened & { readonly kind: 'branches' })
  /**
   * A wait for a turn of an agent. `job_id`: the job that looks up the turn's definition, until the
   * turn is opened. `session_id`: the session of the opened turn. `judges`: the index of the
   * assertion that the turn judges.
   */
  | (Opened & {
      readonly kind: 'agent'
      readonly turn_id: string
      readonly job_id?: string
      readonly session_id?: string
      readonly judges?: number
    })
/**
 * The reason why a run or branch does not continue now. It is a wait that the timeline shows, the
 * delay before the next attempt of a step (`retry`), or a pause (`pause`). A run pauses when its
 * next steps belong to a later commit. Its status stays `running`.
 */
export type Wait = OpenWait | (Waiting & { readonly kind: 'retry' | 'pause'; readonly due: number })

/** A signal that no step has consumed yet. */
export interface PendingSignal {
  /** Id of the source event of the signal. */
  readonly id: string
  readonly name: string
  readonly payload: JsonObject
  /** Size of the payload as JSON, in characters. */
  readonly size?: number
  readonly key?: string
}

/**
 * The progress in one sequence of steps: the steps of the run itself, or of one of its branches.
 */
export interface Progress {
  /** Index of the current step. */
  readonly position: number
  /** Attempts of the current step that count against its retry policy. A recovery resets them. */
  readonly tries: number
  readonly wait?: Wait
}
/** An active branch of a `parallel` step, or an active item of a `for_each`. */
export interface Branch extends Progress {
  /** Prefix of the containing step (`prefixBelow`), then the branch's id or the item's index. */
  readonly key: string
  /** Index among the branches or items of the step. */
  readonly index: number
  /** Records of the branch's steps, by step key without the prefix `key`. */
  readonly rows: Readonly<Record<string, RunStep>>
  /** Total size in bytes of the large outputs of the branch's steps (`engine/retained.ts`). */
  readonly size?: number
  /** Present when a step of the branch has failed permanently. */
  readonly fault?: { readonly error_type: string; readonly error: string }
}
/** The outcome of a branch or item that has completed or failed. */
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
  /** Number of branches that the current attempt of the step has begun. */
  readonly next: number
  /** Indexes of the branches that a later attempt begins; absent in the first attempt. */
  readonly todo?: readonly number[]
  readonly done: number
  readonly failed: number
  /** Total number of characters of the outputs so far, as JSON. */
  readonly size: number
  /** Index of the first branch that completed. */
  readonly winner?: number
}
/**
 * The decided end of the run. It takes effect after the cleanup and, for a failed run of a loop,
 * after the reply of the loop.
 */
export interface Ending {
  readonly type: 'run.completed' | 'run.failed' | 'run.cancelled'
  readonly position: number
  readonly step?: string
  readonly payload: JsonObject
  readonly run: Patch<RunRecord>
}
/** The parent run. `waits`: whether the parent receives a message when this run ends. */
interface Parent {
  readonly run_id: string
  readonly waits: boolean
}

/** State of the engine in addition to the records. */
export interface Engine extends Progress {
  readonly meta: JsonObject
  readonly config: JsonObject
  readonly priority: number
  readonly fairness_key?: string
  /**
   * Number of step attempts that the run has begun, including those in branches. Retries of a job
   * by its queue are not counted.
   */
  readonly executed: number
  /** Number of the attempts in `executed` that belong to branches. */
  readonly aside?: number
  /** Bytes of large outputs, by step key (engine/retained.ts). */
  readonly sizes?: Readonly<Record<string, number>>
  /** Number of the run's attempt: 1, plus one for every recovery. */
  readonly attempt: number
  /** Unix milliseconds of the run's deadline, set by its time limit or by a recovery. */
  readonly wall_deadline?: number
  readonly cancel_reason?: string
  /** Present when the run is cancelled because its loop replaces it with another run. */
  readonly replaced?: true
  /** Ids of the open interactions that clients created for this run. */
  readonly asked?: readonly string[]
  readonly ending?: Ending
  /**
   * The decided end of a failed run of a loop. It takes effect with the loop's reply `run.end`,
   * which arrives in the same commit.
   */
  readonly leaving?: Ending
  readonly parent?: Parent
  /**
   * Depth of the run: one more than the depth of its parent, or the depth of the source event that
   * started it; absent: 0.
   */
  readonly depth?: number
  /** Depth of the run in its causal chain. Its own source events have the next depth. Absent: 0. */
  readonly cause_depth?: number
  /** Causal chain of the source event that caused the run, directly or through a parent run. */
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
  /**
   * Definitions of the workflows that steps start as child runs, as of the start of the root run.
   */
  readonly definitions?: Readonly<Record<string, Definition>>
  /**
   * Unix milliseconds at which the run continues work that was left to a later commit: the work of
   * its branches, or a cancellation.
   */
  readonly more_at?: number
  /** Ids of the most recently delivered source events, to detect repeats. */
  readonly delivered?: readonly string[]
  /**
   * Present while the run waits for its loop's permission to start, or to continue after a
   * recovery.
   */
  readonly held?: 'start' | 'resume' | 'retry'
  readonly trigger_id?: string
  /** Ids of the most recently recorded usages, to detect repeats. */
  readonly usages?: readonly string[]
  /**
   * Set when the loop has spent its daily budget: the credits used, the limit, and the Unix
   * milliseconds at which the halt ends. In runs of older releases, `true`, or without `until`.
   */
  readonly spent_out?: true | Readonly<{ used: number; limit: number; until?: number }>
  /** The agent for steps that specify none. */
  readonly agent_id?: string
  /** The repositories that the first steps of the run clone, one per step. */
  readonly repositories?: readonly Repository[]
  /** Set if the run's own environment exists, which is notified of the end of the run. */
  readonly own_environment?: true
  /** Ids of the run's named environments, which are notified too. */
  readonly environments?: readonly string[]
}

export interface RunState {
  readonly record: RunRecord
  readonly spec: Spec
  readonly engine: Engine
  /** Records of the steps that were reached, by step key. */
  readonly steps: Readonly<Record<string, RunStep>>
  /** Signals in order of arrival. */
  readonly signals: readonly PendingSignal[]
  /** Source event ids by signal name and idempotency key (`signalKey`). */
  readonly keys: Readonly<Record<string, string>>
  /** Active branches, oldest first. Every event of a branch copies the list, which is short. */
  readonly branches?: readonly Branch[]
  readonly join?: Join
  /** Outcomes of branches by index, in chunks (engine/branch-state.ts); null: no outcome yet. */
  readonly yields?: readonly (readonly (Yield | null)[])[]
  /**
   * For each agent, by id, the definition from the resolver for its first turn in this run. All its
   * later turns in this run use the same definition.
   */
  readonly bundles?: Readonly<Record<string, AgentBundle>>
}

/** The private note of an event: changes and facts that clients do not see. */
export interface Note {
  readonly engine?: Patch<Engine>
  /** A signal that arrived. */
  readonly store?: PendingSignal
  /** Id of the signal that a step consumed. */
  readonly take?: string
  /** Id of a wait that the matcher can drop. */
  readonly unwatch?: string
  /** Key of the branch of the event, which stores the record of the event's step. */
  readonly at?: string
  /** Changes to the branch `at`; null: the branch has ended. */
  readonly place?: Patch<Branch> | null
  /** Changes to the join; null: the step no longer needs the join, and the outcomes are dropped. */
  readonly join?: Patch<Join> | null
  readonly about?: SourceEventFacts
  /** A definition from the resolver that the run keeps. */
  readonly bundle?: AgentBundle
  /** The outcome of a branch. */
  readonly gave?: { readonly index: number; readonly what: Yield }
  /** Commands to actors of any shard, sent after the commit. */
  readonly tell?: Tell
  readonly tells?: readonly Tell[]
}
/**
 * Returns the part of a note that makes the matcher drop a wait that ends. The matcher stores waits
 * for source events, but not for signals.
 */
export const unwatchNote = (wait: Wait | undefined): Pick<Note, 'unwatch'> =>
  wait?.kind === 'event' && !wait.event_type.startsWith('signal.') ? { unwatch: wait.id } : {}
/** Whether a wait is not open yet, because the matcher has not confirmed it. */
export const isAsked = (wait: Wait | undefined): boolean =>
  wait?.kind === 'event' && wait.asked === true
/** Converts a note to the form stored in an event. */
export const note = (content: Note): JsonObject => ({ ...content })

/**
 * Returns the key under which a signal's idempotency key is stored. Each signal name has separate
 * keys.
 */
export const signalKey = (name: string, key: string): string => `${name} ${key}`

/** Creates the state of a run from its first event. */
export function createState(_: RunState | null, event: RunEvent): RunState {
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

/** Applies an event that follows `run.created`. */
export function apply(state: RunState | null, event: RunEvent): RunState {
  if (!state) throw new Error(`${event.type} before run.created`)
  const note = (event.private ?? {}) as Note
  const { engine, store, take, bundle } = note
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
  if (state.bundles || bundle)
    next.bundles = { ...state.bundles, ...(bundle && { [bundle.agent_id]: bundle }) }
  if (state.branches || state.join || note.at !== undefined || note.join)
    applyBranches(next, state, event, note)
  return next
}
/** Returns the key of a step: its id or, if it has none, its index as a string. */
export const keyOf = (step: Step, index: number): string => step.id ?? String(index)
/** Returns the branch with this key, or undefined if no active branch has this key. */
export const branchAt = ({ branches = [] }: RunState, at: string): Branch | undefined =>
  branches[indexAt(branches, at)]
/**
 * Returns the record of a step, or undefined if the run has not reached the step. The author of the
 * definition chooses the keys, so a key may be `constructor`.
 * @param at key of the branch of the step, if it is in a branch.
 */
export const rowOf = (state: RunState, key: string, at?: string): RunStep | undefined => {
  if (at === undefined) return getOwn(state.steps, key)
  const branch = branchAt(state, at)
  return branch && rowIn(branch, key)
}
/**
 * Whether the run has ended, or ends in the current commit (`leaving`). A run in its cleanup has
 * not ended. A failed run may be recovered.
 */
export const hasEnded = ({ record, engine }: RunState): boolean =>
  terminal.has(record.status) || engine.leaving !== undefined

/**
 * Returns the run itself (key `undefined`) and every active branch with its key. The number of
 * active branches is bounded by the allowed concurrency.
 */
export function progressesOf(state: RunState): [at: string | undefined, place: Progress][] {
  const main: [undefined, Progress] = [undefined, state.engine]
  return state.branches
    ? [main, ...state.branches.map((branch): [string, Progress] => [branch.key, branch])]
    : [main]
}
