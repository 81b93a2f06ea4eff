/** Messages between gateways and the job queues of shards; they never leave the service. */

import type { Take } from '../internal.ts'
import type { JobHeader } from '../jobs/rows.ts'
import type { ClaimedJob } from './socket.ts'

/** Messages to one gateway's mailbox (`subjects.gateway`). The reply to each is `{ok: boolean}`. */
export type GatewayMessage =
  /**
   * Deliver a leased job to a worker session. `ok: false` when the session is not connected here;
   * the lease is then released.
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
  /** Close the connection of a session that registered elsewhere. */
  | {
      readonly type: 'supersede'
      readonly project: string
      readonly session: string
      readonly generation: number
    }
  | { readonly type: 'drain'; readonly project: string; readonly session: string }
  /** Drop the cached configuration of a project or of the organization before replying. */
  | { readonly type: 'forget'; readonly project: string }

/** An offer of jobs to gateways (`subjects.offer`), in the order of assignment. */
export interface Offer {
  readonly project: string
  readonly queue: string
  readonly jobs: readonly JobHeader[]
  /** The shard of these jobs; absent in offers of earlier releases. */
  readonly source?: string
  /** The jobs were just enqueued, and the answer is needed at once. */
  readonly ahead?: true
}

/** The answer of a gateway or executor that accepts jobs of an offer. */
export interface Taking {
  readonly gateway: string
  readonly takes: readonly Take[]
  /**
   * No job was accepted because no slot is free now. The gateway has unsubscribed, so another one
   * can receive the offer at once.
   */
  readonly busy?: true
  /** The remaining jobs are work that the service itself does; no worker receives it. */
  readonly served?: true
}
