/** Jobs that executors of the service perform on behalf of an actor. They appear in no list. */
import { timestamp } from '../common.ts'
import type { Job, JobHeader } from './rows.ts'

/** The fields of the header that differ between the kinds of service jobs. */
type Own = Pick<JobHeader, 'kind'> & Partial<Pick<JobHeader, 'owner' | 'delivery_id'>>
/** The input of `queue.enqueue`. */
interface Enqueued {
  readonly job: JobHeader
  readonly record: Job
}

/**
 * Returns the input of `queue.enqueue` for a job of the service.
 * @param at time of enqueueing in Unix milliseconds.
 * @param own the fields of the header that depend on the kind of the job. The executor reads them.
 * @param step the step of a run that requires the job.
 */
export function serviceJob(
  queue: string,
  at: number,
  {
    id,
    priority = 0,
    fairness_key,
    max_attempts,
    max_losses,
  }: Pick<JobHeader, 'id' | 'fairness_key' | 'max_attempts' | 'max_losses'> & {
    readonly priority?: number
  },
  own: Own,
  step?: Pick<JobHeader, 'run_id' | 'step_id' | 'step_key'>,
): Enqueued {
  const shared = {
    id,
    origin: 'server_internal',
    executor_kind: 'server_worker',
    ...step,
    priority,
    fairness_key,
    max_attempts,
  } as const
  const now = timestamp(at)
  return {
    job: { ...shared, ...own, enqueued_at: at, max_losses },
    record: {
      ...shared,
      kind: 'action_execution',
      queue,
      status: 'queued',
      claim_attempt: 0,
      cancel_requested: false,
      created_at: now,
      updated_at: now,
    },
  }
}
