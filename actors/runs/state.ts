/**
 * What a run is between two commands: plain JSON, and the one function that applies an event to it.
 *
 * Invariants:
 * S1. Every field of the run record and of a step's record comes from the `run` and `row` patches of events, every field
 *     of the engine from their `private` note. `apply` knows no rule; the views apply the same patches.
 * S2. A run that has not ended has `engine.wait` after every command, and its status is then `suspended`; but for a wait for an
 *     event it is `running` until the matcher knows of it, and also while it only pauses,
 *     and while it is `held` in the line of its loop it is `queued` and waits for nothing else.
 * S3. `engine.position` is the index of the step that runs or waits, or the number of steps when all are done. With
 *     `engine.ending` it is an index of the cleanup steps, and the step that the run ended at is in there.
 * S4. The outputs of finished steps are the `result` of their records; nothing keeps them twice.
 * S5. Branches and items under way are places of their own (`branches`), with the records of their steps; of one that is
 *     over only what it gave is kept (`join`), in chunks, so that no event costs more because many items came before it.
 */
import type { Chain } from '../../protocol/events/sources.ts'
import type { ActorOf } from '../../protocol/actions/invocation.ts'
import type { JsonObject } from '../../protocol/common.ts'
import type { Definition } from '../../protocol/access/directory.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { patch, type Patch } from '../../protocol/patch.ts'
import { terminal, type RunStep } from '../../protocol/runs/schema.ts'
import type { RunEvent } from '../../protocol/runs/events.ts'
import type { RunRecord } from '../../protocol/loops/record.ts'
import type { Spec, Step } from '../../protocol/workflows/spec.ts'
import type { Tell } from '../actor.ts'
import { applyBranches, indexAt, rowIn } from './engine/branch-state.ts'
import type { About } from './outbound/source-events.ts'

interface Waiting {
  /** Key of the step that waits. */
  readonly step: string
  /** Unix milliseconds at which it ends by itself: the sleep is over, or the step has timed out. */
  readonly due?: number
}
interface Opened extends Waiting {
  /** Id of the wait, as the timeline shows it. */
  readonly id: string
}
/** A wait that the timeline shows; the names of the kinds are the wire's `wait_kind`. */
export type OpenWait =
  /** A job. `base`: attempts the step had used before this job; `retried`: the last attempt that was reported as retried. */
  | (Opened & {
      readonly kind: 'worker'
      readonly job_id: string
      readonly base: number
      readonly retried?: number
    })
  | (Opened & { readonly kind: 'timer'; readonly due: number })
  | (Opened & { readonly kind: 'interaction'; readonly interaction_id: string })
  /** An event. `asked`: not open yet; the matcher was told of it and has not answered. */
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
  /** A loop that was asked for a run. */
  | (Opened & { readonly kind: 'loop'; readonly loop_id: string })
  /** The branches of this step. */
  | (Opened & { readonly kind: 'branches' })
  /** A turn of an agent. `job_id`: what it runs with is being looked up; `session_id`: it was opened there; `judges`: the assertion that it is for. */
  | (Opened & {
      readonly kind: 'agent'
      readonly turn_id: string
      readonly job_id?: string
      readonly session_id?: string
      readonly judges?: number
    })
/**
 * What a suspended run waits for: a wait, the delay before the next attempt of a step, or only the next turn (`pause`): it
 * has done as much as one commit takes, and is `running`.
 */
export type Wait = OpenWait | (Waiting & { readonly kind: 'retry' | 'pause'; readonly due: number })

/** A signal that no step has consumed yet. */
export interface StoredSignal {
  /** The source event it became. */
  readonly id: string
  readonly name: string
  readonly payload: JsonObject
  /** Characters of the payload as JSON. */
  readonly size?: number
  readonly key?: string
}

