/**
 * What a run is between two commands: plain JSON, and the one function that applies an event to it.
 *
 * Invariants:
 * S1. Every field of the run record and of a step's record comes from the `run` and `row` patches of events, every field
 *     of the engine from their `private` note. `apply` knows no rule; the views apply the same patches.
 * S2. A run that has not ended has `engine.wait` after every command, and its status is then `suspended`.
 * S3. `engine.position` is the index of the step that runs or waits, or the number of steps when all are done.
 * S4. The outputs of finished steps are the `result` of their records; nothing keeps them twice.
 */
import type { Open } from '../../protocol/common.ts'
import { patch, type Patch } from '../../protocol/patch.ts'
import { terminal, type RunEvent, type RunStep, type WorkflowRun } from '../../protocol/api/runs.ts'
import type { Spec, Step } from '../../protocol/spec.ts'

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
  | (Opened & { readonly kind: 'worker'; readonly job_id: string; readonly base: number; readonly retried?: number })
  | (Opened & { readonly kind: 'timer'; readonly due: number })
  | (Opened & { readonly kind: 'interaction'; readonly interaction_id: string })
  | (Opened & { readonly kind: 'event'; readonly event_type: string; readonly match?: Open })
/**
 * What a suspended run waits for: a wait, the delay before the next attempt of a step, or only the next turn (`pause`): it
 * has done as much as one commit takes.
 */
export type Wait = OpenWait | (Waiting & { readonly kind: 'retry' | 'pause'; readonly due: number })

/** A signal that no step has consumed yet. */
export interface StoredSignal {
  /** The source event it became. */
  readonly id: string
  readonly name: string
  readonly payload: Open
  readonly key?: string
}

/** What the engine remembers besides the records. */
export interface Engine {
  readonly meta: Open
  readonly config: Open
  readonly priority: number
  readonly fairness_key?: string
  readonly position: number
  /** Attempts of steps begun so far, over the whole life of the run. */
  readonly executed: number
  /** Attempts of the current step that count against its retry policy; a recovery starts over. */
  readonly tries: number
  /** 1, and one more for every recovery. */
  readonly attempt: number
  /** Unix milliseconds. */
  readonly wall_deadline?: number
  readonly wait?: Wait
  readonly cancel_reason?: string
  /** Interactions that clients opened for this run and that are not over. */
  readonly asked?: readonly string[]
}

export interface RunState {
  readonly record: WorkflowRun
  readonly spec: Spec
  readonly engine: Engine
  /** Records of the steps that were reached, by step key. */
  readonly steps: Readonly<Record<string, RunStep>>
  /** In arrival order. */
  readonly signals: readonly StoredSignal[]
  /** Source event by signal name and idempotency key (`signalKey`). */
  readonly keys: Readonly<Record<string, string>>
}

/** The private note of an event: changes that only the engine sees. */
export interface Note {
  readonly engine?: Patch<Engine>
  /** A signal arrived. */
  readonly store?: StoredSignal
  /** Id of the signal that a step consumed. */
  readonly take?: string
}
/** A note as an event carries it. */
export const note = (content: Note): Open => ({ ...content })

/** Where a signal's idempotency key is remembered: keys are separate for every name. */
export const signalKey = (name: string, key: string): string => `${name} ${key}`

/** Begin the state of a run. */
export function created(_: RunState | null, event: RunEvent): RunState {
  const { engine } = (event.private ?? {}) as Note
  if (!event.run || !event.spec || !engine) throw new Error('run.created without its record, spec or engine')
  return { record: patch({} as WorkflowRun, event.run), spec: event.spec, engine: patch({} as Engine, engine), steps: {}, signals: [], keys: {} }
}

/** Apply any later event. */
export function apply(state: RunState | null, event: RunEvent): RunState {
  if (!state) throw new Error(`${event.type} before run.created`)
  const { engine, store, take } = (event.private ?? {}) as Note
  const { step, row } = event
  return {
    record: patch(state.record, event.run),
    spec: state.spec,
    engine: patch(state.engine, engine),
    steps: step !== undefined && row ? { ...state.steps, [step]: patch(rowOf(state, step) ?? ({} as RunStep), row) } : state.steps,
    signals: store ? [...state.signals, store] : take !== undefined ? state.signals.filter((signal) => signal.id !== take) : state.signals,
    keys: store?.key !== undefined ? { ...state.keys, [signalKey(store.name, store.key)]: store.id } : state.keys,
  }
}

/** The key of a step: its id, else its index as text. */
export const keyOf = (step: Step, index: number): string => step.id ?? String(index)
/** The record of a step, once the run has reached it. Keys are the author's, so `constructor` is a key like any other. */
export const rowOf = (state: RunState, key: string): RunStep | undefined => (Object.hasOwn(state.steps, key) ? state.steps[key] : undefined)
/** Whether the run has ended; a failed one may be recovered. */
export const hasEnded = (state: RunState): boolean => terminal.has(state.record.status)

/**
 * When the run wants to be woken, in Unix milliseconds. A run that was asked to cancel has no timers: its job ends within a
 * lease, and then so does the run.
 */
export function deadline(state: RunState | null): number | undefined {
  if (!state || hasEnded(state) || state.record.cancel_requested) return undefined
  const { wait, wall_deadline } = state.engine
  const times = [wait?.due, wall_deadline].filter((time) => time !== undefined)
  return times.length ? Math.min(...times) : undefined
}

/** What the worker that takes a job needs to know: read when the job is delivered. Null when the run no longer wants it. */
export function jobSpec(state: RunState | null, { job_id }: { job_id: string }): { parameters: Open; action_name: string } | null {
  const wait = state?.engine.wait
  if (!state || wait?.kind !== 'worker' || wait.job_id !== job_id) return null
  const step = state.spec.steps[state.engine.position]
  return step?.kind === 'action' ? { parameters: rowOf(state, wait.step)?.inputs ?? {}, action_name: step.config.action_name } : null
}
