/**
 * What an executor can do, as a table: one handler for each kind of job. Boundary: an executor takes jobs, keeps their leases
 * and reports; a handler knows which jobs are the service's own and how they are done.
 */
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { JobReport, Take } from '../../protocol/internal.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { MaybePromise } from '../../gateway/maybe-promise.ts'

/** A job under a lease. */
interface Work {
  readonly project: string
  readonly job: ClaimedJob
  /** The lease is lost, the job was cancelled, or the executor stops: what comes of the work is not asked for any more. */
  readonly signal: AbortSignal
}
/** How an attempt ended. */
export type Outcome = Omit<JobReport, 'job_id' | 'lease_token'>
/** The job is not for the service after all: it waits again, and no attempt is used. */
export const NOT_OURS = 'not ours'

export interface Handler {
  /** Whether a waiting job is for the service, and what must be known of it when it is taken; undefined: it is for a worker. */
  takes(project: string, job: JobHeader): MaybePromise<Pick<Take, 'losses'> | undefined | Refusal>
  /** Make one attempt. What it throws counts as a fault of the service: the attempt has failed. */
  perform(work: Work): Promise<Outcome | typeof NOT_OURS>
  /** Milliseconds that an attempt has to end when the executor stops, before it is given back. Less than the executor's own. */
  readonly patience?: number
}
/** Handlers by kind of job. */
export type Handlers = Readonly<Partial<Record<JobHeader['kind'], Handler>>>
