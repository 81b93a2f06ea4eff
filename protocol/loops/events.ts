/** What happens to a loop, and what loops, runs and the edge say to each other about it. */
import type { ActorOf } from '../actions/invocation.ts'
import type { Changes } from '../workflows/rows.ts'
import type { JsonObject } from '../common.ts'
import type { Definition } from '../access/directory.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Chain, Firing, Overrun, SourceEvent, Watch } from '../events/sources.ts'
import type { Spec } from '../workflows/spec.ts'
import type { QueueReason, RunSource } from './run.ts'
import type { Loop } from './schema.ts'
import type { LoopStanding } from './standing.ts'

/** When a schedule fires next, Unix milliseconds; `anchor`: from when its interval is counted. */
export interface Clock {
  readonly next: number
  readonly anchor: number
}
/** What is derived from a loop when it is saved. */
export interface Derived {
  readonly version: { readonly id: string; readonly number: number }
  /** Workflows that its steps name, theirs included, as they were at that time. */
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
  /** `derived` comes with a new version; secrets are sealed, by trigger key, all of them when any changed. */
  | (Event & {
      readonly type: 'loop.updated'
      readonly id: string
      readonly name: string
      readonly loop: Patch<Loop>
      readonly changes: Changes
      readonly derived?: Derived
      readonly secrets?: Readonly<Record<string, string>>
      /** The principal that changed it. Earlier releases did not store it. */
      readonly editor?: string
    })
  | (Event & { readonly type: 'loop.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'loop.auto_paused'
      readonly id: string
      /** The run that was one failure too many, or that caused the event; empty: no run did. */
      readonly run_id: string
      readonly consecutive_failures?: number
      readonly threshold?: number
      /** Why, when its runs did not fail. */
      readonly reason?: string
      /** Of its source event; absent in events of earlier releases: 1. */
      readonly depth?: number
      readonly chain?: Chain
      /** The record of the run that failed, for the source event. */
      readonly record?: JsonObject
    })
  /** A run begins, or takes its place in the line. `fire`: the firing that this settles. */
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
  /** It is its turn. */
  | (Event & { readonly type: 'run.promoted'; readonly run_id: string })
  /** It was told to make place; one that waited leaves the line at once. */
  | (Event & { readonly type: 'run.displaced'; readonly run_id: string })
  /** It has ended; `failures`: failed runs in a row since then. */
  | (Event & { readonly type: 'run.left'; readonly run_id: string; readonly failures: number })
  /** A trigger fired, and no run came of it. `source_event_id`: the event that it fired for, unless that was the time. */
  | (Event & {
      readonly type: 'trigger.skipped'
      readonly trigger_id: string
      readonly fire: string
      readonly reason: string
      readonly source_event_id?: string
    })
  /** A firing waits until it is known whether `editor` may read the private session of its event. */
  | (Event & {
      readonly type: 'firing.held'
      readonly job_id: string
      readonly firing: HeldFiring
    })
  | (Event & { readonly type: 'firing.ended'; readonly job_id: string })
  /** Too many firings wait already. */
  | (Event & {
      readonly type: 'firing.dropped'
      readonly trigger_id: string
      readonly source_event_id: string
    })
  | (Event & {
      readonly type: 'schedules.set'
      readonly clocks: Readonly<Record<string, Clock | null>>
    })
  /** Runs spent money: `milli` thousandths of a credit, in a window that began at `at`. */
  | (Event & { readonly type: 'credits.spent'; readonly at: number; readonly milli: number })
  /** There is more to do than one commit takes. */
  | (Event & { readonly type: 'loop.busy'; readonly more_at: number | null })
  /** The triggers that watch events are these from now on. */
  | (Event & {
      readonly type: 'triggers.watched'
      readonly loop_id: string
      readonly version: number
      readonly triggers: readonly Watch[]
    })
  /** A run that was let in asks for a place in the organization, is given one, is not to be begun now, or has no use for it any more. */
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
  /** How the loop stands, for its project; `organization` as far as it was ever said. */
  | (Event & LoopStanding & { readonly type: 'loop.stands'; readonly organization: string })
  | (Event & {
      readonly type: 'handle.bound' | 'handle.freed'
      readonly handle: string
      readonly loop_id: string
      readonly trigger_id: string
      readonly organization: string
    })
  /** The run whose step asked for a run is told what came of it. */
  | (Event & {
      readonly type: 'child.answered'
      readonly to: string
      readonly wait_id: string
      readonly run_id?: string
      readonly fault?: { readonly error_type: string; readonly error: string }
    })

/** What a loop gives to a run that it opens. */
export interface RunOpening {
  readonly loop: {
    readonly id: string
    readonly version_id: string
    readonly version: number
    readonly name: string
  }
  readonly spec: Spec
  /** Of steps that name no agent. */
  readonly agent_id?: string
  readonly definitions: Readonly<Record<string, Definition>>
  readonly event: JsonObject
  readonly config: JsonObject
  readonly meta: JsonObject
  readonly source: RunSource
  /** On whose behalf it runs: who started it, or the run that did; absent: a trigger. */
  readonly actor?: ActorOf
  /** Who started the run that asked for it; absent: whoever caused this. */
  readonly initiated_by?: string
  /** Thousandths of a credit. */
  readonly budget?: number
  /** It waits in the line, for this reason. */
  readonly queue_reason?: QueueReason
  /** Runs of loops that may be under way in the organization. */
  readonly plan_concurrency_limit?: number
  /** It begins in a commit of its own. */
  readonly later?: true
  readonly parent?: { readonly run_id: string; readonly loop_id?: string; readonly step: string }
  /** How many runs are above it, or between it and an event that no run caused. */
  readonly depth: number
  /** Of the event that caused it. */
  readonly chain?: Chain
}
/** What a step of a run asks of a loop. */
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
  /** Of the event that caused the run. */
  readonly chain?: Chain
  /** On whose behalf the run asks. */
  readonly actor?: ActorOf
  /** Who started the run that asks, and from where. */
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

/** Decided by a loop, besides its rows. All are total: a late, repeated or foreign message changes nothing. */
export type LoopCommands = {
  /** From the matcher, and from the errand of a firing that was held. */
  'trigger.fire': { input: Firing; reply: undefined }
  /** From the queue: the errand of a firing has ended. */
  'job.settled': { input: { job_id: string }; reply: undefined }
  /** From the matcher. */
  'loop.stop': { input: Overrun; reply: undefined }
  /** From a step of a run, perhaps of another shard. */
  'loop.ask': { input: ChildRequest; reply: undefined }
  /** From a run of this loop, in the commit that ends it; one that fails ends when it is told to (`run.end`). `known`: it was opened twice, nothing ended. */
  'run.left': {
    input: {
      run_id: string
      status: 'completed' | 'failed' | 'cancelled' | 'known'
      /** Of source events of the run. */
      depth?: number
      chain?: Chain
      /** Of a run that fails: its record, for the source event that says that the loop is paused. */
      record?: JsonObject
    }
    reply: undefined
  }
  /** From a failed run of this loop that is recovered: it begins again when it is its turn. */
  'run.returns': { input: { run_id: string; trigger_id?: string }; reply: undefined }
  /** From a run of this loop: it has spent so many thousandths of a credit. */
  'run.spent': { input: { run_id: string; milli: number }; reply: undefined }
  /** From a handle that was reserved a while ago: is it used? */
  'handle.settle': { input: { handle: string; organization: string }; reply: undefined }
  /** From the places of the organization: this run may begin. */
  'place.give': { input: { run_id: string }; reply: undefined }
  /** From the project, which is gone: end. */
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
/** Decided by the handle of an HTTP trigger. `handle.reserve` is refused while another loop has it; the others are total. */
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
/** Whose trigger a handle is. */
export interface HandleOwner {
  readonly project: string
  readonly loop_id: string
  readonly trigger_id: string
}
/** What the edge adds to the rows that save a loop. */
export interface Saving {
  readonly organization: string
  /** Workflows that steps name; absent when the request has no steps. */
  readonly definitions?: Readonly<Record<string, Definition>>
  /** Until when reserved handles may be used, Unix milliseconds, by handle. */
  readonly reserved?: Readonly<Record<string, number>>
  /** Sealed signing secrets by trigger key; those that are to stay as they are: `true`. */
  readonly secrets?: Readonly<Record<string, string | true>>
}
