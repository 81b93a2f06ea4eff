/**
 * The queries that a view answers, by name, with their inputs and replies: the rows of the API that
 * need history, and internal queries of gateways.
 */

import type { OrganizationAction } from '../actions/organization-rows.ts'
import type { Action } from '../actions/rows.ts'
import type { Api, RowName } from '../api.ts'
import type { ChannelEventRecord, MessageFacts, Viewer } from '../channels/schema.ts'
import type { Input, Reply } from '../contract.ts'
import type { Refusal } from '../errors.ts'
import type { MemoryChange } from '../memory/schema.ts'
import type {
  LiveRowsOfTurn,
  TranscriptPage,
  TranscriptQuestion,
} from '../sessions/transcript/pages.ts'
import type { Spec } from '../workflows/spec.ts'

/** The queries of gateways in addition to the rows. Every reply is data of one project. */
interface InternalQueries {
  /**
   * Events of a run after a cursor, oldest first. `ended`: the run is terminal and nothing follows
   * the last item. `oldest`: events below this cursor are no longer stored.
   */
  timeline: {
    input: { run_id: string; after: number; limit: number }
    reply: {
      items: readonly unknown[]
      last: number
      /** Absent in answers of earlier releases, whose pages end only at the limit. */
      more?: boolean
      ended: boolean
      oldest: number
      exists: boolean
    } & Timely
  }
  /**
   * Run events of a whole project after a cursor, oldest first, each as the JSON that clients
   * receive. `last` is the position reached, even when there are no items. `more`: the page ended
   * early, at the limit or at one megabyte.
   */
  feed: {
    input: { after: number; limit: number }
    reply: {
      items: readonly { seq: number; type: string; json: string }[]
      last: number
      oldest: number
      more: boolean
    } & Timely
  }
  /** The project a run belongs to. */
  locate: { input: { run_id: string }; reply: { project?: string } }
  /** The project of an agent; absent when this partition has no such agent. */
  agent_home: { input: { agent_id: string }; reply: { project?: string } }
  /** A run of the project whose id begins with `stem` (see `stemOf`). */
  run_of_key: { input: { stem: string }; reply: { id?: string } }
  /**
   * Events of a channel after a cursor, oldest first. `last` is the cursor of the channel's newest
   * applied event, and may lie beyond the last item. `more`: the page ended before `last`, at the
   * limit or at one megabyte.
   */
  channel_events: {
    input: { channel_id: string; after: number; limit: number }
    reply: {
      items: readonly ChannelEventRecord[]
      last: number
      oldest: number
      exists: boolean
      more: boolean
    } & Timely
  }
  /**
   * The facts that decide whether a viewer may follow a channel, as of the cursor `at`; refused
   * with `not_found` when the viewer may not.
   */
  channel_access: {
    input: { id: string; viewer: Viewer }
    reply: { private: boolean; member: boolean; at: number } | Refusal
  }
  /**
   * The access facts of a session: whether it exists (`known`), is closed to the viewer (`closed`)
   * or is private (`restricted`), and the channel it belongs to.
   */
  session_access: {
    input: {
      of:
        | { readonly session_id: string }
        | { readonly turn_id: string }
        /** `names`: the viewer's id, and `role:<name>` for each role that the viewer holds. */
        | { readonly interaction_id: string; readonly names: readonly string[] }
      viewer: Viewer
    }
    reply: { known: boolean; closed: boolean; restricted: boolean; channel?: string } | Refusal
  }
  /**
   * The immutable facts of a message. `thread`: agents that started its thread or were mentioned in
   * it.
   */
  channel_facts: {
    input: { id: string; message_id: string }
    reply: { facts?: MessageFacts; thread?: readonly string[] }
  }
  /** The agents that are members of a channel. */
  channel_agents: { input: { id: string }; reply: { items: readonly string[] } }
  /** Channels that a member belongs to. */
  channels_of: { input: { member_id: string }; reply: { items: readonly string[] } }
  /**
   * Ids of source events that were published under these keys since a time (Unix milliseconds), in
   * the order of the keys. Null: no event has the key.
   */
  published_keys: {
    input: { keys: readonly string[]; since: number }
    reply: { ids: readonly (string | null)[] }
  }
  /** The loop with this id, or the only loop with this name. */
  loop_named: { input: { name: string }; reply: { id?: string } }
  /** The projects of one partition whose agents use a skill. */
  skill_usage: {
    input: { id: string }
    reply: { items: readonly { project_id: string; agent_count: number }[] }
  }
  /**
   * Changes of an agent's memory after a position, oldest first. `last` is the position to continue
   * from.
   */
  memory_changes: {
    input: { id: string; after?: number; limit: number }
    reply: { items: readonly MemoryChange[]; last: number; more: boolean } | Refusal
  }
  /**
   * The callable definitions of a project, or the one with the given catalog name: actions, each
   * with whether a connected worker accepts it, and published workflows.
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
  /** Actions of the organization; answered by the organization's partition. */
  shared_actions: { input: { name?: string }; reply: { items: readonly OrganizationAction[] } }
  /**
   * Jobs whose lease a worker session holds. `session_id`: the agent session that a model
   * generation belongs to.
   */
  leases: {
    input: { session: string }
    reply: { items: readonly { job_id: string; queue: string; session_id?: string }[] }
  }
}

/**
 * `late`: the view did not reach the requested position within the caller's time limit, and
 * answered with the data it had.
 */
interface Timely {
  readonly late?: boolean
}

/** Names of the rows that views answer. */
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
/** A page of a list. `position`: the sort keys of its last item, present when more items follow. */
interface ViewPage<T> {
  readonly items: readonly T[]
  readonly position?: readonly SortKey[]
  /** Further members of the answer, next to the page. */
  readonly beside?: Readonly<Record<string, unknown>>
}
export type SortKey = string | number | null
/** The type that a view returns: its records may be shared, so they are read-only. */
export type DeepReadonly<T> = T extends readonly (infer I)[]
  ? readonly DeepReadonly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T
type ViewReply<R> = R extends { next_cursor?: string; items?: readonly (infer I)[] }
  ? ViewPage<I>
  : R
/** The input of a row as its view receives it: the cursor is opened, the viewer is added. */
type ViewInput<I, S> = Omit<I, 'cursor' | 'project'> & {
  readonly after?: readonly SortKey[]
} & (S extends {
    readonly viewer: true
  }
    ? { readonly viewer: Viewer }
    : unknown)
/** Inputs that gateways add to those of a row. */
interface AddedInputs {
  /** `names`: the viewer's id, and `role:<name>` for each of its roles; `caller`: only theirs. */
  'interaction.list': {
    viewer: Viewer & { readonly names: readonly string[] }
    caller?: readonly string[]
  }
  'audit.list': { viewer: Viewer; project_id?: string }
}
/** Rows whose query has another input or reply than the row, which the gateway completes. */
interface CompletedQueries {
  'event.get': {
    /** Without a viewer: for the service itself. */
    input: Omit<RowQuery<'event.get'>['input'], 'viewer'> & { viewer?: Viewer }
    reply: RowQuery<'event.get'>['reply']
  }
  'session.list': {
    /** `agent_id`: an id; `since`: Unix milliseconds after which the session was active. */
    input: Omit<RowQuery<'session.list'>['input'], 'since'> & {
      since?: number
      /** Absent: the service itself. */
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
  'session.turn_live': {
    input: RowQuery<'session.turn_live'>['input']
    reply: LiveRowsOfTurn
  }
}
/** A validated request of a row, with its cursor opened, before the gateway adds members. */
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
