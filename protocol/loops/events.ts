/** Events of a loop, and the commands that loops, runs and the edge exchange about it. */

import type { Definition } from '../access/directory.ts'
import type { ActorOf } from '../actions/invocation.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Chain, Firing, Overrun, SourceEvent, Watch } from '../events/sources.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { Spec } from '../workflows/spec.ts'
import type { QueueReason, RunSource } from './run.ts'
import type { Loop } from './schema.ts'
import type { LoopStanding } from './standing.ts'

/**
 * The next firing of a schedule in Unix milliseconds; `anchor`: the time from which its interval is
 * counted.
 */
export interface Clock {
  readonly next: number
  readonly anchor: number
}
/** The data derived from a loop when it is saved. */
export interface Derived {
  readonly version: { readonly id: string; readonly number: number }
  /** Workflows that its steps refer to, directly or through other workflows, as of that time. */
  readonly definitions: Readonly<Record<string, Definition>>
  /** Ids of its triggers by key. */
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
   * `derived` is present with a new version. `secrets` contains all sealed secrets by trigger key,
   * and is present when any of them changed.
   */
  | (Event & {
      readonly type: 'loop.updated'
      readonly id: string
      readonly name: string
      readonly loop: Patch<Loop>
      readonly changes: Changes
      readonly derived?: Derived
      readonly secrets?: Readonly<Record<string, string>>
      /** The principal that changed it; absent in events of earlier releases. */
      readonly editor?: string
    })
  | (Event & { readonly type: 'loop.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'loop.auto_paused'
      readonly id: string
      /**
       * The run whose failure reached the threshold, or the run that caused the event; empty when
       * no run did.
       */
      readonly run_id: string
      readonly consecutive_failures?: number
      readonly threshold?: number
      /** The reason for the pause, when it is not failed runs. */
      readonly reason?: string
      /** The depth of its source event; absent in events of earlier releases, where it is 1. */
      readonly depth?: number
      readonly chain?: Chain
      /** The record of the failed run, for the source event. */
      readonly record?: JsonObject
    })
  /** A run starts, or enters the queue of the loop. `fire`: the firing that this settles. */
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
  /** The run's turn has come. */
  | (Event & { readonly type: 'run.promoted'; readonly run_id: string })
  /** The run was asked to yield to another run; a waiting run leaves the queue at once. */
  | (Event & { readonly type: 'run.displaced'; readonly run_id: string })
  /** The run has ended. `failures`: the current number of consecutive failed runs. */
  | (Event & { readonly type: 'run.left'; readonly run_id: string; readonly failures: number })
  /**
   * A trigger fired but started no run. `source_event_id`: the event it fired for; absent for a
   * schedule.
   */
  | (Event & {
      readonly type: 'trigger.skipped'
      readonly trigger_id: string
      readonly fire: string
      readonly reason: string
      readonly source_event_id?: string
    })
  /**
   * A firing waits until the service has checked whether `editor` may read the private session of
   * its event.
   */
  | (Event & {
      readonly type: 'firing.held'
      readonly job_id: string
      readonly firing: HeldFiring
    })
  | (Event & { readonly type: 'firing.ended'; readonly job_id: string })
  /** The firing is dropped, because too many firings already wait. */
  | (Event & {
      readonly type: 'firing.dropped'
      readonly trigger_id: string
      readonly source_event_id: string
    })
  | (Event & {
      readonly type: 'schedules.set'
      readonly clocks: Readonly<Record<string, Clock | null>>
    })
  /** Runs spent money: `milli` thousandths of a credit, in a window that started at `at`. */
  | (Event & { readonly type: 'credits.spent'; readonly at: number; readonly milli: number })
  /** Work remains that does not fit in one commit. */
  | (Event & { readonly type: 'loop.busy'; readonly more_at: number | null })
  /** The complete new list of triggers that watch events. */
  | (Event & {
      readonly type: 'triggers.watched'
      readonly loop_id: string
      readonly version: number
      readonly triggers: readonly Watch[]
    })
  /**
   * The organization slot of an admitted run: the loop requests the slot, receives it, declines it
   * for now, or returns it.
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
   * The state of the loop, reported to its project; `organization` is empty as long as it is
   * unknown.
   */
  | (Event & LoopStanding & { readonly type: 'loop.stands'; readonly organization: string })
  | (Event & {
      readonly type: 'handle.bound' | 'handle.freed'
      readonly handle: string
      readonly loop_id: string
      readonly trigger_id: string
      readonly organization: string
    })
  /** The run whose step requested a run receives the outcome. */
  | (Event & {
      readonly type: 'child.answered'
      readonly to: string
      readonly wait_id: string
      readonly run_id?: string
      readonly fault?: { readonly error_type: string; readonly error: string }
    })

/** The data that a loop passes to a run that it opens. */
export interface RunOpening {
  readonly loop: {
    readonly id: string
    readonly version_id: string
    readonly version: number
    readonly name: string
  }
  readonly spec: Spec
  /** The agent for steps that name none. */
  readonly agent_id?: string
  readonly definitions: Readonly<Record<string, Definition>>
  readonly event: JsonObject
  readonly config: JsonObject
  readonly meta: JsonObject
  readonly source: RunSource
  /** The principal on whose behalf it runs: the user or run that started it; absent: a trigger. */
  readonly actor?: ActorOf
  /**
   * The principal that started the requesting run; absent: the principal that caused this command.
   */
  readonly initiated_by?: string
  /** The budget of the run in thousandths of a credit. */
  readonly budget?: number
  /** The run waits in the queue for this reason. */
  readonly queue_reason?: QueueReason
  /** The organization's limit on concurrent runs of loops. */
  readonly plan_concurrency_limit?: number
  /** The run starts in a separate commit. */
  readonly later?: true
  readonly parent?: { readonly run_id: string; readonly loop_id?: string; readonly step: string }
  /** The number of runs above it, or between it and an event that no run caused. */
  readonly depth: number
  /** The causal chain of the event that caused it. */
  readonly chain?: Chain
}
/** The request of a run's step to a loop. */
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
  /** The causal chain of the event that caused the run. */
  readonly chain?: Chain
  /** The principal on whose behalf the run makes the request. */
  readonly actor?: ActorOf
  /** The principal that started the requesting run, and the source of that run. */
  readonly initiated_by?: string
  readonly source?: RunSource
}

