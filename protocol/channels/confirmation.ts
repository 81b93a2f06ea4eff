/**
 * Private events of a channel: an errand confirms that new members are active principals. `job_id`
 * is that of the errand.
 */
import type { Event } from '../entry.ts'

export type ConfirmationEvent =
  | (Event & {
      readonly type: 'confirmation.begun'
      readonly job_id: string
      readonly member_ids: readonly string[]
    })
  | (Event & { readonly type: 'confirmation.ended'; readonly job_id: string })
