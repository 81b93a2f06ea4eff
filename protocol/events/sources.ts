/**
 * Source events: events in a project that can start runs or resume waiting ones. One actor per
 * project, `events`, stores them in a total order. Consumers receive them at least once.
 * This file contains the data types, events and internal commands. The rows are in `rows.ts`, and
 * the names of event types in `types.ts`.
 */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { ProviderName } from './integrations.ts'
import type { EmittedType } from './types.ts'

/**
 * The maximum `depth` at which an event can start runs. An event with a greater depth can still
 * resume runs that wait for it.
 */
export const MAX_CHAIN_DEPTH = 8

/**
 * The causal chain of an event: the root event, which no run caused, and the loops whose runs lie
 * between the root event and this event, in order. In a long chain, only the latest loops are
 * stored. All events with the same `root` form a tree. The number of runs that triggers start for
 * one tree is limited (docs/loops.md).
 */
export interface Chain {
  /** Id of the root event, of the form `sevt_…`. */
  readonly root: string
  readonly loops: readonly string[]
}
/** Limits on the runs that triggers start for events that runs caused. */
export interface TriggerLimits {
  /** Maximum number of runs for the events of one tree. */
  readonly per_root: number
  /** Maximum number of runs of one loop per minute. */
  readonly per_minute: number
}

/** The limits that apply unless the operator sets others. */
export const defaultTriggerLimits: TriggerLimits = { per_root: 1000, per_minute: 10_000 }

/** The position of an event in a causal chain: the fields `depth` and `chain` of `Publication`. */
export type Causation = Pick<Publication, 'depth' | 'chain'>

/** A source event before the `events` actor has stored it. */
export interface Publication {
  readonly event_type: string
  readonly source_kind: string
  readonly source_id: string
  readonly event: JsonObject
  /** Routing fields, which triggers and waits can match: scalars and lists of strings. */
  readonly meta: JsonObject
  /**
   * The record that the event is about, in its state at the time of the event. Deliveries to
   * webhooks contain it. Triggers and waits cannot read it. Absent when the payload is complete,
   * and in events of earlier releases.
   */
  readonly record?: JsonObject
  /**
   * The deduplication key. If an event with the same key was stored within the last day, nothing is
   * stored, and the reply contains the id of that event. Absent without an idempotency key, and
   * when an effect publishes the event, because the receiver detects repeated effects by their
   * journal position.
   */
  readonly dedup_key?: string
  /**
   * The number of runs in the causal chain between the root event and this event; 0 for an event
   * that no run caused.
   */
  readonly depth: number
  /**
   * Absent when no run caused the event, and when the run that caused it was not started by an
   * event.
   */
  readonly chain?: Chain
  /**
   * The id of the private session in which the event happened. Only principals that may read the
   * session can read the event. The event fires a trigger or reaches a webhook only if the last
   * editor of the trigger or webhook is such a principal. The event resumes no waits.
   */
  readonly private_session?: string
  /**
   * The id of the principal that owns the private artifact of the event. Only this principal can
   * read the event. As with `private_session`, the event fires a trigger or reaches a webhook only
   * if the last editor is this principal, and resumes no waits.
   */
  readonly private_owner?: string
  /** Id of the event, of the form `sevt_…`, if the producer has already assigned one. */
  readonly id?: string
}
/** The restriction of an event to the principals that may read its session or its artifact. */
export interface Restriction {
  readonly private_session?: string | undefined
  readonly private_owner?: string | undefined
}

/** Returns the restriction of an event; undefined if all principals of the project may read it. */
export function restrictionOf({
  private_session,
  private_owner,
}: Restriction): Pick<Publication, keyof Restriction> | undefined {
  if (private_session === undefined && private_owner === undefined) return undefined
  return {
    ...(private_session !== undefined && { private_session }),
    ...(private_owner !== undefined && { private_owner }),
  }
}
/** An event that no run caused, and that has no deduplication key. */
export type RootPublication = Omit<Publication, 'dedup_key' | 'chain'> & { readonly depth: 0 }
/**
 * An event that the service itself publishes: its own event, a signal, or an event from a provider.
 * The type of a signal contains the name that its sender chose.
 */
export interface ServicePublication extends Publication {
  readonly event_type: EmittedType | `signal.${string}` | `${ProviderName}.${string}`
}
/**
 * A published event. If the payload was too large to store, it contains `truncated: true`, and its
 * largest fields are null or absent. In `email.received`, `truncated` means that the text or the
 * HTML was cut.
 */
export interface SourceEvent extends Omit<Publication, 'dedup_key' | 'id'> {
  /** Id of the event, of the form `sevt_…`. */
  readonly id: string
  readonly occurred_at: string
}
/**
 * An enabled trigger of an active loop, as the `events` actor stores it. A trigger of kind `http`
 * listens to `http_trigger.received` with its own id as the source.
 */
