/**
 * The capabilities of an executor as a table: one handler per kind of job. Boundary: the executor
 * accepts jobs, renews their leases and reports their outcomes. A handler decides which jobs are
 * the service's own, and performs them.
 */

import type { MaybePromise } from '../../gateway/maybe-promise.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { JobReport, Take } from '../../protocol/internal.ts'
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'

/** A job under a lease. */
interface Work {
  readonly project: string
  readonly job: ClaimedJob
  /**
   * Aborted when the lease is lost, the job was cancelled, or the executor stops: the outcome is no
   * longer wanted.
   */
  readonly signal: AbortSignal
}
/** How an attempt ended. */
export type Outcome = Omit<JobReport, 'job_id' | 'lease_token'>
/** The job is not for the service after all: it waits again, and no attempt is used. */
export const NOT_OURS = 'not ours'

export interface Handler {
  /**
   * Whether a waiting job is for the service, and the facts that its queue needs when the job is
   * claimed; undefined: it is for a worker.
   */
  takes(project: string, job: JobHeader): MaybePromise<Pick<Take, 'losses'> | undefined | Refusal>
  /** Makes one attempt. An exception counts as an error of the service: the attempt has failed. */
  perform(work: Work): Promise<Outcome | typeof NOT_OURS>
  /**
   * Milliseconds that an attempt has to end when the executor stops, before the job is returned to
   * its queue. Less than the executor's own timeout.
   */
  readonly patience?: number
}
/** Handlers by kind of job. */
export type Handlers = Readonly<Partial<Record<JobHeader['kind'], Handler>>>
