/**
 * How an attempt ends, as events of the queue and messages to whoever wanted the job. It hears of the end of a
 * job exactly once, because the events that say so take the job out of the queue in the same commit.
 *
 * Two bounds, counted apart:
 * - `max_attempts` bounds reported failures: the worker ran the job and it failed.
 * - `max_losses` bounds lost leases: nobody knows whether the job ran. A job that is safe to repeat may be lost more
 *   often than it may fail, one that is not may be lost less often.
 */
import type { Decided, Tell } from '../actor.ts'
import type { InvocationFacts } from '../../protocol/actions/invocation.ts'
import { isUnlisted, ownerOf, type Job, type QueueEvent } from '../../protocol/jobs/rows.ts'
import { timestamp, type JsonObject } from '../../protocol/common.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { AppContext } from '../../protocol/sessions/turns/context.ts'
import { attemptsOf, type Held } from './state.ts'

export type Ended = Pick<Decided<QueueEvent, never>, 'events' | 'tells'>
interface Fault {
  readonly error_type?: string
  readonly error_message?: string
}
/** What an executor says of an attempt that failed. */
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

/** Why a job waits again, in `job.requeued`. */
export const reasons = {
  failure: 'failure',
  expired: 'lease_expired',
  capacity: 'worker_over_capacity',
  shutdown: 'worker_shutdown',
  undelivered: 'undelivered',
} as const

/** The attempt that ends, or that a late report is about. */
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
  // Of what the service does by itself only the end is of interest.
  return to && !(isUnlisted(held.header.kind) && name === 'job.retried')
    ? [{ to, name, input }]
    : []
}

/** The job has ended. @param at Unix milliseconds. */
export function settle(
  held: Held,
  outcome: Outcome,
  at: number,
  invocation?: InvocationFacts,
): Ended {
  const { id } = held.header
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
    events: [{ type: `job.${outcome.outcome}`, id, job, ...(invocation && { invocation }) }],
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

/** The job waits again and nothing is counted. One that should stop ends instead: a stop is final. */
export const giveBack = (
  held: Held,
  counted: 'release' | 'none',
  reason: string,
  at: number,
): Ended => (held.cancel ? cancelled(held, at) : { events: [requeue(held, counted, reason, at)] })

/** The worker ran the job and it failed: another attempt, or the end. */
export function failed(
  held: Held,
  fault: Fault,
  at: number,
  { final, retry_in, invocation }: Served = {},
): Ended {
  if (final || held.failures + 1 >= held.header.max_attempts)
    return settle(held, { outcome: 'failed', ...fault }, at, invocation)
  return held.cancel ? cancelled(held, at) : again(held, 'failure', fault, at, retry_in)
}

/** The pause before the next attempt is over: the job is in line again. */
export const rested = (held: Held, at: number): Ended => ({
  events: [{ type: 'job.rested', id: held.header.id, job: { updated_at: timestamp(at) } }],
})

/** The lease ended without a report: another attempt, or the end. */
export function lost(held: Held, at: number): Ended {
  if (held.cancel) return cancelled(held, at)
  const fault = {
    error_type: 'lease_expired',
    error_message: `The worker gave no sign of life during attempt ${attemptOf(held)}.`,
  }
  return held.losses + 1 >= held.header.max_losses
    ? settle(held, { outcome: 'failed', ...fault }, at)
    : again(held, 'loss', fault, at)
}

function again(
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

/** The job was stopped on request. */
export const cancelled = (held: Held, at: number, reason = held.cancel?.reason): Ended =>
  settle(held, { outcome: 'cancelled', ...(reason !== undefined && { error_message: reason }) }, at)

/** Several endings in one decision. */
export const together = (ended: readonly Ended[]): Ended => ({
  events: ended.flatMap(({ events }) => events),
  tells: ended.flatMap(({ tells }) => tells ?? []),
})