/** Where steps are taken one after another: the run itself, or one of its branches. */
export interface Place {
  /** Index of the step that is taken. */
  readonly position: number
  /** Attempts of the current step that count against its retry policy; a recovery starts over. */
  readonly tries: number
  readonly wait?: Wait
}
/** A branch of a `parallel` step, or an item of a `for_each`, that is under way. */
export interface Branch extends Place {
  /** That of the step that has it, a dot, and its own name or number. */
  readonly key: string
  /** Its number among the branches or items. */
  readonly index: number
  /** Records of its steps, by their own keys. */
  readonly rows: Readonly<Record<string, RunStep>>
  /** Bytes of the large outputs of its steps. */
  readonly size?: number
  /** A step of it has failed for good. */
  readonly fault?: { readonly error_type: string; readonly error: string }
}
/** What a branch or item gave. */
export type Yield =
  | { readonly output: JsonObject }
  | { readonly fault: { readonly error_type: string; readonly error: string } }
/** What the step that the run is at, a `parallel` or `for_each`, knows of its branches. */
export interface Join {
  /** Key of the step. */
  readonly step: string
  readonly count: number
  /** The items of a `for_each`. */
  readonly items?: readonly unknown[]
  /** How many were begun: of all, or of those in `todo`. */
  readonly next: number
  /** A later attempt begins only these. */
  readonly todo?: readonly number[]
  readonly done: number
  readonly failed: number
  /** Characters of all outputs so far. */
  readonly size: number
  /** The first that completed. */
  readonly winner?: number
}
/** How the run will have ended once its cleanup is done. */
export interface Ending {
  readonly type: 'run.completed' | 'run.failed' | 'run.cancelled'
  readonly position: number
  readonly step?: string
  readonly payload: JsonObject
  readonly run: Patch<RunRecord>
}
/** The run that started this one and, when it waits for it, hears of its end. */
interface Parent {
  readonly run_id: string
  readonly waits: boolean
}

/** What the engine remembers besides the records. */
export interface Engine extends Place {
  readonly meta: JsonObject
  readonly config: JsonObject
  readonly priority: number
  readonly fairness_key?: string
  /** Attempts of steps begun so far, over the whole life of the run, those of branches included. */
  readonly executed: number
  /** Those of them that were steps of branches. */
  readonly aside?: number
  /** Bytes of large outputs, by step key: retained.ts. */
  readonly sizes?: Readonly<Record<string, number>>
  /** 1, and one more for every recovery. */
  readonly attempt: number
  /** Unix milliseconds. */
  readonly wall_deadline?: number
  readonly cancel_reason?: string
  /** It is cancelled because its loop starts another one in its place. */
  readonly replaced?: true
  /** Interactions that clients opened for this run and that are not over. */
  readonly asked?: readonly string[]
  readonly ending?: Ending
  /** How it ends as soon as its loop, which was told, says so: in the same commit. */
  readonly leaving?: Ending
  readonly parent?: Parent
  /** How many runs are above this one. */
  readonly depth?: number
  /** Depth of the source event that caused the run; absent: none did. */
  readonly cause_depth?: number
  /** Of that event. */
  readonly chain?: Chain
  /** On whose behalf it runs; absent: a trigger started it, or an older release. */
  readonly actor?: ActorOf
  /** It is a direct call of an action: its one step takes its parameters as they are, and one attempt may last so many milliseconds. */
  readonly invoked?: { readonly timeout: number }
  /** Workflows that `loop` steps name, as they were when the first of these runs started. */
  readonly definitions?: Readonly<Record<string, Definition>>
  /** Branches could go on, but one commit holds only so many events: when to take them up again, Unix milliseconds. */
  readonly more_at?: number
  /** Source events that were delivered last, so that a repeat is known. */
  readonly delivered?: readonly string[]
  /** The run waits for its turn: to begin, or to go on in this way. */
  readonly held?: 'start' | 'resume' | 'retry'
  /** The trigger that started it. */
  readonly trigger_id?: string
  /** Ids of the usages that were recorded last, so that a repeat is known. */
  readonly usages?: readonly string[]
  /** The loop has spent its daily budget, in credits: the next step does not begin. `true` in runs of older releases. */
  readonly spent_out?: true | { readonly used: number; readonly limit: number }
  /** The agent that is asked by steps that name none. */
  readonly agent_id?: string
}

