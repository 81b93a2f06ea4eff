/**
 * The end of an attempt, as events of the queue and messages to the owner of the job. The owner is
 * notified of the end of a job exactly once, because the same commit removes the job from the
 * queue.
 *
 * Two limits, counted separately unless the job is `strict`:
 * - `max_attempts` bounds reported failures: the worker executed the job, and the job failed.
 * - `max_losses` bounds lost leases, after which it is unknown whether the job was executed. A job
 *   that is safe to repeat may be allowed more losses than failures.
 *
 * The step of a `strict` job sets `retry.max_attempts`, which bounds the total number of attempts.
 */

import type { InvocationFacts } from '../../protocol/actions/invocation.ts'
import { type JsonObject, timestamp } from '../../protocol/common.ts'
import { isUnlisted, type Job, ownerOf, type QueueEvent } from '../../protocol/jobs/rows.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { AppContext } from '../../protocol/sessions/turns/context.ts'
import type { Decided, Tell } from '../actor.ts'
import { attemptsOf, type Held } from './state.ts'

export type Ended = Pick<Decided<QueueEvent, never>, 'events' | 'tells'>
interface Fault {
  readonly error_type?: string
  readonly error_message?: string
}
/** Retry advice and invocation facts that an executor reports with a failed attempt. */
interface Served {
  readonly final?: true
  readonly retry_in?: number
  readonly invocation?: InvocationFacts
}
export type Outcome =
  | {
      readonly outcome: 'completed'
      readonly result?: JsonObject
      readonly context?: readonly AppContext[]
    }
  | ({ readonly outcome: 'failed' | 'cancelled' } & Fault)
type Requeued = Extract<QueueEvent, { type: 'job.requeued' }>

/** The reasons why a job returns to the queue, as stored in `job.requeued`. */
export const reasons = {
  failure: 'failure',
  expired: 'lease_expired',
  capacity: 'worker_over_capacity',
  shutdown: 'worker_shutdown',
  undelivered: 'undelivered',
} as const

/** Returns the number of the attempt under the lease or, without a lease, of the last attempt. */
const attemptOf = (held: Held) => held.lease?.attempt ?? held.last?.attempt ?? attemptsOf(held)
const workerOf = (held: Held) => held.lease?.instance ?? held.last?.instance
const faultOf = ({ error_type, error_message }: Fault): Fault => ({
  ...(error_type !== undefined && { error_type }),
  ...(error_message !== undefined && { error_message }),
})
const tellOwner = (
  held: Held,
  name: 'job.settled' | 'job.retried',
  input: Readonly<Record<string, unknown>>,
): readonly Tell[] => {
  const to = ownerOf(held.header)
  // The owner of an internal job of the service is notified of the end of the job, but not of
  // retries.
  return to && !(isUnlisted(held.header.kind) && name === 'job.retried')
    ? [{ to, name, input }]
    : []
}

/**
 * Ends the job with an outcome.
 * @param at Unix milliseconds.
 */
export function endJob(
  held: Held,
  outcome: Outcome,
  at: number,
  invocation?: InvocationFacts,
): Ended {
  const { id, environment, environment_id } = held.header
  const [worker, attempt] = [workerOf(held), attemptOf(held)]
  const more =
    outcome.outcome === 'completed'
      ? { ...(outcome.result && { result: outcome.result }) }
      : faultOf(outcome)
  const job: Patch<Job> = {
    status: outcome.outcome,
    claim_attempt: attempt,
    ...(worker !== undefined && { worker_instance_id: worker }),
    lease_expires_at: null,
    ...(outcome.outcome === 'cancelled' && { cancel_requested: true }),
    ...more,
    completed_at: timestamp(at),
    updated_at: timestamp(at),
  }
  return {
    events: [
      {
        type: `job.${outcome.outcome}`,
        id,
        job,
        ...(invocation && { invocation }),
        ...(environment && environment_id !== undefined && { environment_id }),
      },
    ],
    tells: tellOwner(held, 'job.settled', {
      job_id: id,
      outcome: outcome.outcome,
      attempt,
      ...(worker !== undefined && { worker_instance_id: worker }),
      ...more,
      ...('context' in outcome && { context: outcome.context }),
    }),
  }
}

