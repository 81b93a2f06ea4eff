/**
 * Messages between shards and gateways or executors about jobs, workers and cached configuration.
 * No client or worker receives them.
 */

import type { Take } from '../internal.ts'
import type { JobHeader } from '../jobs/rows.ts'
import type { ClaimedJob } from './socket.ts'

/**
 * Messages to the mailbox of one gateway or executor (`subjects.gateway`). The reply to each is
 * `{ok: boolean}`.
 */
export type GatewayMessage =
  /**
   * Delivers a leased job to a worker session. The reply is `ok: false` when the session is not
   * connected to the receiver or does not accept the job. The lease is then released.
   */
  | {
      readonly type: 'assign'
      readonly project: string
      readonly session: string
      readonly job: ClaimedJob
    }
  | {
      readonly type: 'cancel'
      readonly project: string
      readonly session: string
      readonly job_id: string
      readonly reason?: string
      readonly at: number
    }
  /**
   * Closes the connection of a session after a newer connection has registered as the same
   * instance.
   */
  | {
      readonly type: 'supersede'
      readonly project: string
      readonly session: string
      readonly generation: number
    }
  | { readonly type: 'drain'; readonly project: string; readonly session: string }
  /**
   * The session has attached an environment, and accepts the jobs of the environment from now on.
   */
  | {
      readonly type: 'attach'
      readonly project: string
      readonly session: string
      readonly environment_id: string
    }
  /** Drops the cached configuration of a project or of the organization, and then replies. */
  | { readonly type: 'forget'; readonly project: string }

/**
 * Several messages in one. They are handled in order, each as if it had been sent separately, and
 * the reply contains their replies as `answers`. Older releases handle none of the messages and
 * reply `{ok: false}`.
 */
export interface GatewayMessages {
  readonly type: 'list'
  readonly messages: readonly GatewayMessage[]
}

/**
 * An offer of jobs to gateways or executors. The jobs must be assigned in the order of the list.
 */
export interface Offer {
  readonly project: string
  readonly queue: string
  readonly jobs: readonly JobHeader[]
  /** The shard of the jobs; absent in offers of earlier releases. */
  readonly source?: string
  /**
   * The jobs are not committed yet. The offer is made within one process and must be answered
   * immediately.
   */
  readonly ahead?: true
}

/** The answer of a gateway or executor to an offer: the jobs that it accepts. */
export interface OfferReply {
  readonly gateway: string
  readonly takes: readonly Take[]
  /**
   * No job can be accepted at the moment. The shard can offer the jobs to another gateway or
   * executor immediately.
   */
  readonly busy?: true
  /** The service itself performs the remaining jobs, so they must be offered to executors. */
  readonly served?: true
}
