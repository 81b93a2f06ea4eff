import type { Action } from './actions/rows.ts'
import type { OrganizationAction } from './actions/organization-rows.ts'
import type { ChannelEventRecord, MessageFacts, Viewer } from './channels/schema.ts'
import type { Refusal } from './errors.ts'
import type { MemoryChange } from './memory/schema.ts'
import type { Spec } from './workflows/spec.ts'

/**
 * Requests that gateways send to views, in addition to the query rows. Every result is data of one
 * project.
 */
export interface ViewQuestions {
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
