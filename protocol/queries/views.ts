/**
 * View queries: the queries that a view answers, by name, with their inputs and replies. They are
 * rows of the API that need history, and internal queries of gateways and executors. Owner queries
 * are in `owners.ts`.
 */

import type { OrganizationAction } from '../actions/organization-rows.ts'
import type { Action } from '../actions/rows.ts'
import type { Api, RowName } from '../api.ts'
import type { ArtifactRecord } from '../artifacts/schema.ts'
import type { Identity, InternalBinding } from '../blueprints/stored.ts'
import type { ChannelEventRecord, MessageFacts, Viewer } from '../channels/schema.ts'
import type { Input, Reply } from '../contract.ts'
import type { Refusal } from '../errors.ts'
import type { MemoryChange } from '../memory/schema.ts'
import type {
  LiveRowsOfTurn,
  TranscriptPage,
  TranscriptQuestion,
} from '../sessions/transcript/pages.ts'
import type { StreamQueries } from '../streams/queries.ts'
import type { TableQueries } from '../tables/events.ts'
import type { SemanticQueries } from '../tables/semantic.ts'
import type { Spec } from '../workflows/spec.ts'

/** The internal queries of gateways and executors. */
interface InternalQueries extends TableQueries, SemanticQueries, StreamQueries {
  /**
   * Events of a run after a cursor, oldest first. `ended`: the run has ended, and no event follows
   * the last item. `oldest`: events before this cursor are no longer stored.
   */
  timeline: {
    input: { run_id: string; after: number; limit: number }
    reply: {
      items: readonly unknown[]
      last: number
      /**
       * Whether the page ended before the limit although there are more events. Absent in answers
       * from views of earlier releases, whose pages end only at the limit.
       */
      more?: boolean
      ended: boolean
      oldest: number
      exists: boolean
    } & Timely &
      Positioned
  }
  /**
   * Run events of a project after a cursor, oldest first, each as the JSON that clients receive.
   * `last` is the cursor up to which the page covers the feed, even if the page is empty. `more`:
   * the page ended early, at the limit or at a million characters.
   *
   * With `appended`, the events are in one text, which is copied between threads and processes
   * faster than many objects: a line of cursor, type and JSON for each event, separated by spaces.
   * `items` is then empty. Nodes of earlier releases ignore `appended`.
   */
  feed: {
    input: { after: number; limit: number; appended?: true }
    reply: {
      items: readonly { seq: number; type: string; json: string }[]
      appended?: string
      last: number
      oldest: number
      more: boolean
    } & Timely
  }
  /** The sequence of the last journal message that the view has applied. */
  view_position: { input: Readonly<Record<string, never>>; reply: { sequence: number } }
  /** The id of the project of a run; absent if this partition has no such run. */
  locate: { input: { run_id: string }; reply: { project?: string } }
  /** The id of the project of an agent; absent if this partition has no such agent. */
  agent_home: { input: { agent_id: string }; reply: { project?: string } }
  /**
   * The id of the run whose id begins with `stem` (see `stemOf`); absent if the project has no such
   * run.
   */
  run_of_key: { input: { stem: string }; reply: { id?: string } }
  /**
   * Events of a channel after a cursor, oldest first. `last` is the cursor of the newest event of
   * the channel that the view has applied. It may be greater than the cursor of the last item.
   * `more`: the page ended before `last`, at the limit or at a million characters.
   */
  channel_events: {
    input: { channel_id: string; after: number; limit: number }
    reply: {
      items: readonly ChannelEventRecord[]
      last: number
      oldest: number
      exists: boolean
      more: boolean
    } & Timely &
      Positioned
  }
  /**
   * The facts that decide whether a viewer may follow a channel, as of the cursor `at`. Refused
   * with `not_found` when the viewer may not follow the channel.
   */
  channel_access: {
    input: { id: string; viewer: Viewer }
    reply: { private: boolean; member: boolean; at: number } | Refusal
  }
  /**
   * The access of a viewer to a session, or to the session of a turn. `known`: the session exists.
   * `closed`: the viewer may not read it. `restricted`: it is private. `channel`: the id of its
   * channel, if it belongs to one. For an interaction, `known` and `closed` refer to the
   * interaction itself, and `restricted` means that it belongs to a session.
   */
  session_access: {
    input: {
      of:
        | { readonly session_id: string }
        | { readonly turn_id: string }
        /** `names`: the id of the viewer, and `role:<name>` for each of its roles. */
        | { readonly interaction_id: string; readonly names: readonly string[] }
      viewer: Viewer
    }
    reply: { known: boolean; closed: boolean; restricted: boolean; channel?: string } | Refusal
  }
  /**
   * The immutable facts about a message. `thread`: the ids of the agents in the message's thread.
   * These are the agent that started the thread, if any, and all agents that were woken by messages
   * in it.
   */
  channel_facts: {
    input: { id: string; message_id: string }
    reply: { facts?: MessageFacts; thread?: readonly string[] }
  }
  /** The ids of the agents that are members of a channel. */
  channel_agents: { input: { id: string }; reply: { items: readonly string[] } }
  /** The ids of the channels that a principal belongs to. */
  channels_of: { input: { member_id: string }; reply: { items: readonly string[] } }
  /**
   * For each deduplication key, in the order of the keys, the id of the latest source event that
   * was published under the key after `since` (Unix milliseconds); null if no such event exists.
   */
  published_keys: {
    input: { keys: readonly string[]; since: number }
    reply: { ids: readonly (string | null)[] }
  }
  /** Bindings of resources to blueprints, in the order of their resource ids. */
  blueprint_bindings: {
    input: { identity?: Identity; after?: string; limit: number }
    reply: { items: readonly InternalBinding[]; more: boolean }
  }
  /**
   * Ids of the resources of a type that a blueprint can describe. If `names` is given, only
   * resources with one of these names are included.
   */
  resources_named: {
    input: { type: 'loop' | 'table' | 'channel' | 'environment'; names?: readonly string[] }
    reply: { ids: readonly string[] }
  }
  /**
   * The id of the loop with this id, or of the only loop with this name; absent if no loop matches.
   */
  loop_named: { input: { name: string }; reply: { id?: string } }
  /** The projects of this partition whose agents have a skill, each with the number of them. */
  skill_usage: {
    input: { id: string }
    reply: { items: readonly { project_id: string; agent_count: number }[] }
  }
  /**
   * Changes to an agent's memory after a position, oldest first. `last` is the position from which
   * the next page continues.
   */
  memory_changes: {
    input: { id: string; after?: number; limit: number }
    reply: { items: readonly MemoryChange[]; last: number; more: boolean } | Refusal
  }
  /**
   * The actions and published workflows of a project, or only the one with the given catalog name.
   * `reachable`: whether a connected worker that is not draining accepts the action. Always false
   * for an action that the service itself calls.
   */
  callable: {
    input: { name?: string }
    reply: {
      actions: readonly { action: Action; reachable: boolean }[]
      workflows: readonly {
        handle: string
        name: string
        description?: string
        input?: NonNullable<Spec['input']>
      }[]
    }
  }
  /** Actions of the organization. The view of the organization's partition answers this query. */
  shared_actions: { input: { name?: string }; reply: { items: readonly OrganizationAction[] } }
  /** The ids of the artifacts of a project that follow the id `after`, in order. */
  artifact_ids: {
    input: { after: string; limit: number }
    reply: { items: readonly string[] }
  }
  /**
   * The ids of the environments of a project that follow the id `after`, in order, without
   * destroyed ones.
   */
  environment_ids: {
    input: { after: string; limit: number }
    reply: { items: readonly string[] }
  }
  /**
   * The jobs whose leases a worker session holds. `session_id`: only for a generation, the id of
   * its agent session.
   */
  leases: {
    input: { session: string }
    reply: { items: readonly { job_id: string; queue: string; session_id?: string }[] }
  }
}

