/**
 * Source events: what happens in a project and may start runs or wake waiting ones. They are published to one actor per
 * project, so they have one order; every consumer sees them at least once.
 */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { EmittedType } from './types.ts'
import type { ProviderName } from './integrations.ts'

/**
 * Runs that may stand between an event and one that no run caused. An event with a greater `depth` starts no run; it still
 * resumes runs that wait for it.
 */
export const MAX_CHAIN_DEPTH = 8

/**
 * How an event came about: the event that nothing in the project caused, and the loops whose runs lie between the two, in order. All events
 * with one `root` are a tree; the number of runs that triggers start for it is limited (docs/loops.md).
 */
export interface Chain {
  /** `sevt_…` */
  readonly root: string
  readonly loops: readonly string[]
}
/** Limits of the runs that triggers start for events that runs caused. */
export interface TriggerLimits {
  /** Runs for events of one tree. */
  readonly per_root: number
  /** Runs of one loop in one minute. */
  readonly per_minute: number
}

/** Unless the operator sets others. */
export const defaultTriggerLimits: TriggerLimits = { per_root: 1000, per_minute: 10_000 }

/** What a producer says. */
export interface Publication {
  readonly event_type: string
  readonly source_kind: string
  readonly source_id: string
  readonly event: JsonObject
  /** Routing fields: scalars and lists of strings. */
  readonly meta: JsonObject
  /**
   * The record that the event is about, as of the event. Deliveries to webhooks carry it; triggers and waits do not read it.
   * Absent: the payload says everything, or an earlier release published the event.
   */
  readonly record?: JsonObject
  /**
   * A repeat with this key within a day publishes nothing and is answered the first id. Absent: the producer says it once, as
   * an effect, whose repeats the receiver knows by their place in the journal.
   */
  readonly dedup_key?: string
  /** How many runs stand between this event and one that nothing in the project caused; 0 for those. */
  readonly depth: number
  /** Absent: no run caused it, or a run that no event caused. */
  readonly chain?: Chain
  /**
   * The id of the private session that the event happened in. Only principals that may read the session are shown the event;
   * it fires triggers and reaches webhooks only if their last editor is one of them. It resumes no waits.
   */
  readonly private_session?: string
  /** `sevt_…`, when the producer has given it one already. */
  readonly id?: string
}
/** What a producer of the service itself says. Signals are named by their senders. */
export interface ServicePublication extends Publication {
  readonly event_type: EmittedType | `signal.${string}` | `${ProviderName}.${string}`
}
/** A published event. `truncated` in its payload: members were too large to be kept. */
export interface SourceEvent extends Omit<Publication, 'dedup_key' | 'id'> {
  /** `sevt_…` */
  readonly id: string
  readonly occurred_at: string
}
/** A trigger as the matcher knows it: of an active loop, enabled. `http` ones watch `http_trigger.received` of their own id. */
export interface Watch {
  readonly trigger_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly condition?: string
}
/** How often the condition of a trigger could not be evaluated, and what was wrong the last time. */
export interface ConditionFaults {
  readonly count: number
  readonly last: { readonly source_event_id: string; readonly at: string; readonly message: string }
}
/** A wait of a run as the matcher knows it, with its templates filled in. The run is delivered only what fits all of it. */
export interface Awaited {
  readonly wait_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly match?: JsonObject
  readonly condition?: string
}
/** The id of what was published, now or by an earlier command with the same key. Empty: nobody listens to what runs say, so it is not kept; or `unsure`. */
export interface Published {
  readonly source_event_id: string
  readonly deduped?: true
  readonly unsure?: Unsure
}
/**
 * A key publishes once within a day, however many keys are used. The actor keeps those of two generations; a view knows all.
 * K1. An actor that may have forgotten keys of the last day publishes nothing under a key that it does not know: it says so, with the
 *     number of its generation.
 * K2. Whoever publishes then asks a view, and sends the same again with what it found. The view has everything from before that
 *     number was told; what came since is in the actor's generation of that number, or the next. An actor that is further by then
 *     says again that it is unsure.
 */
export interface Unsure {
  readonly generation: number
  readonly keys: readonly string[]
}
/** What a view found: the ids that were published under the keys within a day, in the order of `asked`. */
export interface Recalled {
  readonly generation: number
  readonly asked: readonly string[]
  readonly ids: readonly (string | null)[]
}
/** Decided by the `events` actor of a project, whose id is the project's. All are total and harmless when repeated. */
export type SourceCommands = {
  /** From a producer: publish. */
  'source.publish': { input: Publication & { readonly recalled?: Recalled }; reply: Published }
  /** From a loop: these are its triggers that watch events, all of them; `version` orders what comes late. */
  'triggers.set': {
    input: { loop_id: string; version: number; triggers: readonly Watch[] }
    reply: undefined
  }
  /** From a run: it waits for this from now on. Told back by `event.watched`, after which nothing is missed. */
  'wait.watch': { input: { run_id: string; wait: Awaited }; reply: undefined }
  /** From a run: this wait is over. */
  'wait.unwatch': { input: { run_id: string; wait_id: string }; reply: undefined }
  /** From the project, in the same commit: this webhook listens to these types and patterns, to everything when there are none; without `events`, to nothing any more. */
  'hook.set': { input: { webhook_id: string; events?: readonly string[] }; reply: undefined }
}
/** Decided by a loop: a trigger of it fires. Once per trigger and source event, however often it is said. */
export interface Firing {
  readonly trigger_id: string
  readonly source: SourceEvent
  /** The principal that was found to be allowed to read the private session of the event. */
  readonly reader?: string
}

/** Decided by a loop: it pauses, because its triggers would start more runs for events of runs than is allowed. */
export interface Overrun {
  readonly trigger_ids: readonly string[]
  readonly source: SourceEvent
  readonly reason: string
}

/** What happened to the source events of a project, as it is stored. */
export type SourcesEvent =
  | (Event &
      SourceEvent & {
        readonly type: 'source.published'
        readonly dedup_key?: string
        /** Triggers that fire, by loop. */
        readonly fires?: Readonly<Record<string, readonly string[]>>
        /** Triggers that would have fired, by loop, and why each of these loops is paused instead. */
        readonly overruns?: Readonly<Record<string, Pick<Overrun, 'trigger_ids' | 'reason'>>>
        /** Waits that it fits, by run. */
        readonly wakes?: Readonly<Record<string, readonly string[]>>
        /** Why conditions of triggers and waits could not be evaluated, by their ids. */
        readonly faulty?: Readonly<Record<string, string>>
        /** Webhooks that are told, each with the id of the delivery. */
        readonly hooks?: Readonly<Record<string, string>>
      })
  | (Event & {
      readonly type: 'triggers.changed'
      readonly loop_id: string
      readonly version: number
      readonly triggers: readonly Watch[]
    })
  | (Event & { readonly type: 'wait.watched'; readonly run_id: string; readonly wait: Awaited })
  | (Event & { readonly type: 'wait.unwatched'; readonly wait_id: string })
  | (Event & {
      readonly type: 'hook.changed'
      readonly webhook_id: string
      readonly events?: readonly string[]
    })
