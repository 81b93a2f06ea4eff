/**
 * Source events: events in a project that may start runs or wake waiting ones. They are published
 * to one actor per project, so they have one order; every consumer receives them at least once.
 */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { ProviderName } from './integrations.ts'
import type { EmittedType } from './types.ts'

/**
 * The maximum number of runs between an event and one that no run caused. An event with a greater
 * `depth` starts no run; it still resumes runs that wait for it.
 */
export const MAX_CHAIN_DEPTH = 8

/**
 * The cause of an event: the root event, which nothing in the project caused, and the loops whose
 * runs lie between the two, in order. All events with one `root` form a tree; the number of runs
 * that triggers start for it is limited (docs/loops.md).
 */
export interface Chain {
  /** Id of the root event: `sevt_…`. */
  readonly root: string
  readonly loops: readonly string[]
}
/** Limits of the runs that triggers start for events that were caused by runs. */
export interface TriggerLimits {
  /** Maximum runs for the events of one tree. */
  readonly per_root: number
  /** Maximum runs of one loop per minute. */
  readonly per_minute: number
}

/** The limits that apply unless the operator sets others. */
export const defaultTriggerLimits: TriggerLimits = { per_root: 1000, per_minute: 10_000 }

/** A source event as its producer sends it. */
export interface Publication {
  readonly event_type: string
  readonly source_kind: string
  readonly source_id: string
  readonly event: JsonObject
  /** Routing fields: scalars and lists of strings. */
  readonly meta: JsonObject
  /**
   * The record that the event is about, as of the event. Deliveries to webhooks contain it;
   * triggers and waits do not read it. Absent: the payload is complete, or an earlier release
   * published the event.
   */
  readonly record?: JsonObject
  /**
   * A repeat with this key within a day publishes nothing and is answered with the first id.
   * Absent: the producer sends the event once, as an effect; the receiver recognizes its repeats by
   * their journal position.
   */
  readonly dedup_key?: string
  /**
   * The number of runs between this event and one that nothing in the project caused; 0 for the
   * latter.
   */
  readonly depth: number
  /** Absent: no run caused it, or it was caused by a run that no event caused. */
  readonly chain?: Chain
  /**
   * The id of the private session in which the event happened. Only principals that may read the
   * session see the event. It fires triggers and reaches webhooks only if their last editor is such
   * a principal. It resumes no waits.
   */
  readonly private_session?: string
  /** `sevt_…`, when the producer has already assigned an id. */
  readonly id?: string
}
/** An event that the service itself produces. Senders choose the names of signals. */
export interface ServicePublication extends Publication {
  readonly event_type: EmittedType | `signal.${string}` | `${ProviderName}.${string}`
}
/** A published event. `truncated` in its payload: some members were too large to store. */
export interface SourceEvent extends Omit<Publication, 'dedup_key' | 'id'> {
  /** Id of the event: `sevt_…`. */
  readonly id: string
  readonly occurred_at: string
}
/**
 * An enabled trigger of an active loop, as the matcher stores it. An `http` trigger watches
 * `http_trigger.received` with its own id.
 */
export interface Watch {
  readonly trigger_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly condition?: string
}
/** The number of times a trigger's condition could not be evaluated, and the last fault. */
export interface ConditionFaults {
  readonly count: number
  readonly last: { readonly source_event_id: string; readonly at: string; readonly message: string }
}
/**
 * A wait of a run as the matcher stores it, with its templates filled in. The run receives only
 * events that match all of it.
 */
export interface Awaited {
  readonly wait_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly match?: JsonObject
  readonly condition?: string
}
/**
 * The id of the event, published now or by an earlier command with the same key. It is empty when
 * the event was not stored because nothing listens to it, or when the actor is `unsure`.
 */
export interface Published {
  readonly source_event_id: string
  readonly deduped?: true
  readonly unsure?: Unsure
}
/**
 * A key publishes once within a day, however many keys are used. The actor stores the keys of two
 * generations; a view has all keys.
 * K1. An actor that may have dropped keys of the last day does not publish under an unknown key. It
 *     returns `unsure` with the number of its generation.
 * K2. The publisher then queries a view and repeats the command with the result. The view has every
 *     key stored before the actor returned that number; later keys are in the actor's generation of
 *     that number or the next. An actor that has advanced further returns `unsure` again.
 */
export interface Unsure {
  readonly generation: number
  readonly keys: readonly string[]
}
/** The result of a view: the ids published under the keys within a day, in the order of `asked`. */
export interface Recalled {
  readonly generation: number
  readonly asked: readonly string[]
  readonly ids: readonly (string | null)[]
}
/**
 * Commands handled by the `events` actor of a project, whose id is the project's. All are total and
 * idempotent.
 */
export type SourceCommands = {
  /** From a producer: publish an event. */
  'source.publish': { input: Publication & { readonly recalled?: Recalled }; reply: Published }
  /**
   * From a loop: the complete list of its triggers that watch events. `version` detects outdated
   * lists.
   */
  'triggers.set': {
    input: { loop_id: string; version: number; triggers: readonly Watch[] }
    reply: undefined
  }
  /**
   * From a run: watch for this event from now on. The actor confirms with `event.watched`; from
   * then on, the run receives every matching event.
   */
  'wait.watch': { input: { run_id: string; wait: Awaited }; reply: undefined }
  /** From a run: this wait has ended. */
  'wait.unwatch': { input: { run_id: string; wait_id: string }; reply: undefined }
  /**
   * From the project, in the same commit: this webhook listens to these types and patterns, or to
   * everything when the list is empty. Without `events`, it no longer listens.
   */
  'hook.set': { input: { webhook_id: string; events?: readonly string[] }; reply: undefined }
}
/**
 * Handled by a loop: one of its triggers fires. Repeats for the same trigger and source event
 * change nothing.
 */
export interface Firing {
  readonly trigger_id: string
  readonly source: SourceEvent
  /** The principal that was verified to have read access to the private session of the event. */
  readonly reader?: string
}

/**
 * Handled by a loop: it pauses, because its triggers would start more runs for events of runs than
 * the limits allow.
 */
export interface Overrun {
  readonly trigger_ids: readonly string[]
  readonly source: SourceEvent
  readonly reason: string
}

/** Stored changes of a project's source events. */
export type SourcesEvent =
  | (Event &
      SourceEvent & {
        readonly type: 'source.published'
        readonly dedup_key?: string
        /** Triggers that fire, by loop. */
        readonly fires?: Readonly<Record<string, readonly string[]>>
        /**
         * Triggers that would have fired, by loop, and the reason why each of these loops is paused
         * instead.
         */
        readonly overruns?: Readonly<Record<string, Pick<Overrun, 'trigger_ids' | 'reason'>>>
        /** Waits that the event matches, by run. */
        readonly wakes?: Readonly<Record<string, readonly string[]>>
        /**
         * The faults of conditions that could not be evaluated, by the id of the trigger or wait.
         */
        readonly faulty?: Readonly<Record<string, string>>
        /** Webhooks that receive the event, each with the id of the delivery. */
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
