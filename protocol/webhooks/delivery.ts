/**
 * Signed deliveries to external receivers: how they are opened, attempted and ended. One actor per
 * delivery holds its state; a job of the service itself makes one attempt.
 *
 *     pending → processing → delivered | failed
 *        ↑ back-off   ↓
 *
 * Id and body of a delivery stay the same over all attempts; its secret and its address are looked
 * up for each attempt.
 */

import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { UrlParts } from '../masked-url.ts'
import type { Patch } from '../patch.ts'
import type { DeliveryRecord } from './rows.ts'

/** The queue of deliveries; each project has one in every shard. */
export const DELIVERIES = '$deliveries'
/** Maximum number of attempts, the first one included. */
export const ATTEMPTS = 10
/**
 * Milliseconds within which a test delivery must start, because its caller does not wait longer.
 */
export const PROMPT = 15_000
/** Milliseconds before the second attempt, the third, and so on. */
const PAUSES = [
  5_000, 30_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
] as const
const JITTER = 0.2
/** The longest wait that a receiver can request, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000

/**
 * Milliseconds until the next attempt.
 * @param attempts made so far, at least 1.
 * @param chance random number from 0 to 1.
 * @param asked milliseconds that the receiver asked the service to wait.
 */
export function pauseAfter(attempts: number, chance: number, asked = 0): number {
  const pause = PAUSES[Math.min(PAUSES.length, Math.max(1, attempts)) - 1] as number
  return Math.round(
    Math.max(pause * (1 - JITTER + 2 * JITTER * chance), Math.min(MAX_RETRY_AFTER_MS, asked)),
  )
}

/**
 * The destination of a delivery: a webhook as configured at the time of each attempt (or, for a
 * test, `url`), or the subscriber of an interaction.
 */
type Destination =
  | ({ readonly kind: 'webhook'; readonly webhook_id: string; readonly url?: string } & UrlParts)
  | ({
      readonly kind: 'callback'
      readonly callback_url: string
      readonly secret_ref: string
    } & UrlParts)
/** A delivery that is due. `once`: a test, which has one attempt and appears in no list. */
export interface DeliveryOpening {
  readonly to: Destination
  readonly event_type: string
  readonly body: JsonObject
  readonly run_id?: string
  /**
   * The id of the private session in which the event happened. An attempt is made only if the
   * webhook's last editor may read the session; only readers of the session see the delivery.
   */
  readonly private_session?: string
  readonly once?: true
}
/**
 * The outcome of an attempt. `pause`: milliseconds until the next attempt; absent when a retry
 * cannot help.
 */
export interface AttemptOutcome {
  readonly delivered: boolean
  readonly response_code?: number
  readonly error?: string
  readonly pause?: number
  readonly latency_ms?: number
}
/** The outcome of a delivery, for a caller that waits for it. */
export interface DeliveryOutcome
  extends Pick<DeliveryRecord, 'status' | 'response_code' | 'last_error'> {
  readonly latency_ms?: number
}

/** Commands handled by a delivery. All are total and idempotent. */
export type DeliveryCommands = {
  /** From the producer of the event. */
  'delivery.open': { input: DeliveryOpening; reply: undefined }
  /**
   * From an executor that holds the job: start an attempt. `attempt` is its number, or 0 when no
   * attempt is needed.
   */
  'delivery.begin': { input: { job_id: string }; reply: { attempt: number } }
  /**
   * From the queue: the job of an attempt has ended. A completed job contains an `AttemptOutcome`.
   */
  'job.settled': { input: RunCommands['job.settled']['input']; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** An event of a delivery; `delivery` is the patch of its record. */
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
    /** The pause before the next attempt has ended. */
    | { readonly type: 'delivery.due'; readonly job_id: string }
    | { readonly type: 'delivery.begun' }
    /** Another attempt follows at `at`, Unix milliseconds. */
    | { readonly type: 'delivery.deferred'; readonly at: number }
    | { readonly type: 'delivery.delivered' | 'delivery.failed'; readonly latency_ms?: number }
  )