/** A firing for an event of a private session, without the payload of the event. */
export interface HeldFiring {
  readonly trigger_id: string
  /** The loop's last editor when the trigger fired. */
  readonly editor: string
  readonly source: Omit<SourceEvent, 'event' | 'meta' | 'record'> & {
    readonly private_session: string
  }
}

/**
 * Commands handled by a loop, in addition to its rows. All are total: a late, repeated or foreign
 * message changes nothing.
 */
export type LoopCommands = {
  /** From the matcher, and from the errand of a held firing. */
  'trigger.fire': { input: Firing; reply: undefined }
  /** From the queue: the errand of a firing has ended. */
  'job.settled': { input: { job_id: string }; reply: undefined }
  /** From the matcher: pause. */
  'loop.stop': { input: Overrun; reply: undefined }
  /** From a step of a run, possibly in another shard: start a run. */
  'loop.ask': { input: ChildRequest; reply: undefined }
  /**
   * From a run of this loop, in the commit that ends it. A failing run ends only after it receives
   * `run.end`. `known`: the run was opened twice, and nothing ended.
   */
  'run.left': {
    input: {
      run_id: string
      status: 'completed' | 'failed' | 'cancelled' | 'known'
      /** The depth of the run's source events. */
      depth?: number
      chain?: Chain
      /** The record of a failing run, for the source event that reports the pause of the loop. */
      record?: JsonObject
    }
    reply: undefined
  }
  /** From a failed run of this loop that is recovered: it starts again when its turn comes. */
  'run.returns': { input: { run_id: string; trigger_id?: string }; reply: undefined }
  /** From a run of this loop: it has spent this many thousandths of a credit. */
  'run.spent': { input: { run_id: string; milli: number }; reply: undefined }
  /** From a handle that was reserved a while ago: report whether the loop uses it. */
  'handle.settle': { input: { handle: string; organization: string }; reply: undefined }
  /** From the actor that grants the organization's slots: this run may start. */
  'place.give': { input: { run_id: string }; reply: undefined }
  /** From the project, which was deleted: end. */
  'loop.end': { input: { organization: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}

/** Private events of the handle of an HTTP trigger. */
export type HandleEvent =
  | (Event & {
      readonly type: 'handle.reserved'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly until: number
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
 * Commands handled by the handle of an HTTP trigger. `handle.reserve` is refused while another loop
 * has the handle; the others are total.
 */
export type HandleCommands = {
  'handle.reserve': {
    input: { handle: string; project: string; loop_id: string }
    reply: { until: number }
  }
  'handle.bind': {
    input: { handle: string; loop_id: string; trigger_id: string; project: string }
    reply: undefined
  }
  'handle.free': { input: { loop_id: string; trigger_id?: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** The owner of a handle's trigger. */
export interface HandleOwner {
  readonly project: string
  readonly loop_id: string
  readonly trigger_id: string
}
/** The data that the edge adds to the commands that save a loop. */
export interface Saving {
  readonly organization: string
  /** Workflows that steps refer to; absent when the request has no steps. */
  readonly definitions?: Readonly<Record<string, Definition>>
  /** The expiry of each reservation in Unix milliseconds, by handle. */
  readonly reserved?: Readonly<Record<string, number>>
  /** Sealed signing secrets by trigger key; `true` leaves a secret unchanged. */
  readonly secrets?: Readonly<Record<string, string | true>>
}
