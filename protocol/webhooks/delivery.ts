/**
 * Signed deliveries to receivers outside: how they are opened, attempted and ended. One actor per delivery decides; a job of
 * the service's own makes one attempt.
 *
 *     pending → processing → delivered | failed
 *        ↑ back-off   ↓
 *
 * Id and body of a delivery stay the same over all attempts; what signs it, and where it goes, is looked up for each.
 */
import type { DeliveryRecord } from './rows.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { UrlParts } from '../masked-url.ts'
import type { RunCommands } from '../internal.ts'
import type { Patch } from '../patch.ts'

/** The queue of deliveries; each project has one in every shard. */
export const DELIVERIES = '$deliveries'
/** Attempts in all, the first one included. */
export const ATTEMPTS = 10
/** Milliseconds in which a test delivery must be begun: nobody waits for it later. */
export const PROMPT = 15_000
/** Milliseconds before the second attempt, the third, and so on. */
const PAUSES = [
  5_000, 30_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
] as const
const JITTER = 0.2
/** A receiver that asks for more is not waited for longer, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000

/**
 * Milliseconds until the next attempt. @param attempts made so far, 1 at least. @param chance from 0 to 1.
 * @param asked milliseconds for which the receiver wants to be left alone.
 */
export function pauseAfter(attempts: number, chance: number, asked = 0): number {
  const pause = PAUSES[Math.min(PAUSES.length, Math.max(1, attempts)) - 1] as number
  return Math.round(
    Math.max(pause * (1 - JITTER + 2 * JITTER * chance), Math.min(MAX_RETRY_AFTER_MS, asked)),
  )
}

/** Where a delivery goes: to a webhook as it is configured at each attempt (or, for a test, to `url`), or to the subscriber of an interaction. */
type Destination =
  | ({ readonly kind: 'webhook'; readonly webhook_id: string; readonly url?: string } & UrlParts)
  | ({
      readonly kind: 'callback'
      readonly callback_url: string
      readonly secret_ref: string
    } & UrlParts)
/** A delivery that is due. `once`: a test, which has one attempt and is on no list. */
export interface DeliveryOpening {
  readonly to: Destination
  readonly event_type: string
  readonly body: JsonObject
  readonly run_id?: string
  /**
   * The id of the private session that the event happened in. An attempt is made only if the webhook's last editor may read it;
   * only its readers are shown the delivery.
   */
  readonly private_session?: string
  readonly once?: true
}
/** How an attempt went. `pause`: milliseconds until the next one; absent when another cannot help. */
export interface AttemptOutcome {
  readonly delivered: boolean
  readonly response_code?: number
  readonly error?: string
  readonly pause?: number
  readonly latency_ms?: number
}
/** What a delivery has come to, for whoever waits for it. */
export interface DeliveryOutcome
  extends Pick<DeliveryRecord, 'status' | 'response_code' | 'last_error'> {
  readonly latency_ms?: number
}

/** Decided by a delivery. All are total and harmless when repeated. */
export type DeliveryCommands = {
  /** From whoever has something to say. */
  'delivery.open': { input: DeliveryOpening; reply: undefined }
  /** From an executor that holds the job: an attempt begins; `attempt` is its number, 0 when the attempt is not wanted. */
  'delivery.begin': { input: { job_id: string }; reply: { attempt: number } }
  /** From the queue: the job of an attempt is over. A completed one carries an `AttemptOutcome`. */
  'job.settled': { input: RunCommands['job.settled']['input']; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** What happened to a delivery; `delivery` is the patch of its record. */
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
    /** Its pause is over. */
    | { readonly type: 'delivery.due'; readonly job_id: string }
    | { readonly type: 'delivery.begun' }
    /** Another attempt follows at `at`, Unix milliseconds. */
    | { readonly type: 'delivery.deferred'; readonly at: number }
    | { readonly type: 'delivery.delivered' | 'delivery.failed'; readonly latency_ms?: number }
  )
