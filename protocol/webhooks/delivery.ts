/**
 * Signed deliveries to external receivers: their data, events, internal commands and back-off. One
 * actor per delivery stores its state. Each attempt is one job of the service itself.
 *
 *     pending → processing → delivered | failed
 *        ↑ back-off   ↓
 *
 * The id and the body of a delivery are the same for all attempts. The secret, and the configured
 * URL of a webhook, are looked up for each attempt.
 */

import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { UrlParts } from '../masked-url.ts'
import type { Patch } from '../patch.ts'
import type { DeliveryRecord } from './rows.ts'

/** The name of the queue of deliveries. Each project has this queue in every shard. */
export const DELIVERIES = '$deliveries'
/** Maximum number of attempts, including the first one. */
export const MAX_ATTEMPTS = 10
/** Time within which the attempt of a test delivery must start, in milliseconds. */
export const START_TIMEOUT_MS = 15_000
/** Back-off before the second attempt, the third attempt, and so on, in milliseconds. */
const PAUSES = [
  5_000, 30_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
] as const
/** Maximum random deviation of a pause, as a fraction of the pause. */
const JITTER = 0.2
/** The maximum back-off in milliseconds that a receiver can request. */
const MAX_RETRY_AFTER_MS = 3_600_000

/**
 * Returns the back-off before the next attempt in milliseconds, with jitter.
 * @param attempts number of attempts so far; 0 is treated as 1.
 * @param chance random number from 0 to 1.
 * @param asked back-off in milliseconds that the receiver requested.
 */
export function pauseAfter(attempts: number, chance: number, asked = 0): number {
  const pause = PAUSES[Math.min(PAUSES.length, Math.max(1, attempts)) - 1] as number
  return Math.round(
    Math.max(pause * (1 - JITTER + 2 * JITTER * chance), Math.min(MAX_RETRY_AFTER_MS, asked)),
  )
}

/**
 * The destination of a delivery. `webhook`: the webhook as it is configured at the time of each
 * attempt; if a test specifies a `url`, the delivery goes to this URL instead. `callback`: the
 * subscriber of an interaction.
 */
type Destination =
  | ({ readonly kind: 'webhook'; readonly webhook_id: string; readonly url?: string } & UrlParts)
  | ({
      readonly kind: 'callback'
      readonly callback_url: string
      readonly secret_ref: string
    } & UrlParts)
/**
 * The content and the destination of a delivery. `once`: the delivery is a test, which is attempted
 * only once and is not listed.
 */
export interface DeliveryOpening {
  readonly to: Destination
  readonly event_type: string
  readonly body: JsonObject
  readonly run_id?: string
  /**
   * The id of the private session in which the event happened. An attempt is made only if the last
   * editor of the webhook may read the session. Only readers of the session can read the delivery.
   */
  readonly private_session?: string
  /**
   * The id of the principal that owns the private artifact of the event. An attempt is made only if
   * the last editor of the webhook is this principal. Only this principal can read the delivery.
   */
  readonly private_owner?: string
  readonly once?: true
}
/**
 * The outcome of an attempt. `pause`: milliseconds until the next attempt; absent when no retry
 * follows.
 */
export interface AttemptOutcome {
  readonly delivered: boolean
  readonly response_code?: number
  readonly error?: string
  readonly pause?: number
  readonly latency_ms?: number
  /** The beginning of the receiver's response. */
  readonly answer?: string
}
/** Data that the gateway adds to `webhook.resend`: the content of the delivery to send again. */
export interface ResendInput {
  readonly opening: DeliveryOpening
}
/** The outcome of a delivery, for a caller that waits for it. */
export interface DeliveryOutcome
  extends Pick<DeliveryRecord, 'status' | 'response_code' | 'last_error'> {
  readonly latency_ms?: number
}

/** Internal commands of a delivery. They are never refused. */
export type DeliveryCommands = {
  /**
   * Opens the delivery. Sent by the `events` actor, by an interaction, or, for a test, by the
   * project.
   */
  'delivery.open': { input: DeliveryOpening; reply: undefined }
  /**
   * Starts an attempt. Sent by the executor that has the lease of the job. `attempt` is the number
   * of the attempt, or 0 when the executor must not make an attempt.
   */
  'delivery.begin': { input: { job_id: string }; reply: { attempt: number } }
  /**
   * Sent by the queue when the job of an attempt has ended. The result of a completed job is an
   * `AttemptOutcome`.
   */
  'job.settled': { input: RunCommands['job.settled']['input']; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** Events of a delivery. `delivery` is the patch of its record. */
export type DeliveryEvent = Event & {
  readonly id: string
  readonly delivery: Patch<DeliveryRecord>
} & (
    | {
        readonly type: 'delivery.opened'
        readonly opening: DeliveryOpening
        readonly job_id: string
        readonly at: number
      }
    /** The back-off has ended, and the next attempt is enqueued as `job_id`. */
    | { readonly type: 'delivery.due'; readonly job_id: string }
    | { readonly type: 'delivery.begun' }
    /** Another attempt follows at `at`, in Unix milliseconds. */
    | { readonly type: 'delivery.deferred'; readonly at: number }
    | { readonly type: 'delivery.delivered' | 'delivery.failed'; readonly latency_ms?: number }
  )
