/**
 * The known leases of a session: counting them, removing them, and giving back jobs that were never
 * delivered.
 */

import { queueOfLease } from '../../../protocol/jobs/lease-token.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { command, type Edge, queueNamed, queueOf } from '../edge.ts'
import type { Session } from '../session.ts'
import { gained } from './offers.ts'

/** A job whose lease expired without a sign of life, and its queue. */
interface Lapsed {
  readonly job_id: string
  readonly to: AddressOf<'queue'>
}

/**
 * Milliseconds for which a lease still counts after it expires, so that a late heartbeat finds it
 * counted.
 */
const GRACE = 5000

/** When a lease that is granted or renewed now stops counting. @param seconds its duration. */
export const leaseUntil = (edge: Edge, seconds: number): number =>
  edge.world.now() + seconds * 1000 + GRACE

/**
 * Removes a lease that ended, and frees its slot.
 * @param token if present, only a lease with this token is removed.
 */
export function ended(edge: Edge, session: Session, job_id: string, token?: string): void {
  const held = session.held.get(job_id)
  if (!held || (token !== undefined && held.token !== undefined && held.token !== token)) return
  session.held.delete(job_id)
  session.reported.delete(job_id)
  edge.previews.end(job_id, token)
  if (session.closed) return
  gained(edge, session)
}

/**
 * Stops counting leases that expired without a sign of life. Returns those for which this
 * connection received none during a full lease.
 */
export function expire(edge: Edge, session: Session): Lapsed[] {
  if (session.leases === 0) return []
  const now = edge.world.now()
  const silent = now - edge.world.settings.timing.lease * 1000
  const lapsed: Lapsed[] = []
  for (const [job_id, { until, heard, token, queue }] of session.held) {
    if (until > now) continue
    ended(edge, session, job_id)
    const name = token === undefined ? queue : queueOfLease(token)
    const to = name !== undefined && queueNamed(edge, session.project, job_id, name)
    if (to && heard <= silent) lapsed.push({ job_id, to })
  }
  return lapsed
}

/**
 * Reports lapsed leases to their queues: after a change of owner, a queue can only assume that a
 * lease still has its full duration.
 */
export function lapse(edge: Edge, session: Session, leases: readonly Lapsed[]): void {
  for (const { to, job_id } of leases)
    void command(edge, session.connection.grant, to, 'queue.expire', {
      session: session.id,
      job_id,
    })
}

/** Gives back a job that was never delivered: it waits again, and no attempt is counted. */
export function release(edge: Edge, session: Session, { id, lease_token }: ClaimedJob): void {
  ended(edge, session, id, lease_token)
  const newer = edge.sessions.get(session.id)
  if (newer && newer !== session) ended(edge, newer, id, lease_token)
  const to = queueOf(edge, session.project, id, lease_token)
  if (to)
    void command(edge, session.connection.grant, to, 'queue.release', { job_id: id, lease_token })
}

/** Gives back every job that no claim has received. */
export function giveBack(edge: Edge, session: Session): void {
  for (const { job } of [...session.ready]) {
    withdraw(session, job.id)
    release(edge, session, job)
  }
}

/** Removes a job from those that wait for a claim; undefined when it is not among them. */
export function withdraw(session: Session, job_id: string): ClaimedJob | undefined {
  const at = session.ready.findIndex(({ job }) => job.id === job_id)
  const [item] = at < 0 ? [] : session.ready.splice(at, 1)
  item?.cancel()
  return item?.job
}
