/**
 * Errands: tasks of an actor that need lookups, which actors cannot perform. An errand is a job for
 * executors in a queue of the same shard as the actor. The commit that requires the errand also
 * enqueues it, so it survives the crash of any executor. An errand may be executed more than once,
 * so its execution must be idempotent. The executor reads the task from the actor with the owner
 * query `job_spec`.
 */

import type { Exchange, ExchangeTurn } from './channels/exchange.ts'
import type { Channel } from './channels/schema.ts'
import type { Kind } from './entry.ts'
import { serviceJob } from './jobs/service-job.ts'
import type { HeldFiring } from './loops/events.ts'

/** The name of the queue of errands. Each project has this queue in every shard. */
export const ERRANDS = '$errands'
/**
 * Maximum number of attempts, and of lost leases. An errand that reaches either maximum fails
 * permanently.
 */
const MAX_ATTEMPTS = 20

export type Errand =
  /**
   * Looks up the data for the turn of an exchange, and starts the turn. `agents`: ids of the agents
   * in the channel. `alone`: the channel is a direct message of two members.
   */
  | {
      readonly errand: 'exchange'
      readonly exchange: Exchange
      readonly channel: Pick<Channel, 'id' | 'name' | 'topic' | 'kind' | 'private'>
      readonly agents: readonly string[]
      readonly alone: boolean
    }
  /** Cancels the turns that were in progress when their channel was deleted. */
  | {
      readonly errand: 'end_turns'
      readonly channel_id: string
      readonly turns: readonly ExchangeTurn[]
    }
  /**
   * Removes a principal that is no longer active from its channels. A disabled principal remains in
   * direct messages.
   */
  | { readonly errand: 'leave'; readonly principal_id: string }
  /**
   * Checks again whether new members of a channel are active principals, and expels members that
   * are not.
   */
  | {
      readonly errand: 'confirm'
      readonly channel_id: string
      readonly member_ids: readonly string[]
    }
  /**
   * Fires a trigger of a loop for an event of a private session or a private artifact, if the last
   * editor of the loop may read the event.
   */
  | ({ readonly errand: 'firing'; readonly loop_id: string } & HeldFiring)
  /**
   * Extracts the text of an artifact as Markdown. `blob`: the name of the file in the object store.
   * The result is a `ConversionResult`.
   */
  | { readonly errand: 'convert'; readonly artifact_id: string; readonly blob: string }
  /**
   * Deletes the artifacts of a deleted project, the stored definitions of its agents and the log
   * lines of its jobs, and destroys its environments.
   */
  | { readonly errand: 'remove_artifacts' }
  /** Does nothing, because the task is obsolete. */
  | { readonly errand: 'none' }

/**
 * Returns the input of `queue.enqueue` for an errand.
 * @param owner the actor that requires the errand.
 * @param fairness_key errands with different keys take turns.
 * @param at time of enqueueing in Unix milliseconds.
 * @param max_losses number of lost leases at which the errand fails.
 */
export function errandJob(
  id: string,
  owner: { readonly kind: Kind; readonly id: string },
  fairness_key: string,
  at: number,
  max_losses = MAX_ATTEMPTS,
): ReturnType<typeof serviceJob> {
  return serviceJob(
    ERRANDS,
    at,
    { id, fairness_key, max_attempts: MAX_ATTEMPTS, max_losses },
    { kind: 'errand', owner },
  )
}
