/**
 * Private events of a channel about confirmations. A confirmation is an errand that checks whether
 * new members are active principals, and expels those that are not. `job_id` is the id of the
 * errand.
 */
import type { Event } from '../entry.ts'

export type ConfirmationEvent =
  | (Event & {
      readonly type: 'confirmation.begun'
      readonly job_id: string
      readonly member_ids: readonly string[]
    })
  | (Event & { readonly type: 'confirmation.ended'; readonly job_id: string })