const requeue = (
  held: Held,
  counted: Requeued['counted'],
  reason: string,
  at: number,
  pause = 0,
): Requeued => ({
  type: 'job.requeued',
  id: held.header.id,
  reason,
  counted,
  ...(pause > 0 && { not_before: at + pause }),
  job: {
    status: 'queued',
    claim_attempt: attemptsOf(held) + (counted === 'failure' || counted === 'loss' ? 1 : 0),
    worker_instance_id: null,
    claimed_at: null,
    lease_expires_at: null,
    updated_at: timestamp(at),
  },
})

/**
 * Puts the job back in the queue without counting the attempt. A job whose cancellation was
 * requested ends instead.
 */
export const requeueUncounted = (
  held: Held,
  counted: 'release' | 'none',
  reason: string,
  at: number,
): Ended => (held.cancel ? cancelJob(held, at) : { events: [requeue(held, counted, reason, at)] })

/** Returns whether the job has no attempt left if the attempt under `attemptOf` has failed. */
export const isLastFailure = (held: Held): boolean =>
  held.failures + 1 >= held.header.max_attempts || isLastAttempt(held)
const isLastLoss = (held: Held): boolean =>
  held.losses + 1 >= held.header.max_losses || isLastAttempt(held)
const isLastAttempt = (held: Held): boolean =>
  held.header.strict === true && attemptOf(held) >= held.header.max_attempts

/**
 * Handles a failed attempt: the job gets another attempt or ends.
 * @param at Unix milliseconds.
 */
export function failAttempt(
  held: Held,
  fault: Fault,
  at: number,
  { final, retry_in, invocation }: Served = {},
): Ended {
  if (final || isLastFailure(held))
    return endJob(held, { outcome: 'failed', ...fault }, at, invocation)
  return held.cancel ? cancelJob(held, at) : retryJob(held, 'failure', fault, at, retry_in)
}

/** Puts a resting job back in the queue at the end of its pause. */
export const endRest = (held: Held, at: number): Ended => ({
  events: [{ type: 'job.rested', id: held.header.id, job: { updated_at: timestamp(at) } }],
})

/** Handles a lease that ended without a report: the job gets another attempt or ends. */
export function loseLease(held: Held, at: number): Ended {
  if (held.cancel) return cancelJob(held, at)
  const fault = {
    error_type: 'lease_expired',
    error_message: `The heartbeats of the worker stopped during attempt ${attemptOf(held)}.`,
  }
  return isLastLoss(held)
    ? endJob(held, { outcome: 'failed', ...fault }, at)
    : retryJob(held, 'loss', fault, at)
}

function retryJob(
  held: Held,
  counted: 'failure' | 'loss',
  fault: Fault,
  at: number,
  pause?: number,
): Ended {
  const reason = counted === 'loss' ? reasons.expired : reasons.failure
  const worker = workerOf(held)
  const { id, max_attempts } = held.header
  return {
    events: [requeue(held, counted, reason, at, pause)],
    tells: tellOwner(held, 'job.retried', {
      job_id: id,
      attempt: attemptOf(held),
      max_attempts,
      reason,
      ...faultOf(fault),
      ...(worker !== undefined && { worker_instance_id: worker }),
    }),
  }
}

/** Ends the job as cancelled on request. */
export const cancelJob = (held: Held, at: number, reason = held.cancel?.reason): Ended =>
  endJob(held, { outcome: 'cancelled', ...(reason !== undefined && { error_message: reason }) }, at)

/** Merges the ends of several attempts into one decision. */
export const mergeEnded = (ended: readonly Ended[]): Ended => ({
  events: ended.flatMap(({ events }) => events),
  tells: ended.flatMap(({ tells }) => tells ?? []),
})
