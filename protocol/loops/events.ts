/**
 * Events of loops, internal commands of loops and of the handles of HTTP triggers, and the data
 * that these events and commands contain.
 */

import type { Definition } from '../access/directory.ts'
import type { ActorOf } from '../actions/invocation.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Chain, Firing, Overrun, SourceEvent, Watch } from '../events/sources.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { Spec } from '../workflows/spec.ts'
import type { Repository } from './repositories.ts'
import type { QueueReason, RunSource } from './run.ts'
import type { Loop } from './schema.ts'
import type { LoopStanding } from './standing.ts'

/**
 * The time at which a schedule fires next (`next`), and the time from which its interval is counted
 * (`anchor`), both in Unix milliseconds.
 */
export interface Clock {
  readonly next: number
  readonly anchor: number
}
/** Data that is derived from a loop when it is saved. */
export interface Derived {
  readonly version: { readonly id: string; readonly number: number }
  /**
   * The definitions, at the time of saving, of the workflows to which the steps of the loop refer,
   * directly or through other workflows. Each key is the name by which a step refers to the
   * workflow.
   */
  readonly definitions: Readonly<Record<string, Definition>>
  /** Ids of the triggers of the loop, by key. */
  readonly trigger_ids: Readonly<Record<string, string>>
}
export type LoopEvent =
  | (Event &
      Derived & {
        readonly type: 'loop.created'
        readonly id: string
        readonly loop: Loop
        readonly secrets: Readonly<Record<string, string>>
      })
  /**
   * `derived` is present when a new version was created. `secrets` contains all sealed secrets of
   * triggers, by trigger key; absent means unchanged.
   */
  | (Event & {
      readonly type: 'loop.updated'
      readonly id: string
      readonly name: string
      readonly loop: Patch<Loop>
      readonly changes: Changes
      readonly derived?: Derived
      readonly secrets?: Readonly<Record<string, string>>
      /** Id of the principal that changed the loop; absent in events of earlier releases. */
      readonly editor?: string
    })
  | (Event & { readonly type: 'loop.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'loop.auto_paused'
      readonly id: string
      /**
       * Id of the run whose failure reached the threshold, or of the run that published the source
       * event for which the triggers exceeded their limits. Empty when no run caused the pause.
       */
      readonly run_id: string
      readonly consecutive_failures?: number
      readonly threshold?: number
      /** The reason for the pause; absent when consecutive failed runs are the reason. */
      readonly reason?: string
      /**
       * The `depth` of the source event that reports the pause. Absent in events of earlier
       * releases, which means 1.
       */
      readonly depth?: number
      readonly chain?: Chain
      /** The record of the failed run, for the source event that reports the pause. */
      readonly record?: JsonObject
      /** The time of the pause; absent in events of earlier releases. */
      readonly updated_at?: string
    })
  /**
   * A run is admitted (`run.admitted`) or enters the queue of the loop (`run.lined_up`). `fire`:
   * the id of the firing that caused the run.
   */
  | (Event & {
      readonly type: 'run.admitted'
      readonly run_id: string
      readonly trigger_id?: string
      readonly fire?: string
      readonly last_run_at: string
    })
  | (Event & {
      readonly type: 'run.lined_up'
      readonly run_id: string
      readonly trigger_id?: string
      readonly fire?: string
      readonly reason: QueueReason
      readonly last_run_at: string
    })
  /** A run leaves the queue of the loop and is admitted. */
  | (Event & { readonly type: 'run.promoted'; readonly run_id: string })
  /**
   * The loop asks the run to end, for example in favor of another run. A waiting run leaves the
   * queue immediately.
   */
  | (Event & { readonly type: 'run.displaced'; readonly run_id: string })
  /**
   * The run has ended or is about to fail. `failures`: the resulting number of consecutive failed
   * runs.
   */
  | (Event & { readonly type: 'run.left'; readonly run_id: string; readonly failures: number })
  /**
   * A trigger fired but started no run. `source_event_id`: the source event that fired the trigger;
   * absent for a schedule.
   */
  | (Event & {
      readonly type: 'trigger.skipped'
      readonly trigger_id: string
      readonly fire: string
      readonly reason: string
      readonly source_event_id?: string
    })
  /**
   * A firing waits until an executor has checked whether `editor` may read the private session of
   * its source event.
   */
  | (Event & {
      readonly type: 'firing.held'
      readonly job_id: string
      readonly firing: HeldFiring
    })
  | (Event & { readonly type: 'firing.ended'; readonly job_id: string })
  /** A firing is dropped, because too many firings of the loop are held. */
  | (Event & {
      readonly type: 'firing.dropped'
      readonly trigger_id: string
      readonly source_event_id: string
    })
  | (Event & {
      readonly type: 'schedules.set'
      readonly clocks: Readonly<Record<string, Clock | null>>
    })
  /**
   * A run of the loop spent `milli` thousandths of a credit. `at` is the start of the five-minute
   * interval that contains the expense, in Unix milliseconds.
   */
  | (Event & { readonly type: 'credits.spent'; readonly at: number; readonly milli: number })
  /** The daily budget is spent, so active runs are halted until `until`, in Unix milliseconds. */
  | (Event & Readonly<{ type: 'runs.halted'; run_ids: readonly string[]; until: number }>)
  /**
   * The loop continues work that did not fit into one commit, or waits for the daily budget, until
   * `more_at`, in Unix milliseconds. If `more_at` is null, no work remains.
   */
  | (Event & { readonly type: 'loop.busy'; readonly more_at: number | null })
  /** The new list of all triggers that listen to source events. */
  | (Event & {
      readonly type: 'triggers.watched'
      readonly loop_id: string
      readonly version: number
      readonly triggers: readonly Watch[]
    })
  /**
   * The state of an admitted run's slot under the organization-wide limit (`slots.ts`): the loop
   * requests the slot (`wanted`), takes it (`taken`), declines it while the loop is not active
   * (`declined`), or returns it (`returned`).
   */
  | (Event & {
      readonly type: 'place.wanted' | 'place.returned'
      readonly run_id: string
      readonly loop_id: string
      readonly organization: string
    })
  | (Event & { readonly type: 'place.taken'; readonly run_id: string })
  | (Event & {
      readonly type: 'place.declined'
      readonly run_id: string
      readonly organization: string
    })
  /**
   * The state of the loop, which is reported to the project. `organization` is empty until the loop
   * has received the id of the organization.
   */
  | (Event & LoopStanding & { readonly type: 'loop.stands'; readonly organization: string })
  | (Event & {
      readonly type: 'handle.bound' | 'handle.freed'
      readonly handle: string
      readonly loop_id: string
      readonly trigger_id: string
      readonly organization: string
    })
  /**
   * The outcome of a request to start a run (`loop.ask`) is sent to the run whose step made the
   * request.
   */
  | (Event & {
      readonly type: 'child.answered'
      readonly to: string
      readonly wait_id: string
      readonly run_id?: string
      readonly fault?: { readonly error_type: string; readonly error: string }
    })

