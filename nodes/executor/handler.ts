/**
 * The interface between an executor and its handlers, at most one per kind of job. The executor
 * accepts jobs, renews their leases and reports their outcomes. A handler decides which jobs the
 * service performs itself, and performs them.
 */

import type { MaybePromise } from '../../gateway/maybe-promise.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { JobReport, Take } from '../../protocol/internal.ts'
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'

export interface Work {
  readonly project: string
  readonly job: ClaimedJob
  /**
   * Aborted when the lease is lost, the job is cancelled, or the executor stops. The outcome is
   * then no longer wanted.
   */
  readonly signal: AbortSignal
}
/** The outcome of an attempt, as the executor reports it to the queue. */
export type Outcome = Omit<JobReport, 'job_id' | 'lease_token'>
/**
 * The outcome of a job that is not for the service after all. The job returns to its queue, and no
 * attempt is used.
 */
export const NOT_OURS = 'not ours'

export interface Handler {
  /**
   * Returns the data that the queue needs when the service claims a waiting job. Returns undefined
   * if the job is for a worker, and a refusal if this cannot be determined now.
   */
  takes(project: string, job: JobHeader): MaybePromise<Pick<Take, 'losses'> | undefined | Refusal>
  /** Makes one attempt. If it throws, the attempt has failed with an internal error. */
  perform(work: Work): Promise<Outcome | typeof NOT_OURS>
  /**
   * Milliseconds for which a stopping executor lets an attempt continue before it returns the job
   * to its queue. Must be less than the executor's own timeout, which is the default.
   */
  readonly graceMs?: number
}
/** Handlers by kind of job. */
export type Handlers = Readonly<Partial<Record<JobHeader['kind'], Handler>>>
