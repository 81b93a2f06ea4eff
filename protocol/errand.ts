/**
 * Errands: tasks of an actor that need lookups, which actors cannot do. An errand is a job of the
 * service's own queue in the actor's shard. It is enqueued in the commit that needs it, so it
 * survives the crash of any executor. Every errand may run twice. The executor reads the errand
 * from its owner with `job_spec`.
 */

import type { Exchange } from './channels/exchange.ts'
import type { Channel } from './channels/schema.ts'
import { timestamp } from './common.ts'
import type { Kind } from './entry.ts'
import type { JobHeader } from './jobs/rows.ts'
import type { HeldFiring } from './loops/events.ts'

/** The queue of errands; each project has one in every shard. */
export const ERRANDS = '$errands'
/**
 * Maximum attempts; an errand that still fails after that many is considered permanently failed.
 */
const ATTEMPTS = 20

export type Errand =
  /**
   * Look up what the turn of an exchange needs, and start the turn. `agents`: ids of the channel's
   * agents; `alone`: one person talks with one agent.
   */
  | {
      readonly errand: 'exchange'
      readonly exchange: Exchange
      readonly channel: Pick<Channel, 'id' | 'name' | 'topic' | 'kind' | 'private'>
      readonly agents: readonly string[]
      readonly alone: boolean
    }
  /** Remove a principal that is no longer active from all channels. */
  | { readonly errand: 'leave'; readonly principal_id: string }
  /**
   * Check again whether new members of a channel are active principals, and expel those that are
   * not.
   */
  | {
      readonly errand: 'confirm'
      readonly channel_id: string
      readonly member_ids: readonly string[]
    }
  /**
   * Fire a trigger of a loop for an event of a private session, if the loop's last editor may read
   * the session.
   */
  | ({ readonly errand: 'firing'; readonly loop_id: string } & HeldFiring)
  /** The task is obsolete; there is nothing to do. */
  | { readonly errand: 'none' }

/**
 * The input of `queue.enqueue` for an errand.
 * @param at Unix milliseconds.
 * @param fairness_key errands with different keys take turns.
 */
export function errandJob(
  id: string,
  owner: { readonly kind: Kind; readonly id: string },
  fairness_key: string,
  at: number,
): { readonly job: JobHeader; readonly record: object } {
  const shared = {
    id,
    origin: 'server_internal',
    executor_kind: 'server_worker',
    priority: 0,
    fairness_key,
    max_attempts: ATTEMPTS,
  } as const
  const now = timestamp(at)
  // No list shows the record, like that of a delivery.
  const record = {
    ...shared,
    kind: 'action_execution',
    queue: ERRANDS,
    status: 'queued',
    claim_attempt: 0,
    cancel_requested: false,
    created_at: now,
    updated_at: now,
  } as const
  return {
    job: { ...shared, kind: 'errand', owner, enqueued_at: at, max_losses: ATTEMPTS },
    record,
  }
}
