import type { Action } from './actions/rows.ts'
import type { OrganizationAction } from './actions/organization-rows.ts'
import type { ChannelEventRecord, MessageFacts, Viewer } from './channels/schema.ts'
import type { Refusal } from './errors.ts'
import type { MemoryChange } from './memory/schema.ts'
import type { Spec } from './workflows/spec.ts'

/** Questions that gateways put to views, besides the query rows. All results are data of one project. */
export interface ViewQuestions {
  /** Events of a run after a cursor, oldest first. `ended`: the run is terminal and nothing follows the last item. `oldest`: cursors below are no longer kept. */
  timeline: {
    input: { run_id: string; after: number; limit: number }
    reply: {
      items: readonly unknown[]
      last: number
      /** Absent in answers of earlier releases, whose pages end at the limit only. */
      more?: boolean
      ended: boolean
      oldest: number
      exists: boolean
    } & Timely
  }
  /** Project-wide run events after a cursor, oldest first, each as the JSON that clients get; `last` is the position reached even if no item was. `more`: the limit, or a megabyte, was reached before the end. */
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
  /** The project of an agent; none: this partition has no such agent. */
  agent_home: { input: { agent_id: string }; reply: { project?: string } }
  /** A run of the project whose id begins so (`stemOf`). */
  run_of_key: { input: { stem: string }; reply: { id?: string } }
  /** Events of a channel after a cursor, oldest first; `last` is the cursor of its newest applied event, and may lie beyond the last item; `more`: the limit, or a megabyte, was reached before it. */
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
  /** What decides whether somebody may follow a channel, as of the cursor `at`; refused `not_found` when they may not. */
  channel_access: {
    input: { id: string; viewer: Viewer }
    reply: { private: boolean; member: boolean; at: number } | Refusal
  }
  /** Whether a session exists (`known`), is closed to the viewer, is private (`restricted`), and of which channel it is. */
  session_access: {
    input: {
      of:
        | { readonly session_id: string }
        | { readonly turn_id: string }
        /** `names`: the viewer's id, and `role:<name>` of the roles that the viewer holds. */
        | { readonly interaction_id: string; readonly names: readonly string[] }
      viewer: Viewer
    }
    reply: { known: boolean; closed: boolean; restricted: boolean; channel?: string } | Refusal
  }
  /** What never changes about a message; `thread`: agents that began its thread or were called in it. */
  channel_facts: {
    input: { id: string; message_id: string }
    reply: { facts?: MessageFacts; thread?: readonly string[] }
  }
  /** The agents that are members of a channel. */
  channel_agents: { input: { id: string }; reply: { items: readonly string[] } }
  /** Channels that have a member. */
  channels_of: { input: { member_id: string }; reply: { items: readonly string[] } }
  /** Ids of source events that were published under these keys since a time (Unix milliseconds), in the order of the keys; null: none. */
  published_keys: {
    input: { keys: readonly string[]; since: number }
    reply: { ids: readonly (string | null)[] }
  }
  /** The loop with an id, or the only one with a name. */
  loop_named: { input: { name: string }; reply: { id?: string } }
  /** Projects of one partition whose agents have a skill. */
  skill_usage: {
    input: { id: string }
    reply: { items: readonly { project_id: string; agent_count: number }[] }
  }
  /** Changes of an agent's memory after a position, oldest first; `last` is where to go on. */
  memory_changes: {
    input: { id: string; after?: number; limit: number }
    reply: { items: readonly MemoryChange[]; last: number; more: boolean } | Refusal
  }
  /** What a project defines that can be called, one of them by its name in the catalog: actions, with whether a connected worker takes them, and published workflows. */
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
  /** Actions of the organization; a question for the partition of the organization. */
  shared_actions: { input: { name?: string }; reply: { items: readonly OrganizationAction[] } }
  /** Jobs that a worker session holds a lease of; `session_id`: the agent session that a generation belongs to. */
  leases: {
    input: { session: string }
    reply: { items: readonly { job_id: string; queue: string; session_id?: string }[] }
  }
}

/** Whether a view gave what it had because it did not get where it was asked to get in the time that the asker gave it. */
interface Timely {
  readonly late?: boolean
}