export interface Watch {
  readonly trigger_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly condition?: string
}
/** The number of failed evaluations of a trigger's condition, and the last fault. */
export interface ConditionFaults {
  readonly count: number
  readonly last: { readonly source_event_id: string; readonly at: string; readonly message: string }
}
/**
 * A wait of a run, as the `events` actor stores it, with evaluated templates. The run receives only
 * events that match all fields of the wait.
 */
export interface Awaited {
  readonly wait_id: string
  readonly event_type: string
  readonly source_id?: string
  readonly match?: JsonObject
  readonly condition?: string
}
/**
 * The reply to a publication. `source_event_id` is the id of the stored event. `deduped`: the event
 * was stored earlier, under the same key. The id is empty when the event was not stored because
 * nothing listens to it, and when the actor returns `unsure`.
 */
export interface Published {
  readonly source_event_id: string
  readonly deduped?: true
  readonly unsure?: UnsureReply
}
/**
 * The reply of an actor that cannot decide whether a key was used. Within a day, at most one event
 * is stored under a key, however many keys there are. The actor stores new keys in the current
 * generation. A new generation begins when the current one is full or a day old. The actor
 * remembers only the keys of the current and the previous generation. A view has all keys.
 * K1. If the actor may have dropped keys of the last day, it stores nothing under a key that it
 *     does not remember. Instead, it returns `unsure` with the number of its current generation.
 * K2. The publisher then queries a view and repeats the command with the result (`Recalled`). The
 *     result covers every key stored before the actor returned that number. The actor itself
 *     remembers the keys stored later, while its current generation is that one or the next. If it
 *     is a later one, the actor returns `unsure` again.
 */
export interface UnsureReply {
  readonly generation: number
  readonly keys: readonly string[]
}
/**
 * The answer of a view to `unsure`: the ids of the events stored under the keys within a day, in
 * the order of `asked`. An id is null if no event has the key.
 */
export interface Recalled {
  readonly generation: number
  readonly asked: readonly string[]
  readonly ids: readonly (string | null)[]
}
/**
 * Internal commands of a project's `events` actor, which has the id of the project. All are
 * idempotent.
 */
export type SourceCommands = {
  /** Publishes an event. Sent by the producer of the event. */
  'source.publish': { input: Publication & { readonly recalled?: Recalled }; reply: Published }
  /**
   * Publishes several events in order, as one change. The events have no deduplication keys, and no
   * run caused them (`depth` 0), so no budget limits the runs that they start.
   */
  'source.publish_all': { input: { publications: readonly RootPublication[] }; reply: undefined }
  /**
   * Replaces the triggers of a loop that listen to events. Sent by the loop, with the complete
   * list. `version` detects outdated lists.
   */
  'triggers.set': {
    input: { loop_id: string; version: number; triggers: readonly Watch[] }
    reply: undefined
  }
  /**
   * Registers a wait of a run. Sent by the run. The actor confirms with `event.watched`. From then
   * on, matching events reach the run.
   */
  'wait.watch': { input: { run_id: string; wait: Awaited }; reply: undefined }
  /** Removes a wait that has ended. Sent by the run. */
  'wait.unwatch': { input: { run_id: string; wait_id: string }; reply: undefined }
  /**
   * Sets the types and patterns to which a webhook listens. An empty list means all events. Without
   * `events`, the webhook stops listening. Sent by the project, in the commit that changes the
   * webhook.
   */
  'hook.set': { input: { webhook_id: string; events?: readonly string[] }; reply: undefined }
}
/**
 * The input of `trigger.fire`: a trigger of the loop fires. A repeat for the same trigger and
 * source event changes nothing.
 */
export interface Firing {
  readonly trigger_id: string
  readonly source: SourceEvent
  /** The principal whose read access to the private session of the event was verified. */
  readonly reader?: string
}

/**
 * The input of `loop.stop`. The loop pauses, because events that runs caused would start more runs
 * than the limits of triggers allow.
 */
export interface Overrun {
  readonly trigger_ids: readonly string[]
  readonly source: SourceEvent
  readonly reason: string
}

/** Stored events of the `events` actor. */
export type SourcesEvent =
  | (Event &
      SourceEvent & {
        readonly type: 'source.published'
        readonly dedup_key?: string
        /** Ids of the triggers that fire, by loop. */
        readonly fires?: Readonly<Record<string, readonly string[]>>
        /**
         * Ids of the triggers that do not fire because their loop exceeded a limit, with the reason
         * for which the loop is paused. The key is the id of the loop.
         */
        readonly overruns?: Readonly<Record<string, Pick<Overrun, 'trigger_ids' | 'reason'>>>
        /** Ids of the waits that the event matches, by run. */
        readonly wakes?: Readonly<Record<string, readonly string[]>>
        /**
         * The faults of conditions that could not be evaluated, by the id of the trigger or wait.
         */
        readonly faulty?: Readonly<Record<string, string>>
        /** Ids of the deliveries of the event, by webhook. */
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