/** The data that a loop uses to open a run. */
export interface RunOpening {
  readonly loop: {
    readonly id: string
    readonly version_id: string
    readonly version: number
    readonly name: string
  }
  readonly spec: Spec
  /** The repositories that the run clones before its first step. */
  readonly repositories?: readonly Repository[]
  /** Id of the agent for steps that specify none. */
  readonly agent_id?: string
  readonly definitions: Readonly<Record<string, Definition>>
  readonly event: JsonObject
  readonly config: JsonObject
  readonly meta: JsonObject
  readonly source: RunSource
  /**
   * The principal on whose behalf the run works: the principal that started it, or the `actor` of
   * the requesting run. Absent when a trigger started the run.
   */
  readonly actor?: ActorOf
  /**
   * Id of the principal that started the requesting run. If absent, the principal that caused this
   * command is regarded as the one that started the new run.
   */
  readonly initiated_by?: string
  /** The budget of the run in thousandths of a credit. */
  readonly budget?: number
  /** The reason why the run waits in the queue; absent when it does not wait. */
  readonly queue_reason?: QueueReason
  /** The organization's limit on concurrent runs of loops. */
  readonly plan_concurrency_limit?: number
  /** The run starts in a separate commit. */
  readonly later?: true
  readonly parent?: { readonly run_id: string; readonly loop_id?: string; readonly step: string }
  /**
   * The depth of the run. For a child run, it is the depth of the parent plus 1. For a run that a
   * source event started, it is the `depth` of the event. Otherwise, it is 0.
   */
  readonly depth: number
  /** The causal chain of the source events of the run, including this loop. */
  readonly chain?: Chain
}
/** A request from a step of a run to a loop, to start a run of the loop. */
export interface ChildRequest {
  readonly from: {
    readonly run_id: string
    readonly loop_id?: string
    readonly step: string
    readonly wait_id: string
  }
  readonly event: JsonObject
  readonly config: JsonObject
  readonly depth: number
  /** The causal chain of the source events of the requesting run. */
  readonly chain?: Chain
  /** The principal on whose behalf the requesting run works. */
  readonly actor?: ActorOf
  /** Id of the principal that started the requesting run. */
  readonly initiated_by?: string
  /** The source of the requesting run. */
  readonly source?: RunSource
}

