/** Events and internal commands of the `bulk_request` actor (`actors/runs/bulk-request.ts`). */
import type { Event } from '../entry.ts'
import type { SortKey } from '../queries/views.ts'

/** The runs on which one bulk request acts. */
export interface BulkSelection {
  /** Unix milliseconds of the first request of the action. */
  readonly began: number
  /** Ids of the runs, oldest first; at most `bulkLimits.runs`. */
  readonly run_ids: readonly string[]
  /** Sort keys of the last run if the next page may have more runs. */
  readonly after?: readonly SortKey[]
}

export type BulkRequestEvent = Event & BulkSelection & { readonly type: 'bulk_request.selected' }

/** Commands of the actor that stores the runs of a bulk request with an idempotency key. */
export type BulkRequestCommands = {
  /**
   * Stores the runs on which the request acts. The reply to a repeat contains the runs of the first
   * request. Refused with `idempotency_key_conflict` if a different request used the key.
   */
  'bulk_request.select': { input: BulkSelection; reply: BulkSelection }
}