export interface RunState {
  readonly record: RunRecord
  readonly spec: Spec
  readonly engine: Engine
  /** Records of the steps that were reached, by step key. */
  readonly steps: Readonly<Record<string, RunStep>>
  /** In arrival order. */
  readonly signals: readonly StoredSignal[]
  /** Source event by signal name and idempotency key (`signalKey`). */
  readonly keys: Readonly<Record<string, string>>
  /** Branches under way, as they began. A list, because it is copied with every event and is short. */
  readonly branches?: readonly Branch[]
  readonly join?: Join
  /** What branches and items gave, by number, in chunks of CHUNK; null: nothing yet. */
  readonly yields?: readonly (readonly (Yield | null)[])[]
}

/** The private note of an event: changes that only the engine sees. */
export interface Note {
  readonly engine?: Patch<Engine>
  /** A signal arrived. */
  readonly store?: StoredSignal
  /** Id of the signal that a step consumed. */
  readonly take?: string
  /** The matcher need not know this wait any more. */
  readonly unwatch?: string
  /** The branch that the event is about; its record is then kept there. */
  readonly at?: string
  /** Changes of that branch; null: it is over. */
  readonly place?: Patch<Branch> | null
  /** Changes of the join; null: its step is over, and what its branches gave is forgotten. */
  readonly join?: Patch<Join> | null
  /** What source events say of the run. */
  readonly about?: About
  /** What a branch gave. */
  readonly gave?: { readonly index: number; readonly what: Yield }
  /** What an actor elsewhere is told, after the commit. */
  readonly tell?: Tell
}
/** What the note says of a wait that ends: the matcher of events is told when it was told of the wait. */
export const unwatching = (wait: Wait | undefined): Pick<Note, 'unwatch'> =>
  wait?.kind === 'event' && !wait.event_type.startsWith('signal.') ? { unwatch: wait.id } : {}
/** Whether a wait is not open yet. */
export const isAsked = (wait: Wait | undefined): boolean =>
  wait?.kind === 'event' && wait.asked === true
/** A note as an event carries it. */
export const note = (content: Note): JsonObject => ({ ...content })

/** Where a signal's idempotency key is remembered: keys are separate for every name. */
export const signalKey = (name: string, key: string): string => `${name} ${key}`

/** Begin the state of a run. */
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

/** Apply any later event. */
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
/** A branch that is under way. */
export const branchAt = ({ branches = [] }: RunState, at: string): Branch | undefined =>
  branches[indexAt(branches, at)]
/** The record of a step, once the run has reached it. Keys are the author's, so `constructor` is a key like any other. @param at its branch, if it has one. */
export const rowOf = (state: RunState, key: string, at?: string): RunStep | undefined => {
  if (at === undefined) return getOwn(state.steps, key)
  const branch = branchAt(state, at)
  return branch && rowIn(branch, key)
}
/** Whether the run has ended, or is ending; a failed one may be recovered. */
export const hasEnded = ({ record, engine }: RunState): boolean =>
  terminal.has(record.status) || engine.leaving !== undefined

/** Every place of the run with its key, `undefined` for the run itself. There are at most as many as may be under way at once. */
export function placesOf(state: RunState): [at: string | undefined, place: Place][] {
  const main: [undefined, Place] = [undefined, state.engine]
  return state.branches
    ? [main, ...state.branches.map((branch): [string, Place] => [branch.key, branch])]
    : [main]
}

/**
 * When the run wants to be woken, in Unix milliseconds. A run that was asked to cancel has no timers: its jobs end within a
 * lease, and then so does the run; only its cleanup may wait for a time.
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