/**
 * `late`: the view did not reach the required position within the caller's time limit, so the
 * answer is based on older data.
 */
interface Timely {
  readonly late?: boolean
}
/**
 * `current`: the cursor up to which the view has applied its journal. Absent in answers from views
 * of earlier releases.
 */
interface Positioned {
  readonly current?: number
}

/** The names of the rows that a view answers. */
export type ViewRowName = {
  [N in RowName]: Api[N]['shape'] extends { readonly as: string }
    ? never
    : Api[N]['shape'] extends { readonly answeredBy: infer By }
      ? By extends 'view'
        ? N
        : never
      : Api[N]['verb'] extends 'query'
        ? N
        : never
}[RowName]
/** A page of a list. `position`: the sort keys of the last item, present when more items follow. */
interface ViewPage<T> {
  readonly items: readonly T[]
  readonly position?: readonly SortKey[]
  /** Fields of the answer in addition to those of the page. */
  readonly beside?: Readonly<Record<string, unknown>>
}
export type SortKey = string | number | null
/**
 * The type of a record as a view returns it. Records may be shared between answers, so they are
 * read-only.
 */
export type DeepReadonly<T> = T extends readonly (infer I)[]
  ? readonly DeepReadonly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T
type ViewReply<R> = R extends { next_cursor?: string; items?: readonly (infer I)[] }
  ? ViewPage<I>
  : R