/**
 * A firing that waits until the read access to its restricted source event has been checked. The
 * payload, metadata and record of the event are omitted.
 */
export interface HeldFiring {
  readonly trigger_id: string
  /** Id of the principal that last edited the loop before the trigger fired. */
  readonly editor: string
  readonly source: Omit<SourceEvent, 'event' | 'meta' | 'record'>
}

/** Internal commands of a loop. */
export type LoopCommands = {
  /** Fires a trigger. Sent by the `events` actor, or by the errand of a held firing. */
  'trigger.fire': { input: Firing; reply: undefined }
  /** Sent by the queue when the errand of a held firing has ended. */
  'job.settled': { input: { job_id: string }; reply: undefined }
  /** Pauses the loop, because its triggers exceed the limits. Sent by the `events` actor. */
  'loop.stop': { input: Overrun; reply: undefined }
  /** Requests a run of this loop. Sent by a step of a run, possibly in another shard. */
  'loop.ask': { input: ChildRequest; reply: undefined }
  /**
   * Reports that a run of this loop has ended or is about to fail. Sent by the run. A completed or
   * cancelled run sends the command in the commit that ends it. A failing run sends the command
   * earlier, and ends when it receives `run.end`. The status `known` means that the run already
   * existed, and had ended, when the loop tried to start it.
   */
  'run.left': {
    input: {
      run_id: string
      status: 'completed' | 'failed' | 'cancelled' | 'known'
      /** The `depth` of the source events of the run. */
      depth?: number
      chain?: Chain
      /** The record of a failing run, for the source event that reports the pause of the loop. */
      record?: JsonObject
    }
    reply: undefined
  }
  /**
   * Reports that a failed run of this loop is being recovered. Sent by the run, which starts again
   * when the loop admits it.
   */
  'run.returns': { input: { run_id: string; trigger_id?: string }; reply: undefined }
  /**
   * Reports that a run of this loop has spent `milli` more thousandths of a credit. `continues`: the
   * agent that spent them continues its turn with tool calls.
   */
  'run.spent': { input: { run_id: string; milli: number; continues?: true }; reply: undefined }
  /**
   * Binds a handle if a trigger of the loop uses it; otherwise, frees it. Sent by the actor of the
   * handle after the reservation has expired.
   */
  'handle.settle': { input: { handle: string; organization: string }; reply: undefined }
  /** Grants a slot: the run may start. Sent by the actor that grants slots of the organization. */
  'place.give': { input: { run_id: string }; reply: undefined }
  /** Ends the loop. Sent by the project after the project was deleted. */
  'loop.end': { input: { organization: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}

/** Private events of the actor of a handle (`handles.ts`). Times are Unix milliseconds. */
export type HandleEvent =
  | (Event & {
      readonly type: 'handle.reserved'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly until: number
      readonly reservation?: string
    })
  | (Event & {
      readonly type: 'handle.taken'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly trigger_id: string
    })
  | (Event & {
      readonly type: 'handle.questioned'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly organization: string
      readonly until: number
    })
  | (Event & { readonly type: 'handle.released' })
/**
 * Internal commands of the actor of a handle. `handle.reserve` returns the time until which the
 * caller may use the reservation, in Unix milliseconds. `handle.reserve` is refused while another
 * loop has or reserves the handle, and while any loop has or reserves another handle with the same
 * hash. With `reservation`, the id of a request, `handle.free` ends only its reservation.
 */
export type HandleCommands = {
  'handle.reserve': {
    input: { handle: string; project: string; loop_id: string; reservation?: string }
    reply: { until: number }
  }
  'handle.bind': {
    input: { handle: string; loop_id: string; trigger_id: string; project: string }
    reply: undefined
  }
  'handle.free': { input: FreedHandle; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
type FreedHandle = { loop_id: string; trigger_id?: string; reservation?: string }
/** The trigger to which a handle belongs. */
export interface HandleOwner {
  readonly project: string
  readonly loop_id: string
  readonly trigger_id: string
}
/** The data that the gateway adds to commands that save a loop. */
export interface Saving {
  readonly organization: string
  /**
   * The definitions of the workflows to which the steps refer, by the name in the steps; absent if
   * the request contains no steps.
   */
  readonly definitions?: Readonly<Record<string, Definition>>
  /** The expiry of each reservation in Unix milliseconds, by handle. */
  readonly reserved?: Readonly<Record<string, number>>
  /** Sealed signing secrets by trigger key; `true` leaves a secret unchanged. */
  readonly secrets?: Readonly<Record<string, string | true>>
}