/**
 * The input of a row as the view receives it: the cursor is replaced by the sort keys that it
 * contains, and the viewer is added if the row has one.
 */
type ViewInput<I, S> = Omit<I, 'cursor' | 'project'> & {
  readonly after?: readonly SortKey[]
} & (S extends {
    readonly viewer: true
  }
    ? { readonly viewer: Viewer }
    : unknown)
/** Fields that gateways add to the input of a row. */
interface AddedInputs {
  /**
   * `names`: the id of the viewer, and `role:<name>` for each of its roles. `caller`: the same
   * names for the caller, present only if the parameter `inbox` is set.
   */
  'interaction.list': {
    viewer: Viewer & { readonly names: readonly string[] }
    caller?: readonly string[]
  }
  'audit.list': { viewer: Viewer; project_id?: string }
  /** `names`: as in `interaction.list`. */
  'overview.get': { viewer: Viewer & { readonly names: readonly string[] } }
}
/**
 * Queries whose input or reply differs from the input or reply of their row. The gateway completes
 * the answer.
 */
interface CompletedQueries {
  'artifact.list': {
    input: {
      readonly run_id?: string
      readonly step_id?: string
      readonly mime?: string
      readonly limit?: number
      readonly after?: readonly SortKey[]
      readonly viewer: Viewer
    }
    reply: ViewPage<ArtifactRecord>
  }
  'event.get': {
    /** Without a viewer, the service itself is the reader. */
    input: Omit<RowQuery<'event.get'>['input'], 'viewer'> & { viewer?: Viewer }
    reply: RowQuery<'event.get'>['reply']
  }
  'session.list': {
    /**
     * `agent_id`: also set by the gateway if the client sent the name of the agent. `since`: time
     * in Unix milliseconds; only sessions that were active after it are listed.
     */
    input: Omit<RowQuery<'session.list'>['input'], 'since'> & {
      since?: number
      /** Absent when the service itself is the reader. */
      viewer?: Viewer
    }
    reply: RowQuery<'session.list'>['reply']
  }
  'session.transcript': { input: TranscriptQuestion; reply: TranscriptPage }
  'usage.list': {
    input: RowQuery<'usage.list'>['input']
    /** The sums over all matching events; `milli`: thousandths of a credit. */
    reply: RowQuery<'usage.list'>['reply'] & {
      readonly totals: { readonly quantity: number; readonly milli: number }
    }
  }
  'worker.list': {
    /** Without a viewer, the service itself is the reader, and jobs are not listed. */
    input: Omit<RowQuery<'worker.list'>['input'], 'viewer'> & { viewer?: Viewer }
    reply: RowQuery<'worker.list'>['reply']
  }
  'session.turn_live': {
    input: RowQuery<'session.turn_live'>['input']
    reply: LiveRowsOfTurn
  }
}
/** The validated input of a row, with its cursor unsealed, before the gateway adds fields. */
export type RowQuestion<N extends ViewRowName> = ViewInput<Input<Api[N]>, unknown>
interface RowQuery<N extends ViewRowName> {
  readonly input: ViewInput<Input<Api[N]>, Api[N]['shape']> &
    (N extends keyof AddedInputs ? AddedInputs[N] : unknown)
  readonly reply: ViewReply<Reply<Api[N]>>
}
type RowQueries = {
  readonly [N in Exclude<ViewRowName, keyof CompletedQueries>]: RowQuery<N>
}
export interface ViewQueries extends InternalQueries, CompletedQueries, RowQueries {}
export type ViewQueryName = keyof ViewQueries
